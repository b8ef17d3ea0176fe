//! [`Shell`]: commands in a sandbox.

mod bash;
mod clean;
mod task;
mod task_tools;
mod transcript;

use std::{sync::Arc, time::Duration};

use agent_core::{Error, Result};

use self::task::Tasks;
use crate::{ToolSet, sandbox::Sandbox};

/// Tools that run commands in a [`Sandbox`]: `bash`, and `bash_output`, `bash_input` and
/// `kill_bash` for background commands. Models know these names and parameters from training.
///
/// Output is shown without colours and without overwritten lines; of longer output, the model sees
/// both ends, and the whole is written to a file in the sandbox's temporary directory. A command
/// that exceeds its timeout is killed with its descendants, as is one whose run is cancelled or
/// past its deadline.
///
/// A crash leaves a command in doubt, which is not repeated: a person is asked. A background
/// command ends with the application; the model is informed if it asks for that command later. Each
/// session has its own commands, which other sessions cannot access.
///
/// ```
/// use agent_tools::{Shell, sandbox::{Exit, MemorySandbox}};
///
/// let sandbox = MemorySandbox::new().program("bash", |_| ("total 0\n".into(), Exit::code(0)));
/// let tools = Shell::over(sandbox).max_output_bytes(10_000).tools()?;
/// assert_eq!(tools.names(), ["bash", "bash_output", "bash_input", "kill_bash"]);
/// # Ok::<(), agent_core::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Shell {
    sandbox: Arc<dyn Sandbox>,
    program: String,
    limits: Limits,
}

#[derive(Clone, Copy, Debug)]
struct Limits {
    timeout: Duration,
    max_timeout: Duration,
    output: usize,
    tasks: usize,
}

impl Shell {
    /// Creates the tools over a sandbox.
    pub fn over(sandbox: impl Sandbox) -> Self {
        Self::shared(Arc::new(sandbox))
    }

    /// Creates the tools over a shared sandbox.
    pub fn shared(sandbox: Arc<dyn Sandbox>) -> Self {
        let limits = Limits {
            timeout: Duration::from_secs(120),
            max_timeout: Duration::from_secs(600),
            output: 30_000,
            tasks: 16,
        };
        Self { sandbox, program: "bash".to_owned(), limits }
    }

    /// Sets the shell that runs the commands; it must accept `-c`. Default: `bash`.
    #[must_use]
    pub fn program(mut self, program: impl Into<String>) -> Self {
        self.program = program.into();
        self
    }

    /// Sets the default timeout of a command. Default: 2 minutes.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.limits.timeout = timeout;
        self
    }

    /// Sets the maximum timeout that a model may request. Default: 10 minutes.
    #[must_use]
    pub fn max_timeout(mut self, longest: Duration) -> Self {
        self.limits.max_timeout = longest;
        self
    }

    /// Sets the approximate maximum of output bytes for the model. Default: 30,000.
    #[must_use]
    pub fn max_output_bytes(mut self, most: usize) -> Self {
        self.limits.output = most;
        self
    }

    /// Sets the maximum of background commands per session. Default: 16.
    #[must_use]
    pub fn max_tasks(mut self, most: usize) -> Self {
        self.limits.tasks = most;
        self
    }

    /// Builds the tools.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](agent_core::ErrorKind::Config) if the default timeout exceeds the
    /// maximum.
    pub fn tools(self) -> Result<ToolSet> {
        if self.limits.timeout > self.limits.max_timeout {
            return Err(Error::config("the shell's timeout is longer than its max_timeout"));
        }
        let tasks = Arc::new(Tasks::default());
        Ok(ToolSet::new("shell")
            .tool(bash::Bash::new(self, tasks.clone()))
            .tool(task_tools::output(tasks.clone()))
            .tool(task_tools::input(tasks.clone()))
            .tool(task_tools::kill(tasks)))
    }
}
