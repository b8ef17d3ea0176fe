//! State of an open tape.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use agent_core::{Error, ErrorKind, Result, Retry};
use bytes::Bytes;
use http::{Request, Response, response};

use super::{
    CassetteMode,
    builder::VARIABLE,
    diff::{diff, distance},
    exchange::{Answered, Asked, BrokeOff, Exchange},
    matching::{Ignored, Key},
    scrub::Scrubber,
    tape,
    tee::Tee,
};
use crate::{Body, Transport};

/// State of an open tape.
pub(super) struct Session {
    path: PathBuf,
    mode: CassetteMode,
    /// `None` if nothing is recorded.
    transport: Option<Arc<dyn Transport>>,
    ignored: Ignored,
    state: Mutex<State>,
}

struct State {
    scrubber: Scrubber,
    /// In the order of the tape; recorded exchanges are in the order in which they began.
    slots: Vec<Slot>,
    /// Requests without an answer.
    unexpected: Vec<String>,
}

struct Slot {
    key: Key,
    /// `None` while the exchange is being recorded.
    exchange: Option<Exchange>,
    /// True if the answer was replayed, or has just been recorded.
    given: bool,
}

impl Session {
    pub(super) fn open(
        path: PathBuf,
        mode: CassetteMode,
        transport: Option<Arc<dyn Transport>>,
        ignored: Ignored,
        scrubber: Scrubber,
    ) -> Result<Arc<Self>> {
        let is_needed = mode == CassetteMode::Replay || mode == CassetteMode::RecordMissing && path.exists();
        let exchanges = if is_needed { tape::load(&path)? } else { Vec::new() };
        let slot =
            |exchange: Exchange| Slot { key: ignored.key(&exchange.request), exchange: Some(exchange), given: false };
        let slots = exchanges.into_iter().map(slot).collect();
        let state = Mutex::new(State { scrubber, slots, unexpected: Vec::new() });
        Ok(Arc::new(Self { path, mode, transport, ignored, state }))
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn mode(&self) -> CassetteMode {
        self.mode
    }

    /// Returns the requests whose answers were not replayed.
    pub(super) fn left(&self) -> Vec<String> {
        let state = self.state();
        let left = state.slots.iter().filter(|slot| !slot.given);
        left.map(|slot| format!("{} {}", slot.key.method, slot.key.url)).collect()
    }

    pub(super) fn unexpected(&self) -> Vec<String> {
        self.state().unexpected.clone()
    }

    pub(super) async fn send(self: &Arc<Self>, request: Request<Bytes>) -> Result<Response<Body>> {
        let asked = self.state().scrubber.asked(&request);
        let key = self.ignored.key(&asked);
        if let Some(answer) = self.recorded(&key) {
            return answer;
        }
        let Some(transport) = &self.transport else { return Err(self.unexpected_request(&key)) };
        let place = self.begin(key);
        let (head, body) = transport.send(request).await?.into_parts();
        let tee = Tee::new(body, self.clone(), Recording { place, asked, head: head.clone() });
        Ok(Response::from_parts(head, Body::new(tee)))
    }

    /// Returns the tape's first answer to an equal request that was not replayed yet.
    fn recorded(&self, key: &Key) -> Option<Result<Response<Body>>> {
        let mut state = self.state();
        let slot = state.slots.iter_mut().find(|slot| !slot.given && slot.key == *key)?;
        slot.given = true;
        slot.exchange.as_ref().map(|exchange| exchange.response.respond())
    }

    /// Reserves a slot for an exchange that has begun: concurrent ones may end in any order.
    fn begin(&self, key: Key) -> usize {
        let mut state = self.state();
        state.slots.push(Slot { key, exchange: None, given: true });
        state.slots.len() - 1
    }

    /// Writes an exchange that has ended to the tape.
    pub(super) fn record(&self, recording: Recording, chunks: &[Bytes], broke_off: Option<BrokeOff>) -> Result<()> {
        let mut state = self.state();
        let body = state.scrubber.body(chunks);
        let response = Answered::new(&recording.head, body, broke_off);
        state.slots[recording.place].exchange = Some(Exchange { request: recording.asked, response });
        let exchanges: Vec<_> = state.slots.iter().filter_map(|slot| slot.exchange.as_ref()).collect();
        tape::save(&self.path, &exchanges)
    }

    /// Builds an error with the diff between a request and the most similar remaining one.
    fn unexpected_request(&self, asked: &Key) -> Error {
        let mut state = self.state();
        let left = state.slots.iter().filter(|slot| !slot.given).map(|slot| &slot.key);
        let why = match left.min_by_key(|recorded| distance(recorded, asked)) {
            None => "nothing that was recorded is left".to_owned(),
            Some(recorded) => format!("it differs from what was recorded:\n{}", diff(recorded, asked)),
        };
        let Key { method, url, .. } = asked;
        let path = self.path.display();
        let message = format!(
            "the cassette '{path}' has no answer to {method} {url}: {why}\n(To record what is missing, set {VARIABLE}=missing.)"
        );
        state.unexpected.push(message.clone());
        Error::new(ErrorKind::NonDeterminism, message).with_retry(Retry::Permanent)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An exchange that is being recorded.
pub(super) struct Recording {
    place: usize,
    asked: Asked,
    head: response::Parts,
}
