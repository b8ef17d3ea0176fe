//! Calls that wait for input of their client, between one request and the next.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use agent_core::{
    Checkpoint,
    run::{Question, new_id},
};
use rmcp::model::{InputRequests, InputRequiredResult, InputResponses};
use serde_json::Value;
use tokio::time::Instant;

use super::{ask::Form, run::Kept};

/// Maximum of waiting calls; the oldest one is forgotten then.
const MOST: usize = 10_000;

/// Time after which a waiting call is forgotten.
const LIFE: Duration = Duration::from_secs(3600);

/// Waiting calls by the state that their client sends back. A state is a random handle, is valid
/// once, and only for the same tool with the same arguments.
#[derive(Default)]
pub(super) struct Waiting(Mutex<BTreeMap<String, (Instant, Box<Suspended>)>>);

/// Call that waits for input.
pub(super) struct Suspended {
    pub(super) tool: String,
    pub(super) args: Value,
    /// Requests that have no valid response yet.
    pub(super) requests: InputRequests,
    /// Questions among the requests, by their keys, with the form of their answers.
    pub(super) questions: BTreeMap<String, (Question, Form)>,
    pub(super) responses: InputResponses,
    pub(super) stage: Stage,
}

/// State of the run of a waiting call.
pub(super) enum Stage {
    Tool(Box<Kept>),
    Agent(Box<Checkpoint>),
}

impl Suspended {
    /// Takes the responses that are valid: what remains in `requests` must be requested again.
    pub(super) fn accept(&mut self, responses: InputResponses) {
        for (key, response) in responses {
            let is_valid = match self.questions.get(&key) {
                Some((question, form)) => form.accepts(question, &response),
                None => response.is_object(),
            };
            if is_valid && self.requests.remove(&key).is_some() {
                self.responses.insert(key, response);
            }
        }
    }
}

impl Waiting {
    /// Keeps the call until its client sends the input; returns the result that requests it.
    pub(super) fn keep(&self, suspended: Suspended) -> InputRequiredResult {
        let (handle, mut all) = (new_id(), self.lock());
        all.retain(|_, (since, _)| since.elapsed() < LIFE);
        if all.len() >= MOST
            && let Some(oldest) = all.iter().min_by_key(|(_, (since, _))| *since).map(|(handle, _)| handle.clone())
        {
            all.remove(&oldest);
        }
        let requests = suspended.requests.clone();
        all.insert(handle.clone(), (Instant::now(), Box::new(suspended)));
        InputRequiredResult::new(Some(requests), Some(handle))
    }

    /// Takes the call with this state, if it is a call of the same tool with the same arguments.
    pub(super) fn take(&self, state: &str, tool: &str, args: &Value) -> Option<Box<Suspended>> {
        let mut all = self.lock();
        let (since, suspended) = all.get(state)?;
        if since.elapsed() >= LIFE || suspended.tool != tool || suspended.args != *args {
            return None;
        }
        all.remove(state).map(|(_, suspended)| suspended)
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, (Instant, Box<Suspended>)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
