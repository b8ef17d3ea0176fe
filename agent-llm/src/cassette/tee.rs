//! Body that is recorded while it is read.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use agent_core::Result;
use bytes::Bytes;
use futures::{Stream, StreamExt};

use super::{
    exchange::BrokeOff,
    session::{Recording, Session},
};
use crate::Body;

pub(super) struct Tee {
    body: Body,
    session: Arc<Session>,
    chunks: Vec<Bytes>,
    /// `None` once it is written.
    recording: Option<Recording>,
}

impl Tee {
    pub(super) fn new(body: Body, session: Arc<Session>, recording: Recording) -> Self {
        Self { body, session, chunks: Vec::new(), recording: Some(recording) }
    }

    fn end(&mut self, broke_off: Option<BrokeOff>) -> Result<()> {
        self.recording.take().map_or(Ok(()), |recording| self.session.record(recording, &self.chunks, broke_off))
    }
}

impl Stream for Tee {
    type Item = Result<Bytes>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let item = ready!(self.body.poll_next_unpin(cx));
        match &item {
            Some(Ok(bytes)) => self.chunks.push(bytes.clone()),
            Some(Err(e)) => self.end(Some(BrokeOff::of(e)))?,
            None => self.end(None)?,
        }
        Poll::Ready(item)
    }
}

impl Drop for Tee {
    fn drop(&mut self) {
        // A failure cannot be reported to anybody here.
        let _ = self.end(Some(BrokeOff::Dropped));
    }
}
