//! The examples of the help, through the program itself.

use crate::support;

use std::{
    ffi::OsString,
    fs,
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use support::{agent, end, postgres};

/// The lines below `Examples:` of the help of each command. Each command has at least one.
fn examples(dir: &Path) -> Vec<(String, String)> {
    let (_, help, _) = end(&mut agent(dir), &["--help"]);
    let commands = help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    let names: Vec<_> = commands.filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect();
    assert!(names.len() > 20, "{help}");
    let mut examples = Vec::new();
    for name in names {
        let (_, help, _) = end(&mut agent(dir), &[&name, "--help"]);
        let lines = help.lines().skip_while(|line| *line != "Examples:").skip(1).map(str::trim);
        let lines: Vec<_> = lines.filter(|line| !line.is_empty()).collect();
        let is_of_it = |line: &&str| line.contains(&format!("agent {name}"));
        assert!(lines.iter().any(is_of_it), "the help of {name} has no example");
        examples.extend(lines.into_iter().map(|line| (name.clone(), line.to_owned())));
    }
    examples
}

/// Examples that need what a test of the help has not: a terminal (`chat.rs` has one), a Restate server (`engines.rs` has one).
const NOT_HERE: [&str; 2] = ["agent chat", "restate://"];

/// Examples of servers and workers, which do not end: that one says where or what it is, is enough.
const SERVERS: [&str; 4] = ["agent serve", "agent studio", "agent mcp --http", "agent worker"];

/// A shell in a directory, with the program, and a store that is used where a line names none.
struct Shell<'a> {
    dir: &'a Path,
    path: OsString,
    store: &'a str,
}

impl Shell<'_> {
    fn command(&self, line: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", line]).current_dir(self.dir).env_clear().stdin(Stdio::null());
        command.env("PATH", &self.path).env("AGENT_STORE", self.store).env("HOME", self.dir);
        command
    }

    fn run(&self, line: &str) -> (i32, String, String) {
        end(&mut self.command(line), &[])
    }

    fn ends_with(&self, code: i32, line: &str) {
        let (ended, _, err) = self.run(line);
        assert_eq!(ended, code, "{line}: {err}");
    }

    /// Starts a server or a worker at a free port, and ends it once it said where, or what, it is.
    fn serves(&self, line: &str) {
        let ports = ["127.0.0.1:8080", "127.0.0.1:8000", "0.0.0.0:8080"];
        let mut line = ports.iter().fold(line.to_owned(), |line, port| line.replace(port, "127.0.0.1:0"));
        if !line.contains("127.0.0.1:0") && !line.starts_with("agent worker") {
            line += " --listen 127.0.0.1:0";
        }
        let mut child = self.command(&format!("exec {line} --json")).stdout(Stdio::piped()).spawn().unwrap();
        let mut said = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut said).unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(said.contains("\"serving\":\"http://127.0.0.1:") || said.contains("\"worker\":"), "{line}: {said}");
    }

    fn example(&self, name: &str, line: &str) {
        if SERVERS.iter().any(|server| line.starts_with(server)) && !line.contains("--new-key") {
            return self.serves(line);
        }
        match name {
            // Its session has no question, which is said.
            "approve" => self.ends_with(2, line),
            // The session has nothing to resume.
            "resume" => self.ends_with(2, line),
            // What others are to read goes last.
            "sessions" if line.contains("delete") => {}
            // The file is there already.
            "new" => self.ends_with(0, &format!("{line} --force")),
            "fork" => self.ends_with(0, &line.replace("garden-2", "garden-3")),
            // No client speaks to it.
            "mcp" => self.ends_with(1, line),
            // A job that waits for a worker needs no other try.
            "queue" if line.contains("retry") => self.ends_with(2, line),
            _ => self.ends_with(0, line),
        }
    }
}

/// A directory with an agent and all that the examples speak of.
fn prepared() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("docs")).unwrap();
    fs::write(dir.path().join("docs/start.md"), "A checkpoint holds where a run stands.").unwrap();
    let cases = "- {name: hums, input: What do bees do?}\n- {name: asks, input: Why?, no_tools: [write_file]}\n";
    fs::write(dir.path().join("cases.yaml"), cases).unwrap();
    dir
}

fn path() -> OsString {
    let bin = Path::new(env!("CARGO_BIN_EXE_agent")).parent().unwrap();
    std::env::join_paths([bin.into(), "/usr/bin".into(), "/bin".into()] as [PathBuf; 3]).unwrap()
}

/// `*.yaml` would be the cases, too.
fn of_one_agent(line: &str) -> String {
    line.replace("*.yaml", "librarian.yaml")
}

fn needs_postgres(line: &str) -> bool {
    ["agent worker", "agent queue"].iter().any(|start| line.starts_with(start)) || line.contains("--engine workers")
}

#[test]
fn the_examples_of_the_help_work() {
    let dir = prepared();
    let shell = Shell { dir: dir.path(), path: path(), store: "s.db" };
    shell.ends_with(0, "agent new librarian --model offline:any");
    shell.ends_with(0, "agent run --store runs.db 'What do bees do?'");
    for session in ["garden", "garden-2"] {
        shell.ends_with(0, &format!("agent run -s {session} 'What do bees do?'"));
    }
    for (name, line) in examples(dir.path()) {
        let is_elsewhere = NOT_HERE.iter().any(|part| line.contains(part)) || needs_postgres(&line);
        if !is_elsewhere && !line.contains("postgres://") {
            shell.example(&name, &of_one_agent(&line));
        }
    }
    shell.ends_with(0, "agent sessions delete garden");
}

#[test]
fn the_examples_of_the_help_that_need_a_database_work() {
    let Some((store, _until_closed)) = postgres::server() else { return };
    let dir = prepared();
    let shell = Shell { dir: dir.path(), path: path(), store: &store };
    shell.ends_with(0, "agent new librarian --model offline:any");
    let (_, run, _) = shell.run("agent queue send --agent librarian 'What do bees do?'");
    for (name, line) in examples(dir.path()) {
        if (!needs_postgres(&line) && !line.contains("postgres://")) || NOT_HERE.iter().any(|part| line.contains(part))
        {
            continue;
        }
        let places = ["postgres://agent@db.example.com/agents", "postgres://localhost/agents"];
        let line = places.iter().fold(of_one_agent(&line), |line, place| line.replace(place, &format!("'{store}'")));
        shell.example(&name, &line.replace("RUN", run.trim()));
    }
}
