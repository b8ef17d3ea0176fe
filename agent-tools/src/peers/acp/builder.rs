//! [`AcpBuilder`].

use std::{path::PathBuf, sync::Arc, time::Duration};

use agent_core::{Error, Result};

use super::{
    AcpAgent, Inner,
    permission::{Permission, PermissionRequest, Rule},
    shelf::Shelf,
};
use crate::{Stdio, Workspace};

/// Builds an [`AcpAgent`]. What is wrong with the settings is said by [`build`](Self::build).
#[derive(Clone, Debug)]
#[must_use]
pub struct AcpBuilder {
    program: Stdio,
    name: String,
    directory: Option<PathBuf>,
    workspace: Option<Workspace>,
    method: Option<String>,
    rule: Rule,
    repeatable: bool,
    time: Duration,
    start: Duration,
    keep: Duration,
    line: usize,
    answer: usize,
}

impl AcpBuilder {
    pub(super) fn new(program: Stdio) -> Self {
        Self {
            program,
            name: "acp".to_owned(),
            directory: None,
            workspace: None,
            method: None,
            rule: Rule::default(),
            repeatable: false,
            time: Duration::from_secs(3600),
            start: Duration::from_secs(60),
            keep: Duration::from_secs(600),
            line: 4 << 20,
            answer: 1 << 20,
        }
    }

    /// Sets the name of the tool. Default: `acp`.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// Sets the directory in which the agent works. Default: that of the workspace, or else that of this process.
    pub fn directory(mut self, directory: impl Into<PathBuf>) -> Self {
        self.directory = Some(directory.into());
        self
    }

    /// Lets the agent read and write the workspace's files through this process; if the workspace is read-only, read them. Default:
    /// it is refused.
    pub fn workspace(mut self, workspace: Workspace) -> Self {
        self.workspace = Some(workspace);
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
        self.rule = Rule(Arc::new(rule));
        self
    }

    /// Logs the agent in by this method of its own, for agents that want it.
    pub fn authenticate(mut self, method: impl Into<String>) -> Self {
        self.method = Some(method.into());
        self
    }

    /// Says that the agent only looks at things: after a crash, a message that was cut off is sent again, and nobody is asked. Default:
    /// false.
    pub fn repeatable(mut self) -> Self {
        self.repeatable = true;
        self
    }

    /// Sets the longest time of a call; the run's deadline may end it before. Default: 1 hour.
    pub fn timeout(mut self, longest: Duration) -> Self {
        self.time = longest;
        self
    }

    /// Sets how long the agent may take to start, or to load a session. Default: 60 seconds.
    pub fn start_timeout(mut self, longest: Duration) -> Self {
        self.start = longest;
        self
    }

    /// Sets how long the program is kept that waits for a person's answer or the next message. Default: 10 minutes.
    pub fn keep(mut self, time: Duration) -> Self {
        self.keep = time;
        self
    }

    /// Sets the most bytes of one message of the protocol. Default: 4 MiB.
    pub fn max_message(mut self, most: usize) -> Self {
        self.line = most;
        self
    }

    /// Sets the most bytes of an answer. Default: 1 MiB.
    pub fn max_answer(mut self, most: usize) -> Self {
        self.answer = most;
        self
    }

    /// The agent. Nothing is started yet.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](agent_core::ErrorKind::Config) if the program has no name, a variable that is to be passed on is not
    /// set, or the directory cannot be found.
    pub fn build(self) -> Result<AcpAgent> {
        self.program.check()?;
        let directory = match (self.directory, &self.workspace) {
            (Some(directory), _) => std::path::absolute(directory),
            (None, Some(workspace)) => Ok(workspace.path().to_owned()),
            (None, None) => std::env::current_dir(),
        };
        let directory = directory.map_err(|e| Error::config(format!("the agent's directory cannot be found: {e}")))?;
        let inner = Inner {
            program: self.program.directory(directory.clone()),
            name: self.name,
            directory,
            workspace: self.workspace,
            method: self.method,
            rule: self.rule,
            repeatable: self.repeatable,
            time: self.time,
            start: self.start,
            keep: self.keep,
            line: self.line,
            answer: self.answer,
            waiting: Shelf::default(),
            idle: Shelf::default(),
        };
        Ok(AcpAgent(Arc::new(inner)))
    }
}
