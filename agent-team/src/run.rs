//! [`TeamRun`]: a run of a team, and its controls.

use std::{
    fmt,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use agent_core::{BoxFuture, Result, boxed, run::new_id};
use futures::Stream;
use tokio_util::sync::CancellationToken;

use crate::{
    driver::drive,
    end::TeamEnd,
    event::{TeamEvent, TeamEvents, Watchers},
    parts::Parts,
    request::TeamRequest,
    session::TeamSession,
    turn::Control,
};

/// A run of a team: a future of its end, a stream of its events, and (through [`handle`](Self::handle))
/// its controls.
///
/// It makes progress only while it is polled. As a stream it drives the run and yields every event;
/// when the stream has ended, awaiting the run returns its end. Dropping it stops all members as a crash
/// would: the next run of the session resumes them.
///
/// # Errors
/// The errors of the store; [`ErrorKind::Busy`](agent_core::ErrorKind::Busy) if another process drives
/// the session; [`ErrorKind::Config`](agent_core::ErrorKind::Config) if there is nothing to resume, or
/// if a member's agent has changed. A failure of a member is no error of the run: the leader is
/// notified of it.
#[must_use = "a run does nothing unless it is awaited or read"]
pub struct TeamRun {
    handle: TeamHandle,
    future: BoxFuture<'static, Result<TeamEnd>>,
    /// Created when the first event is requested.
    events: Option<TeamEvents>,
    end: Option<Result<TeamEnd>>,
}

/// Controls of a team run. Cheap to clone.
#[derive(Clone)]
pub struct TeamHandle {
    session: TeamSession,
    control: Control,
    watchers: Watchers,
}

impl TeamRun {
    pub(crate) fn new(parts: Arc<Parts>, request: TeamRequest) -> Self {
        let session = request.session.clone().unwrap_or_else(|| new_id().into());
        let (control, watchers) = (Control::default(), Watchers::default());
        let handle = TeamHandle {
            session: TeamSession::new(parts.clone(), session.clone()),
            control: control.clone(),
            watchers: watchers.clone(),
        };
        let close = Close(watchers.clone());
        let request = Box::new(request);
        let future = boxed(|| async move {
            let _close = close;
            drive(parts, session, *request, control, watchers).await
        });
        Self { handle, future, events: None, end: None }
    }

    /// Returns the controls of the run.
    pub fn handle(&self) -> TeamHandle {
        self.handle.clone()
    }
}

/// Ends the event streams when the run ends or is dropped.
struct Close(Watchers);

impl Drop for Close {
    fn drop(&mut self) {
        self.0.close();
    }
}

impl TeamHandle {
    /// The session of the team: its state, its questions, and messages to its members.
    pub fn session(&self) -> &TeamSession {
        &self.session
    }

    /// Cancels the turns of all members and suspends the run as
    /// [`Cancelled`](crate::TeamEndReason::Cancelled).
    pub fn cancel(&self) {
        self.control.cancel.cancel();
    }

    /// The token behind [`cancel`](Self::cancel).
    pub fn cancellation(&self) -> &CancellationToken {
        &self.control.cancel
    }

    /// Pauses all members at their next boundaries and suspends the run as
    /// [`Paused`](crate::TeamEndReason::Paused).
    pub fn pause(&self) {
        self.control.pause.cancel();
    }

    /// Subscribes to the events of the team, from now on. The stream does not drive the run.
    pub fn events(&self) -> TeamEvents {
        self.watchers.subscribe()
    }
}

impl Future for TeamRun {
    type Output = Result<TeamEnd>;

    /// # Panics
    /// If it is polled after it has completed.
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match self.end.take() {
            Some(end) => Poll::Ready(end),
            None => self.future.as_mut().poll(cx),
        }
    }
}

impl Stream for TeamRun {
    type Item = TeamEvent;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<TeamEvent>> {
        let this = &mut *self;
        let events = this.events.get_or_insert_with(|| this.handle.watchers.subscribe());
        if let Poll::Ready(Some(event)) = Pin::new(&mut *events).poll_next(cx) {
            return Poll::Ready(Some(event));
        }
        if this.end.is_none()
            && let Poll::Ready(end) = this.future.as_mut().poll(cx)
        {
            this.end = Some(end);
        }
        Pin::new(events).poll_next(cx)
    }
}

impl fmt::Debug for TeamRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TeamRun")
            .field("handle", &self.handle)
            .field("ended", &self.end.is_some())
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for TeamHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TeamHandle").field("session", &self.session).finish_non_exhaustive()
    }
}
