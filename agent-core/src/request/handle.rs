//! [`SubRunHandle`]: control of a child run.

use tokio_util::sync::CancellationToken;

use crate::{
    cx::{Inbox, Pause, RunCx},
    error::Result,
    message::Message,
};

/// Handle that controls a child run. Cheap to clone.
#[derive(Clone, Debug)]
pub struct SubRunHandle {
    pub(crate) inbox: Inbox,
    pub(crate) cancel: CancellationToken,
    pub(crate) pause: Pause,
}

impl SubRunHandle {
    pub(crate) fn of(cx: &RunCx) -> Self {
        Self { inbox: Inbox::default(), cancel: cx.cancellation().child_token(), pause: cx.0.pause.child() }
    }

    /// Inserts a message before the run's next model call.
    ///
    /// # Errors
    /// Those of [`Inbox::push`].
    pub fn steer(&self, message: Message) -> Result<()> {
        self.inbox.push(message)
    }

    /// The pending messages of the run.
    pub fn inbox(&self) -> &Inbox {
        &self.inbox
    }

    /// Cancels the run and all its descendants.
    pub fn cancel(&self) {
        self.cancel.cancel();
    }

    /// The token that [`cancel`](Self::cancel) triggers.
    pub fn cancellation(&self) -> &CancellationToken {
        &self.cancel
    }

    /// Pauses the run and all its descendants at their next boundaries.
    pub fn pause(&self) {
        self.pause.request();
    }

    /// The flag that [`pause`](Self::pause) sets.
    pub fn pause_flag(&self) -> &Pause {
        &self.pause
    }
}
