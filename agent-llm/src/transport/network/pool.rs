//! One server, and the open connections to it.

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
    lease::{Held, Lease, Seat},
    progress::Progress,
};

/// How many connections there may be, and for how long.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// How long a connection is kept that nobody uses.
    pub(super) idle_timeout: Duration,
    /// How many of those are kept, per server.
    pub(super) most_idle: usize,
    /// How many connections there are in all, per server.
    pub(super) most: usize,
    /// How old a connection may be that takes another call.
    pub(super) most_age: Option<Duration>,
}

/// A server's address and its connections.
pub(super) struct Origin {
    pub(super) address: Address,
    limits: Limits,
    state: Mutex<State>,
    places: Arc<Places>,
}

struct State {
    /// Those that speak HTTP/1.1 and wait for a call, with the moment from which they do; the one last used is the last.
    idle: Vec<(Connection, Instant)>,
    /// Those that speak HTTP/2 and take more calls.
    shared: Vec<Shared>,
    /// None until the first connection shows it.
    speaks: Option<Protocol>,
    opening: usize,
    /// Ids that were given to connections.
    ids: u64,
    /// How many attempts failed, and how the last one did.
    failures: (u64, Option<Arc<Error>>),
    /// Somebody closes what nobody uses.
    watched: bool,
}

/// How many connections are open or being opened.
struct Places {
    taken: Mutex<usize>,
    /// Something was closed, opened or left.
    changed: Notify,
}

/// The place of one connection among those of its server, until it is closed.
pub(super) struct Slot(Arc<Places>);

/// What a call that needs a connection does next.
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

    /// True if no connection is open.
    pub(super) fn has_none(&self) -> bool {
        let state = self.lock();
        state.idle.is_empty() && state.shared.is_empty()
    }

    /// A connection for one call: one that waits or has room, or else a new one.
    ///
    /// # Errors
    /// The server cannot be reached. Who waited for another's attempt fails with it: a thousand calls to a server that is
    /// away fail at once, and not one after the other.
    pub(super) async fn lease(self: &Arc<Self>, connector: &Connector) -> Result<Lease> {
        let mut seen = None;
        loop {
            match self.next(&mut seen)? {
                Next::Use(lease) => return Ok(lease),
                // Seldom: no other call has to have room for it.
                Next::Open(opening) => {
                    let opened: BoxFuture<'_, _> = boxed(|| opening.open(connector));
                    return opened.await;
                }
                Next::Wait(changed) => changed.await,
            }
        }
    }

    /// `seen` is how many attempts had failed when the call began to wait.
    fn next(self: &Arc<Self>, seen: &mut Option<u64>) -> Result<Next<'_>> {
        let mut state = self.lock();
        if let Some(held) = self.take(&mut state) {
            return Ok(Next::Use(Lease::new(self.clone(), held, false)));
        }
        if let (failures, Some(failure)) = &state.failures
            && *seen.get_or_insert(*failures) != *failures
        {
            return Err(again(failure));
        }
        seen.get_or_insert(state.failures.0);
        // Whether calls can share connections shows with the first. If they can, one at a time is opened: each has room for
        // many of those that wait.
        let waits = state.speaks != Some(Protocol::Http1) && state.opening > 0;
        if waits || !self.places.take(self.limits.most) {
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
        // Calls that are on an old one stay on it; it is closed with the last of them.
        state.shared.retain(|shared| !shared.is_closed() && is_young(shared.opened));
        let (id, sender) = state.shared.iter_mut().find_map(|shared| Some((shared.id, shared.join()?)))?;
        Some(Held::Seat(Seat { origin: self.clone(), id, sender }))
    }

    /// Keeps a connection for further calls.
    pub(super) fn keep(self: &Arc<Self>, connection: Connection) {
        let mut state = self.lock();
        if state.idle.len() < self.limits.most_idle {
            state.idle.push((connection, Instant::now()));
            self.watch(&mut state);
        }
        self.places.changed.notify_one();
    }

    /// A call has left a connection that it shared.
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

    /// A connection that came no further in time.
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

/// A failure once more, for another call.
fn again(failure: &Arc<Error>) -> Error {
    let same = Error::new(failure.kind(), failure.message().to_owned()).with_retry(failure.retry());
    let part = failure.context("part").unwrap_or_default().to_owned();
    same.with_context("part", part).with_source(failure.clone())
}

impl Places {
    /// Takes a place, unless `most` are taken.
    fn take(&self, most: usize) -> bool {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let has_room = *taken < most;
        *taken += usize::from(has_room);
        has_room
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        *self.0.taken.lock().unwrap_or_else(PoisonError::into_inner) -= 1;
        self.0.changed.notify_one();
    }
}

/// A connection that is being opened.
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
                Held::Seat(Seat { origin: self.origin.clone(), id: self.id, sender })
            }
        };
        self.origin.lock().speaks = Some(protocol);
        Ok(held)
    }
}

impl Drop for Opening {
    /// Those who waited for it look again.
    fn drop(&mut self) {
        self.origin.lock().opening -= 1;
        self.origin.places.changed.notify_waiters();
    }
}

/// Closes what nobody uses, for as long as there is something.
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

    /// Closes what was idle for too long; gives when to look again.
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
    /// Its runtime ended before it did: the next call finds another watch.
    fn drop(&mut self) {
        if let Some(origin) = self.origin.upgrade().filter(|_| !self.over) {
            origin.lock().watched = false;
        }
    }
}
