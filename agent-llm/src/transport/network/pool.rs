//! Connection pool for one origin.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::Duration,
};

use agent_core::{BoxFuture, Error, Result, boxed};
use tokio::{
    sync::{Notify, futures::Notified},
    time::{Instant, sleep_until},
};

use super::{
    address::Address,
    connect::{Connector, Protocol},
    failure::{Part, unreachable},
    http1::Connection,
    http2::Shared,
    lease::{Held, Lease, StreamPermit},
    progress::Progress,
};

/// Limits of a pool.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// Time after which an idle connection is closed.
    pub(super) idle_timeout: Duration,
    /// Maximum number of idle connections per server.
    pub(super) most_idle: usize,
    /// Maximum number of connections per server.
    pub(super) most: usize,
    /// Maximum age of a connection that takes another call.
    pub(super) most_age: Option<Duration>,
}

/// Connection pool for one origin.
pub(super) struct Origin {
    pub(super) address: Address,
    limits: Limits,
    state: Mutex<State>,
    places: Arc<Places>,
}

struct State {
    /// Idle HTTP/1.1 connections, with the start of their idle period; the most recently used is
    /// last.
    idle: Vec<(Connection, Instant)>,
    /// HTTP/2 connections that accept more calls.
    shared: Vec<Shared>,
    /// `None` until the first connection has negotiated the protocol.
    speaks: Option<Protocol>,
    opening: usize,
    /// Number of connection ids assigned so far.
    ids: u64,
    /// Number of failed attempts, and the last error.
    failures: (u64, Option<Arc<Error>>),
    /// True while a task closes idle connections.
    watched: bool,
}

/// Number of connections that are open or being opened.
struct Places {
    taken: Mutex<usize>,
    /// Notified when a connection was closed, opened or released.
    changed: Notify,
}

/// Permit for one connection of a server, held until it is closed.
pub(super) struct Slot(Arc<Places>);

/// Next step of a call that needs a connection.
enum Next<'a> {
    Use(Lease),
    Open(Opening),
    Wait(Notified<'a>),
}

impl Origin {
    pub(super) fn new(address: Address, limits: Limits, speaks: Option<Protocol>) -> Self {
        let state = State {
            idle: Vec::new(),
            shared: Vec::new(),
            speaks,
            opening: 0,
            ids: 0,
            failures: (0, None),
            watched: false,
        };
        let places = Arc::new(Places { taken: Mutex::new(0), changed: Notify::new() });
        Self { address, limits, state: Mutex::new(state), places }
    }

    /// Returns true if no connection is open.
    pub(super) fn has_none(&self) -> bool {
        let state = self.lock();
        state.idle.is_empty() && state.shared.is_empty()
    }

    /// Checks out a connection for one call: an idle or shared one, or else a new one.
    ///
    /// # Errors
    /// If the server cannot be reached. Calls that wait for another call's connection attempt fail
    /// with it, so that a thousand calls to an unreachable server fail at once instead of one after
    /// the other. Calls that wait for a place while a connection is open do not.
    pub(super) async fn lease(self: &Arc<Self>, connector: &Connector) -> Result<Lease> {
        let mut seen = None;
        loop {
            match self.next(&mut seen)? {
                Next::Use(lease) => return Ok(lease),
                // Boxed, because it is rare: other calls need not reserve the space.
                Next::Open(opening) => {
                    let opened: BoxFuture<'_, _> = boxed(|| opening.open(connector));
                    return opened.await;
                }
                Next::Wait(changed) => changed.await,
            }
        }
    }

