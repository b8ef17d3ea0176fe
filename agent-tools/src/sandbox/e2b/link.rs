//! [`Link`]: what a sandbox and its programs share.

use std::sync::Arc;

use tokio::sync::watch;

use super::daemon::Daemon;

/// The daemon of a sandbox, and whether that goes on. Cheap to clone.
#[derive(Clone, Debug)]
pub(super) struct Link {
    id: Arc<str>,
    held: Arc<watch::Sender<Held>>,
}

#[derive(Debug)]
struct Held {
    daemon: Daemon,
    state: State,
}

/// What a sandbox does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// Its programs run. It was paused so often.
    Running(u64),
    /// It halts, for this time.
    Paused(u64),
    /// Nobody uses it any more.
    Closed,
}

impl Link {
    pub(super) fn new(id: &str, daemon: Daemon) -> Self {
        Self { id: id.into(), held: Arc::new(watch::Sender::new(Held { daemon, state: State::Running(0) })) }
    }

    /// The sandbox's name for the service.
    pub(super) fn id(&self) -> &str {
        &self.id
    }

    pub(super) fn daemon(&self) -> Daemon {
        self.held.borrow().daemon.clone()
    }

    pub(super) fn state(&self) -> State {
        self.held.borrow().state
    }

    /// Says that it halts, before it does.
    pub(super) fn pauses(&self) {
        self.held.send_modify(|held| {
            if let State::Running(times) = held.state {
                held.state = State::Paused(times + 1);
            }
        });
    }

    /// Says that it runs, by this daemon if it has another one.
    pub(super) fn resumed(&self, daemon: Option<Daemon>) {
        self.held.send_modify(|held| {
            if let Some(daemon) = daemon {
                held.daemon = daemon;
            }
            if let State::Paused(times) = held.state {
                held.state = State::Running(times);
            }
        });
    }

    /// False if it was closed before.
    pub(super) fn close(&self) -> bool {
        self.held.send_if_modified(|held| std::mem::replace(&mut held.state, State::Closed) != State::Closed)
    }

    /// Waits until it is not paused.
    pub(super) async fn goes_on(&self) {
        // The sender is held.
        drop(self.held.subscribe().wait_for(|held| !held.state.is_paused()).await);
    }

    pub(super) async fn closed(&self) {
        drop(self.held.subscribe().wait_for(|held| held.state == State::Closed).await);
    }
}

impl State {
    pub(super) fn is_paused(self) -> bool {
        matches!(self, Self::Paused(_))
    }

    /// How often it was paused.
    pub(super) fn pauses(self) -> u64 {
        match self {
            Self::Running(times) | Self::Paused(times) => times,
            Self::Closed => 0,
        }
    }
}
