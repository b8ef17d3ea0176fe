//! The program over PostgreSQL. Skipped, and said so, where that is not installed.

use crate::support;

use support::{Model, Reply, agent_on, end, postgres::server};

#[test]
fn sessions_are_kept_found_and_gone_on_with_in_postgresql() {
    let Some((store, _until_closed)) = server() else { return };
    let dir = tempfile::tempdir().unwrap();
    let call = Reply::Call("write_file", serde_json::json!({"path": "new.md", "content": "Bees hum."}));
    let model = Model::new([call, Reply::Text("It is written.")]);
    let on = |args: &[&str]| end(&mut agent_on(dir.path(), &model), &[args, &["--store", &store]].concat());
    let (code, _, err) = on(&["run", "--dir", ".", "--session", "garden", "Write what bees do."]);
    assert_eq!(code, 3, "{err}");
    assert!(!err.contains("tests@"), "the address may have a password in it: {err}");
    let (code, out, err) = on(&["approve", "--dir", ".", "garden", "--allow"]);
    assert_eq!((code, out.as_str()), (0, "It is written.\n"), "{err}");
    let found = on(&["sessions", "search", "what bees"]);
    assert!(found.1.contains("garden"), "{found:?}");
    assert!(on(&["inspect", "garden", "--messages"]).1.contains("It is written."));
    assert!(on(&["export", "garden"]).1.contains("write_file"));
    assert_eq!(on(&["sessions", "delete", "garden"]).0, 0);
}

#[test]
fn what_chooses_jobs_of_a_list_is_refused_by_commands_of_the_queue_and_a_tenant_is_sent() {
    let Some((store, _until_closed)) = server() else { return };
    let (dir, model) = (tempfile::tempdir().unwrap(), Model::new([]));
    let queue = |args: &[&str]| end(&mut agent_on(dir.path(), &model), &[&["queue", "--store", &store], args].concat());
    let (code, run, err) = queue(&["send", "--agent", "a", "--tenant", "acme", "Hi."]);
    assert_eq!(code, 0, "{err}");
    assert_eq!(queue(&["send", "--agent", "a", "Hi."]).0, 0);
    let listed = queue(&["--tenant", "acme", "--status", "queued", "--limit", "5"]).1;
    assert!(listed.contains(run.trim()) && listed.lines().count() == 2, "{listed}");
    assert!(queue(&["show", run.trim()]).1.contains("\"tenant\":\"acme\""));
    for (option, value) in [("--tenant", "acme"), ("--status", "done"), ("--limit", "1")] {
        let (code, _, err) = queue(&[option, value, "purge", "--older-than", "0"]);
        assert!(code != 0 && err.contains(option), "{err}");
    }
}
