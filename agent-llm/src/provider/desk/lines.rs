//! [`Lines`].

use std::{collections::VecDeque, time::Duration};

use agent_core::{Error, ErrorKind, Result, Retry};
use bytes::Bytes;
use futures::StreamExt;
use tokio::time::timeout;

use crate::{Body, Framing, Splitter};

/// A body that is read line by line: it may be longer than what fits in memory.
pub(crate) struct Lines {
    body: Body,
    longest: Duration,
    /// None once the body has ended.
    splitter: Option<Splitter>,
    ready: VecDeque<String>,
}

impl Lines {
    pub(crate) fn new(body: Body, longest: Duration) -> Self {
        Self { body, longest, splitter: Some(Framing::Lines.splitter()), ready: VecDeque::new() }
    }

    /// The next line that says anything.
    pub(crate) async fn next(&mut self) -> Option<Result<String>> {
        loop {
            if let Some(line) = self.ready.pop_front() {
                return Some(Ok(line));
            }
            let mut splitter = self.splitter.take()?;
            let ready = &mut self.ready;
            let mut keep = |line: &str| {
                ready.extend((!line.trim().is_empty()).then(|| line.to_owned()));
                Ok(())
            };
            let read = match piece(&mut self.body, self.longest).await {
                Some(Ok(bytes)) => {
                    let read = splitter.push(&bytes, &mut keep);
                    self.splitter = Some(splitter);
                    read
                }
                Some(Err(e)) => Err(e),
                None => splitter.finish(&mut keep),
            };
            if let Err(e) = read {
                self.splitter = None;
                return Some(Err(e));
            }
        }
    }

    /// All of the body.
    ///
    /// # Errors
    /// [`ErrorKind::Protocol`] if it has more than `most` bytes; what the body says.
    pub(crate) async fn whole(&mut self, most: usize) -> Result<Bytes> {
        let mut all = Vec::new();
        while let Some(more) = piece(&mut self.body, self.longest).await {
            let more = more?;
            if more.len() > most - all.len() {
                return Err(Error::new(ErrorKind::Protocol, "the answer is longer than max_answer allows")
                    .with_retry(Retry::Permanent));
            }
            all.extend_from_slice(&more);
        }
        Ok(all.into())
    }
}

async fn piece(body: &mut Body, longest: Duration) -> Option<Result<Bytes>> {
    let late =
        |_| Some(Err(Error::new(ErrorKind::Timeout, "the body stopped coming").with_retry(Retry::Temporary(None))));
    timeout(longest, body.next()).await.unwrap_or_else(late)
}
