//! A PostgreSQL server of a test's own. Where it is not installed, that is said.

use std::{
    fs,
    io::{BufRead, BufReader},
    net::TcpListener,
    os::unix::fs::MetadataExt,
    path::PathBuf,
    process::{ChildStdin, Command, Stdio},
};

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
pub(crate) fn server() -> Option<(String, ChildStdin)> {
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
