//! [`AcpBuilder`].

use std::{path::PathBuf, sync::Arc, time::Duration};

use agent_core::{Error, Result};
use serde_json::Value;

use super::{
    AcpAgent, Inner,
    permission::{Permission, PermissionRequest, Rule},
    settings::Settings,
    shelf::Shelf,
};
use crate::{Stdio, Workspace};

/// Builds an [`AcpAgent`]. [`build`](Self::build) reports invalid settings.
#[derive(Clone, Debug)]
#[must_use]
pub struct AcpBuilder(Settings);

impl AcpBuilder {
    pub(super) fn new(program: Stdio) -> Self {
        Self(Settings::new(program))
    }

    /// Sets the name of the tool. Default: `acp`.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.0.name = name.into();
        self
    }

    /// Sets the working directory of the agent. Default: that of the workspace, otherwise that of
    /// this process.
    pub fn directory(mut self, directory: impl Into<PathBuf>) -> Self {
        self.0.directory = Some(directory.into());
        self
    }

    /// Allows the agent to read and write the workspace's files through this process; with a
    /// read-only workspace, to read them. Calls may attach files of the workspace too. Default:
    /// refused.
    pub fn workspace(mut self, workspace: Workspace) -> Self {
        self.0.workspace = Some(workspace);
        self
    }

    /// Allows the agent to run commands in this sandbox, as terminals. The sandbox alone bounds the
    /// commands: a person is asked only if the agent itself requests a
    /// [permission](Self::permissions). Default: terminals are not offered.
    #[cfg(feature = "sandbox")]
    pub fn terminals(mut self, sandbox: Arc<dyn crate::sandbox::Sandbox>) -> Self {
        self.0.sandbox = Some(sandbox);
        self
    }

    /// Announces an MCP server to the agent, which starts the server itself. The agent receives the
    /// values of the server's environment variables. Default: none.
    pub fn mcp_server(mut self, name: impl Into<String>, server: Stdio) -> Self {
        self.0.servers.push((name.into(), server));
        self
    }

    /// Sets the rule that decides permission requests of the agent. Default: a person is asked each
    /// time.
    ///
    /// ```
    /// use agent_tools::{Stdio, peers::{AcpAgent, Permission}};
    ///
    /// let builder = AcpAgent::builder(Stdio::new("my-agent")).permissions(|request| match request.kind.as_deref() {
    ///     Some("read" | "search") => Permission::Allow,
    ///     Some("delete") => Permission::Reject,
    ///     _ => Permission::Ask,
    /// });
    /// # let _ = builder;
    /// ```
    pub fn permissions(mut self, rule: impl Fn(&PermissionRequest) -> Permission + Send + Sync + 'static) -> Self {
        self.0.rule = Rule(Arc::new(rule));
        self
    }

    /// Authenticates with this method of the agent, for agents that require it.
    pub fn authenticate(mut self, method: impl Into<String>) -> Self {
        self.0.method = Some(method.into());
        self
    }

    /// Sets an option of each session, by the agent's id of the option: its mode, its model, how
    /// long it thinks. The value is a text, or a truth value. A call fails if the agent refuses it.
    pub fn option(mut self, id: impl Into<String>, value: impl Into<Value>) -> Self {
        self.0.options.push((id.into(), value.into()));
        self
    }

    /// Declares the agent read-only: after a crash, an interrupted message is sent again, without
    /// asking a person. Default: false.
    pub fn repeatable(mut self) -> Self {
        self.0.repeatable = true;
        self
    }

    /// Sets the timeout of a call; the run's deadline applies too. Default: 1 hour.
    pub fn timeout(mut self, longest: Duration) -> Self {
        self.0.time = longest;
        self
    }

    /// Sets the timeout for starting the agent, or loading a session. Default: 60 seconds.
    pub fn start_timeout(mut self, longest: Duration) -> Self {
        self.0.start = longest;
        self
    }

    /// Sets the time that an idle program is kept while it waits for a person's answer or the next
    /// message. Default: 10 minutes.
    pub fn keep(mut self, time: Duration) -> Self {
        self.0.keep = time;
        self
    }

    /// Sets the maximum size of one protocol message in bytes. Default: 4 MiB.
    pub fn max_message(mut self, most: usize) -> Self {
        self.0.line = most;
        self
    }

    /// Sets the maximum size of an answer in bytes. Default: 1 MiB.
    pub fn max_answer(mut self, most: usize) -> Self {
        self.0.answer = most;
        self
    }

    /// Builds the agent. Starts nothing yet.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](agent_core::ErrorKind::Config) if the program has no name, a passed
    /// variable is not set, or the directory does not exist.
    pub fn build(self) -> Result<AcpAgent> {
        let mut settings = self.0;
        settings.program.check()?;
        settings.servers.iter().try_for_each(|(_, server)| server.check())?;
        let directory = match (settings.directory, &settings.workspace) {
            (Some(directory), _) => std::path::absolute(directory),
            (None, Some(workspace)) => Ok(workspace.path().to_owned()),
            (None, None) => std::env::current_dir(),
        };
        let directory = directory.map_err(|e| Error::config(format!("the agent's directory cannot be found: {e}")))?;
        settings.program = settings.program.directory(directory.clone());
        settings.directory = Some(directory);
        Ok(AcpAgent(Arc::new(Inner { settings, waiting: Shelf::default(), idle: Shelf::default() })))
    }
}
