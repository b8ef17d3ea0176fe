//! [`Programs`]: running programs of a sandbox, so that they can be paused together.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use agent_core::{Error, Result};

use super::group::Group;

/// Running programs of a sandbox.
#[derive(Debug, Default)]
pub(super) struct Programs(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    is_paused: bool,
    groups: Vec<Weak<Group>>,
}

impl Programs {
    /// Registers a program that is about to start.
    ///
    /// # Errors
    /// Of kind [`Tool`](agent_core::ErrorKind::Tool) while the sandbox is paused.
    pub(super) fn add(&self, group: &Arc<Group>) -> Result<()> {
        let mut state = self.lock();
        if state.is_paused {
            return Err(Error::tool("the sandbox is paused: nothing starts until it is resumed"));
        }
        state.groups.retain(|group| group.strong_count() > 0);
        state.groups.push(Arc::downgrade(group));
        Ok(())
    }

    /// Pauses all of them. On failure some may be running, and the sandbox is not paused.
    pub(super) fn pause(&self) -> Result<()> {
        let mut state = self.lock();
        state.is_paused = true;
        let halted = state.groups().try_for_each(|group| group.halt());
        if halted.is_err() {
            state.groups().for_each(|group| group.go_on());
            state.is_paused = false;
        }
        halted.map_err(|e| Error::tool(format!("the sandbox cannot be paused: {e}")).with_source(e))
    }

    pub(super) fn resume(&self) {
        let mut state = self.lock();
        state.is_paused = false;
        state.groups().for_each(|group| group.go_on());
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn groups(&self) -> impl Iterator<Item = Arc<Group>> {
        self.groups.iter().filter_map(Weak::upgrade)
    }
}
