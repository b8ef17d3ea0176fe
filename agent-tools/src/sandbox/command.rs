//! [`Command`].

use std::{collections::BTreeMap, fmt};

/// Program to run in a [`Sandbox`](super::Sandbox).
///
/// ```
/// use agent_tools::sandbox::Command;
///
/// let line = Command::shell("ls | wc -l").dir("src");
/// assert_eq!((line.program.as_str(), line.args[1].as_str()), ("sh", "ls | wc -l"));
/// ```
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Command {
    /// Name or path of the program.
    pub program: String,
    /// Arguments.
    pub args: Vec<String>,
    /// Working directory, relative to the root of the sandbox or absolute. Default: the root.
    pub dir: Option<String>,
    /// Environment variables in addition to those of the sandbox. [`Debug`] shows only their names.
    pub env: BTreeMap<String, String>,
}

impl Command {
    /// Creates a command without arguments.
    pub fn new(program: impl Into<String>) -> Self {
        Self { program: program.into(), args: Vec::new(), dir: None, env: BTreeMap::new() }
    }

    /// Creates a command that runs a line in the shell `sh`.
    pub fn shell(line: impl Into<String>) -> Self {
        Self::new("sh").arg("-c").arg(line)
    }

    /// Adds an argument.
    #[must_use]
    pub fn arg(mut self, arg: impl Into<String>) -> Self {
        self.args.push(arg.into());
        self
    }

    /// Sets the working directory.
    #[must_use]
    pub fn dir(mut self, dir: impl Into<String>) -> Self {
        self.dir = Some(dir.into());
        self
    }

    /// Sets an environment variable.
    #[must_use]
    pub fn env(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.env.insert(name.into(), value.into());
        self
    }
}

impl fmt::Debug for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Command")
            .field("program", &self.program)
            .field("args", &self.args)
            .field("dir", &self.dir)
            .field("env", &self.env.keys())
            .finish()
    }
}
