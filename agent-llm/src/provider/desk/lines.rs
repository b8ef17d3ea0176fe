//! [`Lines`]: response body read line by line.

use std::collections::VecDeque;

use agent_core::Result;

use crate::{Framing, Splitter, model::Incoming};

/// A body that is read line by line, so that it may be larger than memory.
pub(crate) struct Lines {
    body: Incoming,
    /// `None` once the body has ended.
    splitter: Option<Splitter>,
    ready: VecDeque<String>,
}

impl Lines {
    pub(super) fn new(body: Incoming) -> Self {
        Self { body: body.unbounded(), splitter: Some(Framing::Lines.splitter()), ready: VecDeque::new() }
    }

    /// Returns the next non-empty line.
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
            let read = match self.body.next().await {
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
}
