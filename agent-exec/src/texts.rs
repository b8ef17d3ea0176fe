//! [`Texts`]: the answer of a run, piece by piece.

use std::{
    pin::Pin,
    task::{Context, Poll, ready},
};

use agent_core::{Chunk, EventKind};
use futures::Stream;

use crate::Run;

/// The texts of a run's root agent as they arrive, without those of its sub-agents. Returned by
/// [`Run::texts`].
#[derive(Debug)]
#[must_use = "a stream does nothing unless it is read"]
pub struct Texts<'a>(&'a mut Run);

impl Run {
    /// Reads the run as a stream of texts. They come word by word if the run [streams]; otherwise each
    /// answer comes as a whole. When the stream has ended, awaiting the run returns its end, whose text
    /// is the answer: an attempt at a model call that failed midway is repeated, and so are its texts.
    ///
    /// ```
    /// use agent_core::{RunRequest, testing::{ScriptedModel, Turn}};
    /// use agent_exec::Agent;
    /// use futures::StreamExt;
    ///
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// let agent = Agent::builder("greeter", ScriptedModel::new([Turn::text("Hello, Ada!")])).streaming(true).build()?;
    /// let mut run = agent.start(RunRequest::user("Hi"));
    /// let said: String = run.texts().collect().await;
    /// assert_eq!((said.as_str(), run.await?.text()?.as_str()), ("Hello, Ada!", "Hello, Ada!"));
    /// # Ok::<(), agent_core::Error>(()) }).unwrap();
    /// ```
    ///
    /// [streams]: agent_core::RunRequest::streaming
    pub fn texts(&mut self) -> Texts<'_> {
        Texts(self)
    }
}

impl Stream for Texts<'_> {
    type Item = String;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<String>> {
        loop {
            let Some(event) = ready!(Pin::new(&mut *self.0).poll_next(cx)) else { return Poll::Ready(None) };
            if let EventKind::Chunk(Chunk::Text { delta, .. }) = event.kind
                && event.ids.depth == 0
            {
                return Poll::Ready(Some(delta));
            }
        }
    }
}
