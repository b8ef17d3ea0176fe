//! The tools of a shell.

#![cfg(target_os = "linux")]

#[expect(dead_code, reason = "each test program uses what it needs")]
mod support;

use std::{sync::Arc, time::Duration};

use agent_core::{
    Effect, Resources, Result, RunCx, Tool, ToolOutput,
    engine::{RunDriver, RunParts},
    run::RunIds,
};
use agent_tools::{
    Shell,
    sandbox::{Exit, Isolation, LocalSandbox, MemorySandbox, Sandbox},
};
use serde_json::{Value, json};

use crate::support::{call_in, run};

/// A sandbox that is confined as far as this machine can. What keeps programs in is tested elsewhere.
fn sandbox(dir: &tempfile::TempDir) -> Arc<dyn Sandbox> {
    let builder = LocalSandbox::builder(dir.path());
    let sandbox = builder.clone().build().or_else(|_| builder.isolation(Isolation::None).build()).expect("a sandbox");
    Arc::new(sandbox)
}

/// The tools of one shell, called in one run.
struct Called {
    tools: Vec<Arc<dyn Tool>>,
    run: RunDriver,
    sandbox: Arc<dyn Sandbox>,
    _dir: tempfile::TempDir,
}

impl Called {
    fn new() -> Self {
        Self::set(|shell| shell)
    }

    fn set(set: impl FnOnce(Shell) -> Shell) -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let sandbox = sandbox(&dir);
        Self::over(sandbox, dir, set)
    }

    fn over(sandbox: Arc<dyn Sandbox>, dir: tempfile::TempDir, set: impl FnOnce(Shell) -> Shell) -> Self {
        let tools = set(Shell::shared(sandbox.clone())).tools().expect("fits").into_iter().collect();
        Self { tools, run: run(Resources::default()), sandbox, _dir: dir }
    }

    async fn try_call(&self, cx: &RunCx, name: &str, args: Value) -> Result<ToolOutput> {
        let tool = self.tools.iter().find(|tool| tool.spec().name == name).expect("exists");
        call_in(cx, tool, args).await
    }

    async fn call(&self, name: &str, args: Value) -> String {
        self.try_call(self.run.cx(), name, args).await.expect("gives").to_text()
    }

    /// Starts a command in the background, and gives its id.
    async fn background(&self, command: &str) -> String {
        let args = json!({"command": command, "run_in_background": true});
        let started = self.try_call(self.run.cx(), "bash", args).await.expect("starts");
        let id = started.as_value().expect("a value")["bash_id"].as_str().expect("an id").to_owned();
        assert_eq!(started.to_text(), format!("started in the background as {id}: bash_output reads what it writes"));
        id
    }

    async fn bash(&self, command: &str) -> String {
        self.call("bash", json!({"command": command})).await
    }
}

#[tokio::test]
async fn a_command_gives_what_it_writes_and_how_it_ended() {
    let shell = Called::new();
    assert_eq!(shell.bash("echo out; echo err >&2").await, "out\nerr");
    assert_eq!(shell.bash("true").await, "[no output]");
    assert_eq!(shell.bash("printf nothing-more; exit 3").await, "nothing-more\n[exit code 3]");
    assert!(shell.bash("kill -9 $$").await.ends_with("[exit code 137]"), "128 and the number of the signal");
}

#[tokio::test]
async fn programs_get_the_code_the_output_and_the_file() {
    let shell = Called::new();
    let output = shell.try_call(shell.run.cx(), "bash", json!({"command": "echo x; exit 1"})).await.expect("gives");
    assert_eq!(output.as_value(), Some(&json!({"exit_code": 1, "output": "x\n[exit code 1]", "file": null})));
    assert!(!output.is_error(), "a code is the command's answer: grep gives 1 for nothing found");
}

#[tokio::test]
async fn each_call_is_a_shell_of_its_own_and_input_is_at_its_end() {
    let shell = Called::new();
    shell.bash("mkdir d; cd d; X=1").await;
    assert_eq!(shell.bash("ls; echo [$X]; cat").await, "d\n[]");
}

async fn fixture_len(shell: &Called, file: &str) -> usize {
    shell.sandbox.read(file).await.expect("is there").len()
}

#[tokio::test]
async fn of_a_long_output_both_ends_are_shown_and_the_whole_is_a_file() {
    let shell = Called::set(|shell| shell.max_output_bytes(200));
    let output = shell.try_call(shell.run.cx(), "bash", json!({"command": "seq 10000"})).await.expect("gives");
    let shown = output.to_text();
    assert!(shown.starts_with("1\n2\n") && shown.ends_with("9999\n10000") && shown.len() < 400, "{shown}");
    let file = output.as_value().expect("a value")["file"].as_str().expect("a file").to_owned();
    assert!(shown.contains(&file), "{shown}");
    let flood =
        shell.try_call(shell.run.cx(), "bash", json!({"command": "yes | head -c 20000000"})).await.expect("gives");
    let kept = flood.as_value().expect("a value")["file"].as_str().expect("a file").to_owned();
    assert_eq!(fixture_len(&shell, &kept).await, 8 << 20, "{flood:?}");
    let whole: String = (1..=10_000).map(|n| format!("{n}\n")).collect();
    assert_eq!(shell.sandbox.read(&file).await.expect("is there"), whole);
    assert_eq!(shell.bash(&format!("sed -n 5000p {file}")).await, "5000");
}

