//! [`Command`].

use std::{collections::BTreeMap, fmt};

/// A program to be run in a [`Sandbox`](super::Sandbox).
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
    /// The program, by its name or its path.
    pub program: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// The directory that it starts in, relative to the root of the sandbox or absolute. Default: the root.
    pub dir: Option<String>,
    /// Variables beside those that the sandbox sets. [`Debug`] shows their names alone.
    pub env: BTreeMap<String, String>,
}

impl Command {
    /// The program without arguments.
    pub fn new(program: impl Into<String>) -> Self {
        Self { program: program.into(), args: Vec::new(), dir: None, env: BTreeMap::new() }
    }

    /// A line for the shell `sh`.
    pub fn shell(line: impl Into<String>) -> Self {
        Self::new("sh").arg("-c").arg(line)
    }

    /// Adds an argument.
    #[must_use]
    pub fn arg(mut self, arg: impl Into<String>) -> Self {
        self.args.push(arg.into());
        self
    }

    /// Sets the directory that it starts in.
    #[must_use]
    pub fn dir(mut self, dir: impl Into<String>) -> Self {
        self.dir = Some(dir.into());
        self
    }

    /// Sets a variable.
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
