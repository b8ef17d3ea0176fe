//! The examples of the help, through the program itself.

#![allow(clippy::unwrap_used)]

mod support;

use std::{fs, process::Stdio};

use support::{agent, end};

/// The lines below `Examples:` of the help of each command, as they stand there.
fn examples(dir: &std::path::Path) -> Vec<(String, String)> {
    let (_, help, _) = end(&mut agent(dir), &["--help"]);
    let commands = help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    let names: Vec<_> = commands.filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect();
    assert!(names.len() > 14, "{help}");
    let mut examples = Vec::new();
    for name in names {
        let (_, help, _) = end(&mut agent(dir), &[&name, "--help"]);
        let lines = help.lines().skip_while(|line| *line != "Examples:").skip(1).map(str::trim);
        examples.extend(lines.filter(|line| !line.is_empty()).map(|line| (name.clone(), line.to_owned())));
    }
    examples
}

/// Examples that need what a test has not: a terminal, a network, a client; and keys for an address that others reach.
const NOT_ALONE: [&str; 8] = [
    "agent chat",
    "agent mcp --tools",
    "agent doctor --network",
    "agent serve *",
    "agent serve librarian.yaml --engine",
    "agent worker",
    "agent queue",
    "agent acp",
];

/// Examples of servers, which do not end: that one says where it is, is enough.
const SERVERS: [&str; 3] = ["agent serve librarian", "agent studio", "agent mcp --http"];

/// Starts a server at a free port, and ends it once it said where it is.
fn serves(dir: &std::path::Path, path: &std::ffi::OsStr, line: &str) {
    let ports = ["127.0.0.1:8080", "127.0.0.1:8000"];
    let mut line = ports.iter().fold(line.to_owned(), |line, port| line.replace(port, "127.0.0.1:0"));
    if !line.contains("127.0.0.1:0") {
        line += " --listen 127.0.0.1:0";
    }
    if line.contains("postgres://") {
        return; // there is no such server
    }
    let mut child = std::process::Command::new("sh")
        .args(["-c", &format!("exec {line} --json")])
        .current_dir(dir)
        .env_clear()
        .envs([("PATH", path), ("AGENT_STORE", "s.db".as_ref()), ("HOME", dir.as_os_str())])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = String::new();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(child.stdout.take().unwrap()), &mut said).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(said.contains("\"serving\":\"http://127.0.0.1:"), "{line}: {said}");
}

#[test]
fn the_examples_of_the_help_work() {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("docs")).unwrap();
    fs::write(dir.path().join("docs/start.md"), "A checkpoint holds where a run stands.").unwrap();
    let bin = std::path::Path::new(env!("CARGO_BIN_EXE_agent")).parent().unwrap();
    let path = std::env::join_paths([bin.into(), "/usr/bin".into(), "/bin".into()] as [std::path::PathBuf; 3]).unwrap();
    let shell = |line: &str| {
        let mut command = std::process::Command::new("sh");
        command.args(["-c", line]).current_dir(dir.path()).env_clear().stdin(Stdio::null());
        command.env("PATH", &path).env("AGENT_STORE", "s.db").env("HOME", dir.path());
        end(&mut command, &[])
    };
    assert_eq!(shell("agent new librarian --model offline:any").0, 0);
    let cases = "- {name: hums, input: What do bees do?}\n- {name: asks, input: Why?, no_tools: [write_file]}\n";
    fs::write(dir.path().join("cases.yaml"), cases).unwrap();
    assert_eq!(shell("agent run --store runs.db 'What do bees do?'").0, 0);
    for session in ["garden", "garden-2"] {
        assert_eq!(shell(&format!("agent run -s {session} 'What do bees do?'")).0, 0);
    }
    let examples = examples(dir.path());
    let with = |command: &str| examples.iter().any(|(name, _)| name == command);
    for command in [
        "run",
        "chat",
        "sessions",
        "inspect",
        "replay",
        "fork",
        "diff",
        "resume",
        "approve",
        "export",
        "models",
        "tools",
        "doctor",
        "mcp",
        "serve",
        "worker",
        "queue",
        "studio",
        "new",
        "completions",
        "schema",
        "eval",
        "man",
    ] {
        assert!(with(command), "the help of {command} has no example");
    }
    for (name, line) in examples {
        if NOT_ALONE.iter().any(|needs| line.starts_with(needs)) {
            continue;
        }
        if SERVERS.iter().any(|server| line.starts_with(server)) {
            serves(dir.path(), &path, &line);
            continue;
        }
        match name.as_str() {
            // Its session has no question, which is said.
            "approve" => assert_eq!(shell(&line).0, 2, "{line}"),
            // The session has nothing to go on with, and is there no more after its deletion.
            "resume" => assert_eq!(shell(&line).0, 2, "{line}"),
            "sessions" if line.contains("delete") => {}
            // The file is there already.
            "new" => assert_eq!(shell(&format!("{line} --force")).0, 0, "{line}"),
            "fork" => assert_eq!(shell(&line.replace("garden-2", "garden-3")).0, 0, "{line}"),
            _ => {
                let (code, _, err) = shell(&line);
                assert_eq!(code, 0, "{line}: {err}");
            }
        }
    }
    assert_eq!(shell("agent sessions delete garden").0, 0);
}
