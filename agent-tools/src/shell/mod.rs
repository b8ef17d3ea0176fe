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

/// Tools that run commands in a [`Sandbox`]: `bash`, and for what runs in the background `bash_output`, `bash_input` and `kill_bash`. Their names
/// and parameters are those that models know.
///
/// What a command writes is shown without colours and without lines that were written over; of more than the model is shown, both ends, and the
/// whole is a file in the sandbox's temporary directory. A command that takes too long is ended, with all that it started, as is one
/// whose run is cancelled or has no time left.
///
/// A crash leaves a command in doubt, which is not repeated: a person is asked. A command in the background ends with the application; a
/// model that asks for it then is told so. Each session has its own, and no other can name them.
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
    /// The tools over a sandbox.
    pub fn over(sandbox: impl Sandbox) -> Self {
        Self::shared(Arc::new(sandbox))
    }

    /// The tools over a sandbox that others use too.
    pub fn shared(sandbox: Arc<dyn Sandbox>) -> Self {
        let limits = Limits {
            timeout: Duration::from_secs(120),
            max_timeout: Duration::from_secs(600),
            output: 30_000,
            tasks: 16,
        };
        Self { sandbox, program: "bash".to_owned(), limits }
    }

    /// Sets the shell that reads the commands; it must take `-c`. Default: `bash`.
    #[must_use]
    pub fn program(mut self, program: impl Into<String>) -> Self {
        self.program = program.into();
        self
    }

    /// Sets how long a command may take if the model says nothing of it. Default: 2 minutes.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.limits.timeout = timeout;
        self
    }

    /// Sets the longest time that a model may give a command. Default: 10 minutes.
    #[must_use]
    pub fn max_timeout(mut self, longest: Duration) -> Self {
        self.limits.max_timeout = longest;
        self
    }

    /// Sets about how many bytes of an output the model is shown. Default: 30,000.
    #[must_use]
    pub fn max_output_bytes(mut self, most: usize) -> Self {
        self.limits.output = most;
        self
    }

    /// Sets how many commands of a session may run in the background. Default: 16.
    #[must_use]
    pub fn max_tasks(mut self, most: usize) -> Self {
        self.limits.tasks = most;
        self
    }

    /// The tools.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](agent_core::ErrorKind::Config) for a timeout that is longer than the longest.
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
