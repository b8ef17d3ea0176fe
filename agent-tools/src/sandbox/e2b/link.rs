//! [`Link`]: state shared by a sandbox and its programs.

use std::sync::Arc;

use tokio::sync::watch;

use super::daemon::Daemon;

/// Daemon of a sandbox, and state of the sandbox. Cheap to clone.
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

/// State of a sandbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// Running; the number of pauses so far.
    Running(u64),
    /// Paused; the number of this pause.
    Paused(u64),
    /// Closed.
    Closed,
}

impl Link {
    pub(super) fn new(id: &str, daemon: Daemon) -> Self {
        Self { id: id.into(), held: Arc::new(watch::Sender::new(Held { daemon, state: State::Running(0) })) }
    }

    /// Returns the service's id of the sandbox.
    pub(super) fn id(&self) -> &str {
        &self.id
    }

    pub(super) fn daemon(&self) -> Daemon {
        self.held.borrow().daemon.clone()
    }

    pub(super) fn state(&self) -> State {
        self.held.borrow().state
    }

    /// Records the pause, before it takes effect.
    pub(super) fn pauses(&self) {
        self.held.send_modify(|held| {
            if let State::Running(times) = held.state {
                held.state = State::Paused(times + 1);
            }
        });
    }

    /// Records the resumption, with a new daemon if it changed.
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

    /// Marks the sandbox closed; returns false if it was closed before.
    pub(super) fn close(&self) -> bool {
        self.held.send_if_modified(|held| std::mem::replace(&mut held.state, State::Closed) != State::Closed)
    }

    /// Waits until the sandbox is not paused.
    pub(super) async fn goes_on(&self) {
        // This struct holds the sender, so that waiting cannot fail.
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

    /// Returns the number of pauses so far.
    pub(super) fn pauses(self) -> u64 {
        match self {
            Self::Running(times) | Self::Paused(times) => times,
            Self::Closed => 0,
        }
    }
}
