//! [`HandoffRun`]: the runs of the agents that a message passes through.

use std::{
    fmt,
    pin::Pin,
    task::{Context, Poll, ready},
};

use agent_core::{BoxFuture, Error, Event, Result, RunEnd, RunRequest};
use futures::Stream;

use super::Handoffs;
use crate::{Agent, Run, RunHandle};

/// A message on its way through the agents of a group: a future of the end of the last run, and a
/// stream of the events of all of them. Returned by [`Handoffs::start`].
///
/// It makes progress only while it is polled. Dropping it drops the current run.
#[must_use = "a run does nothing unless it is awaited or read"]
pub struct HandoffRun {
    group: Handoffs,
    /// The request of the current run.
    request: RunRequest,
    transfers: u32,
    at: At,
}

enum At {
    Routing(BoxFuture<'static, Result<(Agent, RunRequest)>>),
    Running(Box<Run>),
    Ended(Option<Result<RunEnd>>),
}

impl HandoffRun {
    pub(super) fn new(group: Handoffs, request: RunRequest) -> Self {
        let (routes, asked) = (group.clone(), request.clone());
        let at = At::Routing(Box::pin(async move { routes.route(asked).await }));
        Self { group, request, transfers: 0, at }
    }

    /// Returns the controls of the current run; `None` before the first has begun and after the last
    /// has ended. They do not apply to the runs after it.
    pub fn handle(&self) -> Option<RunHandle> {
        match &self.at {
            At::Running(run) => Some(run.handle()),
            _ => None,
        }
    }

    fn begin(&mut self, agent: &Agent, request: RunRequest) {
        self.request = request.clone();
        self.at = At::Running(Box::new(agent.start(request)));
    }

    /// Continues after the end of a run.
    fn ended(&mut self, end: Result<RunEnd>) {
        let next = match &end {
            Ok(end) => self.group.follow(end, &self.request, self.transfers),
            Err(_) => Ok(None),
        };
        match next {
            Ok(Some((agent, request))) => {
                self.transfers += 1;
                self.begin(&agent, request);
            }
            Ok(None) => self.at = At::Ended(Some(end)),
            Err(e) => self.at = At::Ended(Some(Err(e))),
        }
    }

    /// Waits until the agent of the next run is chosen.
    fn poll_routed(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if let At::Routing(route) = &mut self.at {
            match ready!(route.as_mut().poll(cx)) {
                Ok((agent, request)) => self.begin(&agent, request),
                Err(e) => self.at = At::Ended(Some(Err(e))),
            }
        }
        Poll::Ready(())
    }
}

impl Future for HandoffRun {
    type Output = Result<RunEnd>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        loop {
            ready!(self.poll_routed(cx));
            match &mut self.at {
                At::Running(run) => {
                    let end = ready!(Pin::new(&mut **run).poll(cx));
                    self.ended(end);
                }
                At::Ended(end) => {
                    let over = || Err(Error::config("the run was polled after its end"));
                    return Poll::Ready(end.take().unwrap_or_else(over));
                }
                At::Routing(_) => {}
            }
        }
    }
}

impl Stream for HandoffRun {
    type Item = Event;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Event>> {
        loop {
            ready!(self.poll_routed(cx));
            match &mut self.at {
                At::Running(run) => match ready!(Pin::new(&mut **run).poll_next(cx)) {
                    Some(event) => return Poll::Ready(Some(event)),
                    None => {
                        let end = ready!(Pin::new(&mut **run).poll(cx));
                        self.ended(end);
                    }
                },
                At::Ended(_) => return Poll::Ready(None),
                At::Routing(_) => {}
            }
        }
    }
}

impl fmt::Debug for HandoffRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HandoffRun").field("transfers", &self.transfers).finish_non_exhaustive()
    }
}
