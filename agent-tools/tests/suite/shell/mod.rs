//! Shell tools.

#![cfg(target_os = "linux")]

#[cfg(feature = "e2b")]
use crate::support::e2b as service;
mod sessions;
use crate::support;

use std::{sync::Arc, time::Duration};

use agent_core::{
    Effect, Resources, Result, RunCx, Tool, ToolOutput, async_trait,
    engine::{RunDriver, RunParts},
    run::RunIds,
};
use agent_tools::{
    Shell,
    sandbox::{Command, Exit, Guarantees, Isolation, LocalSandbox, MemorySandbox, Process, Sandbox},
};
use serde_json::{Value, json};

use crate::support::{call_in, run};

/// Returns a sandbox with the best isolation available here. Isolation is tested elsewhere.
fn sandbox(dir: &tempfile::TempDir) -> Arc<dyn Sandbox> {
    let builder = LocalSandbox::builder(dir.path());
    let sandbox = builder.clone().build().or_else(|_| builder.isolation(Isolation::None).build()).expect("a sandbox");
    Arc::new(sandbox)
}

/// Tools of one shell, called in one run.
struct Called {
    tools: Vec<Arc<dyn Tool>>,
    run: RunDriver,
    sandbox: Arc<dyn Sandbox>,
    _dir: tempfile::TempDir,
    #[cfg(feature = "e2b")]
    _service: Option<service::Service>,
}

/// Sandbox that the suite runs in.
#[derive(Clone, Copy)]
enum Place {
    Here,
    #[cfg(feature = "e2b")]
    Service,
}

mod here {
    use super::*;

    const PLACE: Place = Place::Here;

    include!("suite.rs");
}

#[cfg(feature = "e2b")]
mod at_a_service {
    use super::*;

    const PLACE: Place = Place::Service;

    include!("suite.rs");
}

impl Called {
    async fn new(place: Place) -> Self {
        Self::set(place, |shell| shell).await
    }

    async fn set(place: Place, set: impl FnOnce(Shell) -> Shell) -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        match place {
            Place::Here => Self::over(sandbox(&dir), dir, set),
            #[cfg(feature = "e2b")]
            Place::Service => {
                // Its files are in a separate directory, which is removed with the sandbox's
                // connections.
                let service = service::Service::start().await;
                let sandbox = Arc::new(service.sandbox().await);
                Self { _service: Some(service), ..Self::over(sandbox, dir, set) }
            }
        }
    }

    fn over(sandbox: Arc<dyn Sandbox>, dir: tempfile::TempDir, set: impl FnOnce(Shell) -> Shell) -> Self {
        let tools = set(Shell::shared(sandbox.clone())).tools().expect("fits").into_iter().collect();
        Self {
            tools,
            run: run(Resources::default()),
            sandbox,
            _dir: dir,
            #[cfg(feature = "e2b")]
            _service: None,
        }
    }

    async fn try_call(&self, cx: &RunCx, name: &str, args: Value) -> Result<ToolOutput> {
        let tool = self.tools.iter().find(|tool| tool.spec().name == name).expect("exists");
        call_in(cx, tool, args).await
    }

    async fn call(&self, name: &str, args: Value) -> String {
        self.try_call(self.run.cx(), name, args).await.expect("gives").to_text()
    }

    /// Starts a background command, and returns its id.
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

/// A sandbox in which no program ever starts.
#[derive(Debug)]
struct Stuck(MemorySandbox);

#[async_trait]
impl Sandbox for Stuck {
    async fn start(&self, _: Command) -> Result<Process> {
        std::future::pending().await
    }

    fn root(&self) -> &str {
        self.0.root()
    }

    fn temp_dir(&self) -> &str {
        self.0.temp_dir()
    }

    fn guarantees(&self) -> &Guarantees {
        self.0.guarantees()
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_dropped_while_its_command_starts_gives_its_place_back() {
    let dir = tempfile::tempdir().expect("a directory");
    let shell = Called::over(Arc::new(Stuck(MemorySandbox::new())), dir, |shell| shell.max_tasks(1));
    let background = || json!({"command": "sleep 1000", "run_in_background": true});
    for _ in 0..3 {
        let call = shell.try_call(shell.run.cx(), "bash", background());
        let ended = tokio::time::timeout(Duration::from_secs(1), call).await;
        assert!(ended.is_err(), "the place of the earlier call is free: {ended:?}");
    }
}