#[tokio::test]
async fn a_command_that_takes_too_long_is_ended_with_what_it_wrote_until_then() {
    let shell = Called::new();
    let args = json!({"command": "echo begun; sleep 1000", "timeout": 500});
    let output = shell.try_call(shell.run.cx(), "bash", args).await.expect("gives");
    assert!(output.is_error());
    assert!(output.to_text().starts_with("begun\n[ended after 500 ms: it took too long; "), "{output:?}");
    assert_eq!(output.as_value().expect("a value")["exit_code"], Value::Null);
    let shell = Called::set(|shell| shell.timeout(Duration::from_millis(100)).max_timeout(Duration::from_millis(200)));
    let output = shell.call("bash", json!({"command": "sleep 1000", "timeout": 1_000_000})).await;
    assert!(output.starts_with("[ended after 200 ms"), "{output}");
}

#[tokio::test]
async fn a_command_in_the_background_is_read_given_input_and_ended() {
    let shell = Called::new();
    let line = "while read -r word; do echo \"got $word\"; done; echo over; sleep 1000";
    let id = shell.background(line).await;
    assert_eq!(shell.call("bash_output", json!({"bash_id": id})).await, "[it runs]");
    for word in ["one", "two"] {
        let text = format!("{word}\n");
        assert_eq!(shell.call("bash_input", json!({"bash_id": id, "text": text})).await, "written");
        let said = shell.call("bash_output", json!({"bash_id": id, "wait": 60_000})).await;
        assert_eq!(said, format!("got {word}\n[it runs]"));
    }
    shell.call("bash_input", json!({"bash_id": id, "text": "", "end": true})).await;
    assert_eq!(shell.call("bash_output", json!({"bash_id": id, "wait": 60_000})).await, "over\n[it runs]");
    let ended = shell.call("kill_bash", json!({"bash_id": id})).await;
    assert!(ended.starts_with("[ended by signal 9") || ended.starts_with("[exit code 137"), "{ended}");
    let gone = shell.try_call(shell.run.cx(), "bash_output", json!({"bash_id": id})).await.expect_err("is gone");
    assert!(gone.message().contains("there is none"), "{gone}");
}

#[tokio::test]
async fn one_that_reads_no_input_is_told_of_and_can_still_be_ended() {
    let shell = Called::new();
    let id = shell.background("exec <&-; sleep 1000").await;
    let text = "x".repeat(1 << 20);
    let mut refused = None;
    for _ in 0..20 {
        let args = json!({"bash_id": id, "text": text});
        refused = refused.or(shell.try_call(shell.run.cx(), "bash_input", args).await.err());
    }
    assert!(refused.expect("is refused").message().contains("input"));
    assert!(shell.call("kill_bash", json!({"bash_id": id})).await.starts_with("[e"));
}

#[tokio::test]
async fn one_that_ended_by_itself_is_told_once_with_its_code() {
    let shell = Called::new();
    let id = shell.background("echo done; exit 4").await;
    let mut said = String::new();
    while !said.contains("exit code") {
        said += &shell.call("bash_output", json!({"bash_id": id, "wait": 60_000})).await;
    }
    assert!(said.starts_with("done\n") && said.ends_with("[exit code 4]"), "{said}");
}

#[tokio::test]
async fn a_session_has_commands_of_its_own_and_no_more_than_it_may() {
    let shell = Called::set(|shell| shell.max_tasks(1));
    let background = json!({"command": "sleep 1000", "run_in_background": true});
    let id = shell.background("sleep 1000").await;
    let full = shell.try_call(shell.run.cx(), "bash", background).await.expect_err("is full");
    assert!(full.message().contains("kill_bash"), "{full}");
    let parts = RunParts::new(
        Arc::new(RunIds::root("other", "another session")),
        shell.run.engine().emitter().clone(),
        shell.run.engine().log().clone(),
    );
    let other = RunDriver::new(parts);
    let foreign = shell.try_call(other.cx(), "kill_bash", json!({"bash_id": id})).await.expect_err("is not its own");
    assert!(foreign.message().contains("there is none"), "{foreign}");
    for tool in &shell.tools {
        tool.close().await.expect("closes");
    }
    assert!(shell.try_call(shell.run.cx(), "bash_output", json!({"bash_id": id})).await.is_err());
}

#[tokio::test]
async fn the_tools_work_over_any_sandbox_and_say_what_repeating_would_do() {
    let echo = MemorySandbox::new().program("zsh", |command| (format!("{:?}", command.args), Exit::code(0)));
    let dir = tempfile::tempdir().expect("a directory");
    let shell = Called::over(Arc::new(echo), dir, |shell| shell.program("zsh"));
    assert_eq!(shell.bash("a 'b'").await, r#"["-c", "a 'b'"]"#);
    let effects: Vec<_> = shell.tools.iter().map(|tool| (tool.spec().name, tool.options().effect)).collect();
    let (once, again) = (Effect::AtMostOnce, Effect::Idempotent);
    let expected = [("bash", once), ("bash_output", again), ("bash_input", once), ("kill_bash", again)]
        .map(|(n, e)| (n.into(), e));
    assert_eq!(effects, expected);
}