    /// `seen` is the number of failed attempts when the call began to wait for another's attempt.
    fn next(self: &Arc<Self>, seen: &mut Option<u64>) -> Result<Next<'_>> {
        let mut state = self.lock();
        if let Some(held) = self.take(&mut state) {
            return Ok(Next::Use(Lease::new(self.clone(), held, false)));
        }
        if let (failures, Some(failure)) = &state.failures
            && seen.is_some_and(|seen| seen != *failures)
        {
            return Err(again(failure));
        }
        // The first connection shows whether calls can share connections. Until then, and with
        // HTTP/2, one connection is opened at a time: each has room for many waiting calls.
        let waits = state.speaks != Some(Protocol::Http1) && state.opening > 0;
        if waits || !self.places.take(self.limits.most) {
            let are_all_opening = self.places.taken() == state.opening;
            *seen = (waits || are_all_opening).then_some(state.failures.0);
            return Ok(Next::Wait(self.places.changed.notified()));
        }
        state.opening += 1;
        state.ids += 1;
        let slot = Some(Slot(self.places.clone()));
        Ok(Next::Open(Opening { origin: self.clone(), id: state.ids, slot }))
    }

    fn take(self: &Arc<Self>, state: &mut State) -> Option<Held> {
        let is_young = |opened: Instant| self.limits.most_age.is_none_or(|most| opened.elapsed() < most);
        while let Some((connection, _)) = state.idle.pop() {
            if is_young(connection.opened) {
                return Some(Held::Alone(connection));
            }
        }
        // Calls on an old connection stay on it; it is closed with the last of them.
        state.shared.retain(|shared| !shared.is_closed() && is_young(shared.opened));
        let (id, sender) = state.shared.iter_mut().find_map(|shared| Some((shared.id, shared.join()?)))?;
        Some(Held::StreamPermit(StreamPermit { origin: self.clone(), id, sender }))
    }

    /// Returns a connection to the pool.
    pub(super) fn keep(self: &Arc<Self>, connection: Connection) {
        let mut state = self.lock();
        if state.idle.len() < self.limits.most_idle {
            state.idle.push((connection, Instant::now()));
            self.watch(&mut state);
        }
        self.places.changed.notify_one();
    }

    /// Releases a call's stream of a shared connection.
    pub(super) fn leave(self: &Arc<Self>, id: u64) {
        let mut state = self.lock();
        if let Some(shared) = state.shared.iter_mut().find(|shared| shared.id == id) {
            shared.leave();
            self.watch(&mut state);
        }
        self.places.changed.notify_one();
    }

    fn watch(self: &Arc<Self>, state: &mut State) {
        if let Ok(runtime) = tokio::runtime::Handle::try_current()
            && !std::mem::replace(&mut state.watched, true)
        {
            runtime.spawn(Watch { origin: Arc::downgrade(self), over: false }.run());
        }
    }

    /// Builds the timeout error for a connection attempt.
    fn late(&self, part: Part, longest: Duration) -> Error {
        let what = match (part, self.address.proxy()) {
            (Part::Name, _) => "to find its address".to_owned(),
            (Part::Proxy, Some(proxy)) => format!("for its proxy {} to lead there", proxy.name()),
            (Part::Tls, _) => "to agree on TLS".to_owned(),
            _ => "to connect".to_owned(),
        };
        unreachable(part, format!("it took longer than {longest:?} {what}"))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Duplicates an error for another call.
fn again(failure: &Arc<Error>) -> Error {
    let same = Error::new(failure.kind(), failure.message().to_owned()).with_retry(failure.retry());
    let part = failure.context("part").unwrap_or_default().to_owned();
    same.with_context("part", part).with_source(failure.clone())
}

impl Places {
    /// Acquires a permit, unless `most` are taken.
    fn take(&self, most: usize) -> bool {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let has_room = *taken < most;
        *taken += usize::from(has_room);
        has_room
    }

    fn taken(&self) -> usize {
        *self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        *self.0.taken.lock().unwrap_or_else(PoisonError::into_inner) -= 1;
        self.0.changed.notify_one();
    }
}

/// A connection attempt.
struct Opening {
    origin: Arc<Origin>,
    id: u64,
    slot: Option<Slot>,
}

impl Opening {
    async fn open(mut self, connector: &Connector) -> Result<Lease> {
        let (longest, progress) = (connector.timeout, Progress::new(Part::Connection));
        let opened = tokio::time::timeout(longest, self.connect(connector, &progress)).await;
        match opened.unwrap_or_else(|_| Err(self.origin.late(progress.part(), longest))) {
            Ok(held) => Ok(Lease::new(self.origin.clone(), held, true)),
            Err(e) => {
                let failure = Arc::new(e);
                let mut state = self.origin.lock();
                state.failures = (state.failures.0 + 1, Some(failure.clone()));
                Err(again(&failure))
            }
        }
    }

    async fn connect(&mut self, connector: &Connector, progress: &Progress) -> Result<Held> {
        let (stream, protocol) = connector.connect(&self.origin.address, progress).await?;
        progress.enter(Part::Connection);
        let Some(slot) = self.slot.take() else { unreachable!("a connection is opened once") };
        let no_http = |e: hyper::Error| unreachable(Part::Connection, "it does not speak HTTP").with_source(e);
        let held = match protocol {
            Protocol::Http1 => Held::Alone(Connection::open(stream, slot).await.map_err(no_http)?),
            Protocol::Http2 => {
                let mut shared = Shared::open(stream, connector.pings, self.id, slot).await.map_err(no_http)?;
                let sender = shared.join().expect("a new connection has room");
                self.origin.lock().shared.push(shared);
                Held::StreamPermit(StreamPermit { origin: self.origin.clone(), id: self.id, sender })
            }
        };
        self.origin.lock().speaks = Some(protocol);
        Ok(held)
    }
}

impl Drop for Opening {
    /// Wakes the calls that waited for the attempt.
    fn drop(&mut self) {
        self.origin.lock().opening -= 1;
        self.origin.places.changed.notify_waiters();
    }
}

/// Closes idle connections, while there are any.
struct Watch {
    origin: Weak<Origin>,
    over: bool,
}

impl Watch {
    async fn run(mut self) {
        while let Some(due) = self.look() {
            sleep_until(due).await;
        }
    }

    /// Closes connections that were idle for too long; returns the time of the next check.
    fn look(&mut self) -> Option<Instant> {
        let origin = self.origin.upgrade()?;
        let mut state = origin.lock();
        let now = Instant::now();
        let due = |since: Instant| since + origin.limits.idle_timeout;
        state.idle.retain(|(_, since)| due(*since) > now);
        state.shared.retain(|shared| !shared.is_closed() && (!shared.is_idle() || due(shared.idle_since) > now));
        let shared = state.shared.iter().filter(|shared| shared.is_idle()).map(|shared| shared.idle_since);
        let next = state.idle.iter().map(|(_, since)| *since).chain(shared).min().map(due);
        state.watched = next.is_some();
        self.over = next.is_none();
        next
    }
}

impl Drop for Watch {
    /// The runtime ended first: the next call starts a new watch.
    fn drop(&mut self) {
        if let Some(origin) = self.origin.upgrade().filter(|_| !self.over) {
            origin.lock().watched = false;
        }
    }
}
