//! The program over PostgreSQL. Skipped, and said so, where that is not installed.

#![allow(clippy::unwrap_used)]

mod support;

use support::{Model, Reply, agent_on, end, postgres::server};

#[test]
fn sessions_are_kept_found_and_gone_on_with_in_postgresql() {
    let Some((store, _until_closed)) = server() else { return };
    let dir = tempfile::tempdir().unwrap();
    let call = Reply::Call("write_file", serde_json::json!({"path": "new.md", "content": "Bees hum."}));
    let model = Model::new([call, Reply::Text("It is written.")]);
    let on =
        |args: &[&str]| end(&mut agent_on(dir.path(), &model), &[args, &["--store", &store, "--dir", "."]].concat());
    let (code, _, err) = on(&["run", "--session", "garden", "Write what bees do."]);
    assert_eq!(code, 3, "{err}");
    assert!(!err.contains("tests@"), "the address may have a password in it: {err}");
    let (code, out, err) = on(&["approve", "garden", "--allow"]);
    assert_eq!((code, out.as_str()), (0, "It is written.\n"), "{err}");
    assert!(on(&["sessions", "search", "what bees"]).1.contains("garden"));
    assert!(on(&["inspect", "garden", "--messages"]).1.contains("It is written."));
    assert!(on(&["export", "garden"]).1.contains("write_file"));
    assert_eq!(on(&["sessions", "delete", "garden"]).0, 0);
}
