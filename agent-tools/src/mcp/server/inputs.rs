//! Inputs that a call requests from its client by a result, for revisions without requests of a server.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use rmcp::model::{InputRequest, InputRequests};
use serde_json::Value;
use sha2::{Digest, Sha256};
use tokio::sync::Notify;

/// Number of times that other parts of a call get a turn before its requests are sent, so that
/// concurrent requests go to the client together.
const TURNS: usize = 16;

/// Inputs of one call. Cheap to clone.
#[derive(Clone, Default)]
pub(super) struct Inputs(Arc<Shared>);

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    wanted: Notify,
}

#[derive(Default)]
struct State {
    /// Answers of the client, by key.
    given: BTreeMap<String, Value>,
    /// Number of requests in this attempt, by their content.
    made: BTreeMap<String, u32>,
    /// Requests without an answer.
    open: InputRequests,
}

impl Inputs {
    /// Begins another attempt at the call, with further answers.
    pub(super) fn begin(&self, answers: impl IntoIterator<Item = (String, Value)>) {
        let mut state = self.lock();
        state.given.extend(answers);
        (state.made, state.open) = Default::default();
    }

    /// Returns the client's answer. Without one, notes the request and never returns: the call
    /// ends with the request as its result, and is made again with the answer.
    pub(super) async fn request(&self, kind: &str, request: InputRequest) -> Value {
        let content = serde_json::to_vec(&request).unwrap_or_default();
        let digest: String = Sha256::digest(content).iter().take(4).map(|byte| format!("{byte:02x}")).collect();
        {
            let mut state = self.lock();
            let nth = state.made.entry(digest.clone()).or_default();
            *nth += 1;
            let key = format!("{kind}-{digest}-{nth}");
            if let Some(answer) = state.given.get(&key) {
                return answer.clone();
            }
            state.open.insert(key, request);
        }
        self.0.wanted.notify_one();
        std::future::pending().await
    }

    /// Waits for requests without an answer.
    pub(super) async fn wanted(&self) {
        self.0.wanted.notified().await;
        for _ in 0..TURNS {
            tokio::task::yield_now().await;
        }
    }

    /// Takes the requests without an answer.
    pub(super) fn take_open(&self) -> InputRequests {
        std::mem::take(&mut self.lock().open)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
