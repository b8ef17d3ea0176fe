//! [`Sessions`]: sandboxes of sessions and their idle timeout.

use std::{
    collections::HashMap,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::Duration,
};

use agent_core::{Error, Result, Tool};
use tokio::{
    spawn,
    sync::OnceCell,
    time::{Instant, sleep_until},
};

use crate::{ToolSet, sandbox::Sandbox};

pub(super) type Making = Pin<Box<dyn Future<Output = Result<Arc<dyn Sandbox>>> + Send>>;
type Make = dyn Fn(Arc<str>) -> Making + Send + Sync;
type Tools = dyn Fn(Arc<dyn Sandbox>) -> Result<ToolSet> + Send + Sync;
type Open = Mutex<HashMap<Arc<str>, Arc<Place>>>;

/// Sessions with a sandbox, and the factory of sandboxes. Cheap to clone.
#[derive(Clone)]
pub(super) struct Sessions {
    make: Arc<Make>,
    pub(super) tools: Arc<Tools>,
    pub(super) idle: Duration,
    open: Arc<Open>,
}

/// State of one session.
struct Place {
    session: Arc<str>,
    /// Empty until the first call.
    made: OnceCell<Made>,
    usage: Mutex<Usage>,
}

struct Made {
    sandbox: Arc<dyn Sandbox>,
    tools: HashMap<String, Arc<dyn Tool>>,
}

struct Usage {
    /// Number of running calls.
    calls: usize,
    /// Time of the last activity.
    last: Instant,
}

impl Sessions {
    pub(super) fn new(make: Arc<Make>, tools: Arc<Tools>, idle: Duration) -> Self {
        Self { make, tools, idle, open: Arc::default() }
    }

    /// Marks a call of the session as running until the returned guard is dropped.
    pub(super) fn enter(&self, session: &Arc<str>) -> Using<'_> {
        let mut open = lock(&self.open);
        let place = open.entry(session.clone()).or_insert_with(|| {
            let place = Arc::new(Place::new(session.clone()));
            spawn(close_when_idle(Arc::downgrade(&self.open), Arc::downgrade(&place), self.idle));
            place
        });
        lock(&place.usage).calls += 1;
        Using { sessions: self, place: place.clone() }
    }

    /// Records activity of the session outside of calls.
    pub(super) fn goes_on(&self, session: &Arc<str>) {
        if let Some(place) = lock(&self.open).get(session) {
            lock(&place.usage).last = Instant::now();
        }
    }

    /// Returns the number of sessions.
    pub(super) fn len(&self) -> usize {
        lock(&self.open).len()
    }

    /// Closes the sandboxes of all sessions. Returns the last error.
    pub(super) async fn close(&self) -> Result<()> {
        let open: Vec<_> = lock(&self.open).drain().collect();
        let mut closed = Ok(());
        for (_, place) in open {
            closed = place.close().await.and(closed);
        }
        closed
    }
}

/// Running call of a session.
pub(super) struct Using<'a> {
    sessions: &'a Sessions,
    place: Arc<Place>,
}

impl Using<'_> {
    /// Returns the session's tool of this name; creates the sandbox on the first call.
    pub(super) async fn tool(&self, name: &str) -> Result<&dyn Tool> {
        let made = self.place.made.get_or_try_init(|| self.make()).await?;
        let tool = made.tools.get(name).map(|tool| &**tool);
        tool.ok_or_else(|| {
            Error::config(format!("this session's sandbox has no tool '{name}': offer the same tools over each"))
        })
    }

    async fn make(&self) -> Result<Made> {
        let sandbox = (self.sessions.make)(self.place.session.clone()).await?;
        let mut tools = HashMap::new();
        for tool in (self.sessions.tools)(sandbox.clone())?.into_tools()? {
            tool.warm_up().await?;
            tools.insert(tool.spec().name, tool);
        }
        Ok(Made { sandbox, tools })
    }
}

impl Drop for Using<'_> {
    fn drop(&mut self) {
        let mut usage = lock(&self.place.usage);
        (usage.calls, usage.last) = (usage.calls - 1, Instant::now());
    }
}

impl Place {
    fn new(session: Arc<str>) -> Self {
        Self { session, made: OnceCell::new(), usage: Mutex::new(Usage { calls: 0, last: Instant::now() }) }
    }

    async fn close(&self) -> Result<()> {
        let Some(made) = self.made.get() else { return Ok(()) };
        for tool in made.tools.values() {
            // The sandbox's removal covers the rest.
            drop(tool.close().await);
        }
        made.sandbox.close().await
    }
}

/// Waits until a session has been idle for `idle`, and closes its sandbox.
async fn close_when_idle(open: Weak<Open>, place: Weak<Place>, idle: Duration) {
    let mut until = Instant::now() + idle;
    loop {
        sleep_until(until).await;
        let (Some(open), Some(place)) = (open.upgrade(), place.upgrade()) else { return };
        {
            // The lock excludes new calls meanwhile.
            let mut open = lock(&open);
            let usage = lock(&place.usage);
            let now = Instant::now();
            until = if usage.calls > 0 { now + idle } else { usage.last + idle };
            if until > now {
                continue;
            }
            // The agent was closed, and the map now holds another entry.
            if !open.get(&place.session).is_some_and(|there| Arc::ptr_eq(there, &place)) {
                return;
            }
            open.remove(&place.session);
        }
        // Nothing receives the error: remains are removed as the sandbox's documentation says.
        return drop(place.close().await);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
