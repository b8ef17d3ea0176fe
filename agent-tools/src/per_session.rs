//! [`PerSession`]: a sandbox for each session.

use std::{
    collections::HashMap,
    fmt,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::Duration,
};

use agent_core::{Error, Result, RunCx, Tool, async_trait, tool::Toolset};
use tokio::{
    spawn,
    sync::OnceCell,
    time::{Instant, sleep_until},
};

use crate::{Shell, ToolSet, Workspace, sandbox::Sandbox};

/// Tools over a sandbox that each session has for itself: it is made when a run of the session first needs it, and closed when the session has
/// done nothing for some time, or with the agent. A run that comes later gets a new one; whoever keeps what was in it takes it up again by the session's name.
///
/// The runs of a session, those of its sub-agents too, share it. What a session left running in the background ends with it.
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
    make: Box<Make>,
    tools: Box<Tools>,
    idle: Duration,
    open: Arc<Open>,
}

type Making = Pin<Box<dyn Future<Output = Result<Arc<dyn Sandbox>>> + Send>>;
type Make = dyn Fn(Arc<str>) -> Making + Send + Sync;
type Tools = dyn Fn(Arc<dyn Sandbox>) -> Result<ToolSet> + Send + Sync;
type Open = Mutex<HashMap<Arc<str>, Arc<Place>>>;

/// What one session has.
struct Place {
    made: OnceCell<Made>,
    used: Mutex<Instant>,
}

struct Made {
    sandbox: Arc<dyn Sandbox>,
    tools: Vec<Arc<dyn Tool>>,
}

impl PerSession {
    /// Sandboxes that `make` makes, for sessions by their names. Their tools are those of [`Shell`] and of [`Workspace`].
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
        let (make, tools) = (Box::new(make), Box::new(tools));
        Self { make, tools, idle: Duration::from_secs(900), open: Arc::default() }
    }

    /// Sets the tools that are offered over a sandbox. Default: those of [`Workspace`] and of [`Shell`].
    #[must_use]
    pub fn offering(mut self, tools: impl Fn(Arc<dyn Sandbox>) -> Result<ToolSet> + Send + Sync + 'static) -> Self {
        self.tools = Box::new(tools);
        self
    }

    /// Sets how long a sandbox is kept that no run uses. Default: 15 minutes.
    #[must_use]
    pub fn idle(mut self, longest: Duration) -> Self {
        self.idle = longest;
        self
    }

    fn place(&self, session: &Arc<str>) -> Arc<Place> {
        let mut open = lock(&self.open);
        let new = || Arc::new(Place { made: OnceCell::new(), used: Mutex::new(Instant::now()) });
        let place = open.entry(session.clone()).or_insert_with(new).clone();
        *lock(&place.used) = Instant::now();
        place
    }
}

#[async_trait]
impl Toolset for PerSession {
    async fn tools(&self, cx: &RunCx) -> Result<Vec<Arc<dyn Tool>>> {
        let session = &cx.ids().session;
        let place = self.place(session);
        let make = async {
            let sandbox = (self.make)(session.clone()).await?;
            let tools: Vec<_> = (self.tools)(sandbox.clone())?.into_iter().collect();
            spawn(close_when_idle(Arc::downgrade(&self.open), session.clone(), self.idle));
            Ok::<_, Error>(Made { sandbox, tools })
        };
        Ok(place.made.get_or_try_init(|| make).await?.tools.clone())
    }

    async fn close(&self) -> Result<()> {
        let open: Vec<_> = lock(&self.open).drain().collect();
        let mut closed = Ok(());
        for (_, place) in open {
            // All are closed; the error that is told is the last one.
            closed = place.close().await.and(closed);
        }
        closed
    }
}

impl Place {
    /// True if a run has its tools: it may be in the middle of a call.
    fn is_used(&self) -> bool {
        self.made.get().is_some_and(|made| made.tools.iter().any(|tool| Arc::strong_count(tool) > 1))
    }

    async fn close(&self) -> Result<()> {
        let Some(made) = self.made.get() else { return Ok(()) };
        for tool in &made.tools {
            // What is left of it goes with the sandbox.
            drop(tool.close().await);
        }
        made.sandbox.close().await
    }
}

/// Waits until a session has done nothing for so long, and closes what it has.
async fn close_when_idle(open: Weak<Open>, session: Arc<str>, idle: Duration) {
    let mut until = Instant::now() + idle;
    loop {
        sleep_until(until).await;
        let Some(open) = open.upgrade() else { return };
        let due = {
            let mut open = lock(&open);
            let Some(place) = open.get(&session) else { return };
            until = *lock(&place.used) + idle;
            if place.is_used() {
                *lock(&place.used) = Instant::now();
                until = Instant::now() + idle;
            }
            if until <= Instant::now() { open.remove(&session) } else { None }
        };
        if let Some(place) = due {
            // Nobody is there to be told: what stays is removed as the sandbox's documentation says.
            return drop(place.close().await);
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl fmt::Debug for PerSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PerSession")
            .field("idle", &self.idle)
            .field("open", &lock(&self.open).len())
            .finish_non_exhaustive()
    }
}
