//! [`PerSession`]: one sandbox per session.

mod sessions;

use std::{
    fmt,
    sync::{Arc, OnceLock},
    time::Duration,
};

use agent_core::{
    Result, RunCx, Tool, ToolOptions, ToolOutput, ToolRequest, ToolSpec, async_trait,
    tool::{Reconciled, Toolset},
};

use self::sessions::{Making, Sessions};
use crate::{
    Shell, ToolSet, Workspace,
    sandbox::{MemorySandbox, Sandbox},
};

/// Tools over a sandbox per session: the session's first call creates the sandbox; it is closed
/// when the session has made no call for some time, or with the agent. A later call gets a new one;
/// an implementation that persists the sandbox's content can restore it by the session's name. Runs
/// that call none of the tools need no sandbox.
///
/// All runs of a session, including its sub-agents, share the sandbox. Background commands of a
/// session end with it.
///
/// ```
/// use std::time::Duration;
///
/// use agent_tools::{PerSession, sandbox::MemorySandbox};
///
/// let tools = PerSession::new(|session| async move {
///     println!("a sandbox for {session}");
///     Ok(MemorySandbox::new())
/// });
/// let tools = tools.idle(Duration::from_secs(300)); // for `AgentBuilder::toolset`
/// # drop(tools);
/// ```
pub struct PerSession {
    sessions: Sessions,
    /// Tools for all sessions: each call is forwarded to the session's own tool.
    offered: OnceLock<Vec<Arc<dyn Tool>>>,
}

impl PerSession {
    /// Creates tools over the sandboxes that `make` returns for a session name. The tools are those
    /// of [`Shell`] and of [`Workspace`]. An error of `make` becomes the error of the call that
    /// needed the sandbox; the next call tries again.
    pub fn new<S: Sandbox, F>(make: impl Fn(Arc<str>) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<S>> + Send + 'static,
    {
        let make = move |session| -> Making {
            let made = make(session);
            Box::pin(async { Ok(Arc::new(made.await?) as Arc<dyn Sandbox>) })
        };
        let tools = |sandbox: Arc<dyn Sandbox>| -> Result<ToolSet> {
            Ok(Workspace::shared(sandbox.clone()).tools().extend(Shell::shared(sandbox).tools()?))
        };
        Self::of(Sessions::new(Arc::new(make), Arc::new(tools), Duration::from_secs(900)))
    }

    /// Sets the tools over a sandbox. Default: those of [`Workspace`] and of [`Shell`].
    ///
    /// Their specifications are read once, over an empty [`MemorySandbox`], so every sandbox must
    /// have the same tools.
    #[must_use]
    pub fn offering(mut self, tools: impl Fn(Arc<dyn Sandbox>) -> Result<ToolSet> + Send + Sync + 'static) -> Self {
        self.sessions.tools = Arc::new(tools);
        Self::of(self.sessions)
    }

    /// Sets the time after which an unused sandbox is closed; each step of a run restarts it. It
    /// should exceed the duration of a model call. Default: 15 minutes.
    #[must_use]
    pub fn idle(mut self, longest: Duration) -> Self {
        self.sessions.idle = longest;
        Self::of(self.sessions)
    }

    fn of(sessions: Sessions) -> Self {
        Self { sessions, offered: OnceLock::new() }
    }

    fn offered(&self) -> Result<&Vec<Arc<dyn Tool>>> {
        if let Some(offered) = self.offered.get() {
            return Ok(offered);
        }
        let described = (self.sessions.tools)(Arc::new(MemorySandbox::new()))?.into_tools()?;
        let in_session = |tool: Arc<dyn Tool>| -> Arc<dyn Tool> {
            Arc::new(InSession { spec: tool.spec(), options: tool.options(), sessions: self.sessions.clone() })
        };
        Ok(self.offered.get_or_init(|| described.into_iter().map(in_session).collect()))
    }
}

#[async_trait]
impl Toolset for PerSession {
    async fn tools(&self, cx: &RunCx) -> Result<Vec<Arc<dyn Tool>>> {
        self.sessions.goes_on(&cx.ids().session);
        self.offered().cloned()
    }

    async fn close(&self) -> Result<()> {
        self.sessions.close().await
    }
}

/// One of the tools, for any session.
struct InSession {
    spec: ToolSpec,
    options: ToolOptions,
    sessions: Sessions,
}

#[async_trait]
impl Tool for InSession {
    fn spec(&self) -> ToolSpec {
        self.spec.clone()
    }

    fn options(&self) -> ToolOptions {
        self.options.clone()
    }

    async fn call(&self, req: ToolRequest) -> Result<ToolOutput> {
        let using = self.sessions.enter(&req.cx.ids().session);
        using.tool(&self.spec.name).await?.call(req).await
    }

    async fn reconcile(&self, req: ToolRequest) -> Result<Reconciled> {
        let using = self.sessions.enter(&req.cx.ids().session);
        using.tool(&self.spec.name).await?.reconcile(req).await
    }
}

impl fmt::Debug for PerSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PerSession")
            .field("idle", &self.sessions.idle)
            .field("open", &self.sessions.len())
            .finish_non_exhaustive()
    }
}
