//! The program over PostgreSQL. Skipped, and said so, where that is not installed.

#![allow(clippy::unwrap_used)]

mod support;

use std::{
    fs,
    io::{BufRead, BufReader},
    net::TcpListener,
    os::unix::fs::MetadataExt,
    path::PathBuf,
    process::{ChildStdin, Command, Stdio},
};

use support::{Model, Reply, agent_on, end};

/// Makes a cluster and runs it until its input ends.
const SCRIPT: &str = r#"
dir=$(mktemp -d) && cd "$dir" || exit 1
"$0/initdb" -D data -U tests --auth trust --no-sync --encoding UTF8 --locale C >log 2>&1 || { cat log >&2; exit 1; }
"$0/postgres" -D data -k "$dir" -p "$1" -c listen_addresses=localhost -c fsync=off >log 2>&1 &
server=$!
until "$0/pg_isready" -q -h "$dir" -p "$1"; do kill -0 $server || { cat log >&2; exit 1; }; sleep 0.1; done
echo ready
cat >/dev/null
kill -QUIT $server
wait
cd / && rm -rf "$dir"
"#;

/// The address of a server that ends when what is beside it is dropped.
fn server() -> Option<(String, ChildStdin)> {
    let installed = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let Some(programs) = installed.map(|entry| entry.path().join("bin")).max() else {
        eprintln!("skipped: no postgres");
        return None;
    };
    // The server refuses to run as root.
    let is_root = fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0);
    let user: &[&str] =
        if is_root { &["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"] } else { &["env"] };
    let port = TcpListener::bind("localhost:0").unwrap().local_addr().unwrap().port();
    let mut command = Command::new(user[0]);
    command.args(&user[1..]).args(["sh", "-c", SCRIPT]).arg::<PathBuf>(programs).arg(port.to_string());
    command.current_dir("/").env_remove("TMPDIR").stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut said = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut said).unwrap();
    assert_eq!(said, "ready\n", "the server did not start; it says why above");
    let until_closed = child.stdin.take().unwrap();
    std::thread::spawn(move || child.wait());
    Some((format!("postgres://tests@localhost:{port}/postgres?sslmode=disable"), until_closed))
}

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
