//! Programs that serve over their standard input and output.

mod last_words;
mod process;

use std::{collections::BTreeMap, fmt, path::PathBuf};

use agent_core::{Error, Result, tool::Secret};
use tokio::io::{AsyncRead, AsyncWrite};

pub(crate) use self::{last_words::LastWords, process::Process};

/// Output stream of a program or a server.
// Public if the feature `mcp` re-exports it.
#[cfg_attr(not(feature = "mcp"), allow(unreachable_pub))]
pub type Reader = Box<dyn AsyncRead + Send + Unpin>;

/// Input stream of a program or a server.
#[cfg_attr(not(feature = "mcp"), allow(unreachable_pub))]
pub type Writer = Box<dyn AsyncWrite + Send + Unpin>;

/// Server program, started as a child process and used over its standard input and output.
///
/// The program inherits only `PATH`, `HOME`, `LANG`, `LOGNAME`, `SHELL`, `TERM`, `TMPDIR` and
/// `USER` of this process's environment (on Windows also the variables that programs need to
/// start), since other variables may hold keys. Further variables are [passed](Self::pass) by name
/// or [set](Self::env). Its standard error is logged.
///
/// ```
/// use agent_tools::Stdio;
///
/// let server = Stdio::new("npx").args(["-y", "@modelcontextprotocol/server-filesystem", "/srv/files"]).env("KEY", "hush");
/// assert!(!format!("{server:?}").contains("hush"));
/// ```
#[derive(Clone)]
pub struct Stdio {
    pub(super) program: String,
    pub(super) args: Vec<String>,
    pub(super) directory: Option<PathBuf>,
    pub(super) passed: Vec<String>,
    pub(super) env: BTreeMap<String, Secret>,
}

impl Stdio {
    /// Creates the command for a program name or path, without arguments.
    pub fn new(program: impl Into<String>) -> Self {
        Self { program: program.into(), args: Vec::new(), directory: None, passed: Vec::new(), env: BTreeMap::new() }
    }

    /// Adds an argument.
    #[must_use]
    pub fn arg(mut self, arg: impl Into<String>) -> Self {
        self.args.push(arg.into());
        self
    }

    /// Adds arguments.
    #[must_use]
    pub fn args(mut self, args: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    /// Sets the working directory. Default: that of this process.
    #[must_use]
    pub fn directory(mut self, directory: impl Into<PathBuf>) -> Self {
        self.directory = Some(directory.into());
        self
    }

    /// Passes a variable of this process's environment to the program. Building the client fails if
    /// the variable is not set.
    #[must_use]
    pub fn pass(mut self, name: impl Into<String>) -> Self {
        self.passed.push(name.into());
        self
    }

    /// Sets an environment variable. The value appears in no log and no error.
    #[must_use]
    pub fn env(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.env.insert(name.into(), Secret::from(value));
        self
    }

    /// Describes the program as an MCP server for an ACP agent, with its variables.
    #[cfg(feature = "acp")]
    pub(crate) fn as_acp(&self, name: &str) -> serde_json::Value {
        let passed = self.passed.iter().filter_map(|name| Some((name.as_str(), std::env::var(name).ok()?)));
        let set = self.env.iter().map(|(name, value)| (name.as_str(), value.expose().to_owned()));
        let env = passed.chain(set).map(|(name, value)| serde_json::json!({"name": name, "value": value}));
        let env: Vec<_> = env.collect();
        serde_json::json!({"name": name, "command": self.program, "args": self.args, "env": env})
    }

    /// Validates the settings without starting the program.
    pub(crate) fn check(&self) -> Result<()> {
        if self.program.is_empty() {
            return Err(Error::config("a server's program has no name"));
        }
        match self.passed.iter().find(|name| std::env::var_os(name).is_none()) {
            Some(name) => Err(Error::config(format!("the variable {name} is to be passed on, and is not set"))),
            None => Ok(()),
        }
    }
}

/// Arguments may hold a key, so only their number is shown.
impl fmt::Debug for Stdio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stdio")
            .field("program", &self.program)
            .field("args", &self.args.len())
            .field("directory", &self.directory)
            .field("passed", &self.passed)
            .field("env", &self.env)
            .finish()
    }
}
