//! [`AcpBuilder`].

use std::{path::PathBuf, sync::Arc, time::Duration};

use agent_core::{Error, Result};

use super::{
    AcpAgent, Inner,
    permission::{Permission, PermissionRequest, Rule},
    settings::Settings,
    shelf::Shelf,
};
use crate::{Stdio, Workspace};

/// Builds an [`AcpAgent`]. What is wrong with the settings is said by [`build`](Self::build).
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

    /// Sets the directory in which the agent works. Default: that of the workspace, or else that of this process.
    pub fn directory(mut self, directory: impl Into<PathBuf>) -> Self {
        self.0.directory = Some(directory.into());
        self
    }

    /// Lets the agent read and write the workspace's files through this process; if the workspace is read-only, read them. A call may hand
    /// over files of it too. Default: it is refused.
    pub fn workspace(mut self, workspace: Workspace) -> Self {
        self.0.workspace = Some(workspace);
        self
    }

    /// Lets the agent run commands in this sandbox, as terminals. What it may run is for the sandbox to bound: a command is asked about only if
    /// the agent asks for a [permission](Self::permissions) by itself. Default: terminals are not offered.
    #[cfg(feature = "sandbox")]
    pub fn terminals(mut self, sandbox: Arc<dyn crate::sandbox::Sandbox>) -> Self {
        self.0.sandbox = Some(sandbox);
        self
    }

    /// Tells the agent of a server of the Model Context Protocol, which the agent itself starts. The values of its variables are handed to the
    /// agent. Default: none.
    pub fn mcp_server(mut self, name: impl Into<String>, server: Stdio) -> Self {
        self.0.servers.push((name.into(), server));
        self
    }

    /// Decides which permissions the agent gets. Default: each is asked for.
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

    /// Logs the agent in by this method of its own, for agents that want it.
    pub fn authenticate(mut self, method: impl Into<String>) -> Self {
        self.0.method = Some(method.into());
        self
    }

    /// Says that the agent only looks at things: after a crash, a message that was cut off is sent again, and nobody is asked. Default:
    /// false.
    pub fn repeatable(mut self) -> Self {
        self.0.repeatable = true;
        self
    }

    /// Sets the longest time of a call; the run's deadline may end it before. Default: 1 hour.
    pub fn timeout(mut self, longest: Duration) -> Self {
        self.0.time = longest;
        self
    }

    /// Sets how long the agent may take to start, or to load a session. Default: 60 seconds.
    pub fn start_timeout(mut self, longest: Duration) -> Self {
        self.0.start = longest;
        self
    }

    /// Sets how long the program is kept that waits for a person's answer or the next message. Default: 10 minutes.
    pub fn keep(mut self, time: Duration) -> Self {
        self.0.keep = time;
        self
    }

    /// Sets the most bytes of one message of the protocol. Default: 4 MiB.
    pub fn max_message(mut self, most: usize) -> Self {
        self.0.line = most;
        self
    }

    /// Sets the most bytes of an answer. Default: 1 MiB.
    pub fn max_answer(mut self, most: usize) -> Self {
        self.0.answer = most;
        self
    }

    /// The agent. Nothing is started yet.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](agent_core::ErrorKind::Config) if the program has no name, a variable that is to be passed on is not
    /// set, or the directory cannot be found.
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
