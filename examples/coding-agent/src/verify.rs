//! The tests decide when the work is done, not the model.

use std::{sync::Arc, time::Duration};

use agent::{
    core::Exit as RunExit,
    prelude::*,
    tools::sandbox::{Command, Exit, Sandbox},
};

/// Maximum time of the test command.
const LONGEST: Duration = Duration::from_secs(600);
/// Bytes of the tests' output that the model receives: the end, which has the summary.
const SHOWN: usize = 6_000;

/// The test command of a repository, in its sandbox. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct TestCommand {
    sandbox: Arc<dyn Sandbox>,
    line: Arc<str>,
}

/// Result of the tests.
#[derive(Clone, Debug)]
pub(crate) struct TestReport {
    pub(crate) is_passed: bool,
    pub(crate) output: String,
}

impl TestCommand {
    pub(crate) fn new(sandbox: impl Sandbox, line: impl Into<Arc<str>>) -> Self {
        Self { sandbox: Arc::new(sandbox), line: line.into() }
    }

    /// Runs the tests.
    pub(crate) async fn run(&self) -> Result<TestReport> {
        let running = output_of(&*self.sandbox, Command::shell(&*self.line));
        let (output, exit) = tokio::time::timeout(LONGEST, running).await.map_err(|_| {
            Error::tool(format!("'{}' takes longer than {LONGEST:?}: choose a faster --test", self.line))
        })??;
        if exit.code == Some(127) {
            let message = format!("'{}' is not in the sandbox: {}", self.line, output.trim());
            return Err(Error::config(message + "; name its folder with --readable, or another --test"));
        }
        Ok(TestReport { is_passed: exit.is_success(), output })
    }
}

/// Ends the run only when the tests pass. Otherwise the model receives their output and continues.
#[derive(Debug)]
pub(crate) struct TestsPass(pub(crate) TestCommand);

#[async_trait]
impl Middleware for TestsPass {
    async fn on_exit(&self, cx: &RunCx, _exit: &mut RunExit) -> Result<Verdict> {
        let report = self.0.run().await?;
        if report.is_passed {
            return Ok(Verdict::Proceed);
        }
        let start = report.output.floor_char_boundary(report.output.len().saturating_sub(SHOWN));
        let end = &report.output[start..];
        cx.steer(Message::user(format!("The tests still fail. `{}` prints:\n\n{end}", self.0.line)))?;
        Ok(Verdict::Again)
    }
}

/// Runs a command in a sandbox, and returns its output and how it ended.
pub(crate) async fn output_of(sandbox: &dyn Sandbox, command: Command) -> Result<(String, Exit)> {
    let mut process = sandbox.start(command).await?;
    drop(process.take_input());
    let mut output = Vec::new();
    while let Some(piece) = process.output().await {
        output.extend_from_slice(&piece);
    }
    Ok((String::from_utf8_lossy(&output).into_owned(), process.exit().await?))
}
