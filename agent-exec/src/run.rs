//! The caller's side of a run.

use std::{
    fmt,
    pin::Pin,
    task::{Context, Poll},
};

use agent_core::{
    BoxFuture, Event, EventStream, Message, Result, RunEnd,
    engine::{EventHub, Inbox, Pause},
    event::Position,
};
use futures::Stream;
use tokio_util::sync::CancellationToken;

use crate::leaf::WithLeaves;

/// A run: a future of its end, a stream of its events, and (through [`handle`](Self::handle)) its
/// controls.
///
/// It makes progress only while it is polled. As a stream it drives the run and yields every event
/// of the tree; when the stream has ended, awaiting the run returns its end. Dropping it drops the
/// run: connections are closed and tools stopped.
///
/// ```
/// use agent_core::{EventKind, testing::{ScriptedModel, Turn}};
/// use agent_exec::Agent;
/// use futures::StreamExt;
///
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let agent = Agent::builder("greeter", ScriptedModel::new([Turn::text("Hello!")])).streaming(true).build()?;
/// let mut run = agent.start(agent_core::RunRequest::user("Hi"));
/// let mut chunks = 0;
/// while let Some(event) = run.next().await {
///     chunks += usize::from(matches!(event.kind, EventKind::Chunk(_)));
/// }
/// assert!(chunks > 0);
/// assert_eq!(run.await?.as_str(), "finished");
/// # Ok::<(), agent_core::Error>(()) }).unwrap();
/// ```
#[must_use = "a run does nothing unless it is awaited or read"]
pub struct Run {
    handle: RunHandle,
    future: WithLeaves<Result<RunEnd>>,
    /// Created when the first event is requested.
    events: Option<EventStream>,
    end: Option<Result<RunEnd>>,
}

/// Controls of a run. Cheap to clone.
#[derive(Clone)]
pub struct RunHandle {
    pub(crate) cancel: CancellationToken,
    pub(crate) pause: Pause,
    pub(crate) inbox: Inbox,
    pub(crate) hub: EventHub,
}

impl Run {
    pub(crate) fn new(handle: RunHandle, future: BoxFuture<'static, Result<RunEnd>>) -> Self {
        Self { handle, future: WithLeaves::new(future), events: None, end: None }
    }

    /// Returns the controls of the run.
    pub fn handle(&self) -> RunHandle {
        self.handle.clone()
    }

    fn drive(&mut self, cx: &mut Context<'_>) {
        if self.end.is_none()
            && let Poll::Ready(end) = Pin::new(&mut self.future).poll(cx)
        {
            self.end = Some(end);
        }
    }
}

impl RunHandle {
    /// Cancels the run and all its descendants.
    pub fn cancel(&self) {
        self.cancel.cancel();
    }

    /// Returns the token behind [`cancel`](Self::cancel).
    pub fn cancellation(&self) -> &CancellationToken {
        &self.cancel
    }

    /// Pauses the run and its whole tree at the next boundary.
    pub fn pause(&self) {
        self.pause.request_all();
    }

    /// Queues a message before the next model call. A run that was about to finish continues. The
    /// message is also written to the run's journal, so that it survives the process.
    ///
    /// # Errors
    /// [`ErrorKind::Stopped`](agent_core::ErrorKind::Stopped) if the run has ended; as
    /// [`Inbox::push`].
    pub fn steer(&self, message: Message) -> Result<()> {
        self.inbox.push(message)
    }

    /// Subscribes to the tree's events, from the start. The stream does not drive the run.
    pub fn events(&self) -> EventStream {
        self.hub.subscribe()
    }

    /// Subscribes to the tree's events after the position `after`, for clients that lost their
    /// connection. `began` is the entry of the session with which the run started, perhaps in an
    /// earlier attempt, whose events are included too. Chunks and other transient events are
    /// included as far as they are still buffered: at most the newest 1,024 items, and only those
    /// that some reader has not read yet. If the client was the only reader, none are.
    pub fn events_after(&self, began: u64, after: Position) -> EventStream {
        self.hub.subscribe_after(began, after)
    }
}

impl Future for Run {
    type Output = Result<RunEnd>;

    /// # Panics
    /// If it is polled after it has completed.
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match self.end.take() {
            Some(end) => Poll::Ready(end),
            None => Pin::new(&mut self.future).poll(cx),
        }
    }
}

impl Stream for Run {
    type Item = Event;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Event>> {
        let this = &mut *self;
        let events = this.events.get_or_insert_with(|| this.handle.hub.subscribe());
        if let Poll::Ready(event) = Pin::new(events).poll_next(cx) {
            return Poll::Ready(event);
        }
        this.drive(cx);
        let events = this.events.get_or_insert_with(|| this.handle.hub.subscribe());
        Pin::new(events).poll_next(cx)
    }
}

impl fmt::Debug for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Run").field("handle", &self.handle).field("ended", &self.end.is_some()).finish_non_exhaustive()
    }
}

impl fmt::Debug for RunHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunHandle").field("cancelled", &self.cancel.is_cancelled()).finish_non_exhaustive()
    }
}
