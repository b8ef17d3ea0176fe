//! Faults between a provider and its client, on every wire: each fault becomes a typed error with
//! the right retry hint, or the answer that can still be read; and nothing of a failed attempt
//! leaks into the next.

use crate::samples;

mod provider;
mod table;

use std::{sync::Arc, time::Duration};

use agent_core::{
    Chunk, Error, Message, Model, ModelRequest, ModelResponse, ModelService, Result, Retry, model::MessageBuilder,
};
use agent_llm::{LayeredModel, ModelBuilder, RetryLayer};
use tokio::time::Instant;
use tower::{Layer, ServiceExt, service_fn};

use crate::samples::ROWS;

use self::{
    provider::{Attempt, Provider},
    table::{Expect, FAULTS, Fault, Said},
};

/// Idle timeout of the models in these tests.
const SILENCE: Duration = Duration::from_secs(30);

fn model(said: &Said, fault: &Fault, provider: &Provider) -> LayeredModel {
    let builder = ModelBuilder::new(said.codec.clone()).transport(provider.transport());
    builder.idle_timeout(SILENCE).max_answer(fault.most).retries(0).build().expect("a model")
}

/// Returns each wire with each fault that can happen to its answers.
fn cases() -> impl Iterator<Item = (Said, &'static Fault)> {
    FAULTS
        .iter()
        .flat_map(|fault| ROWS.iter().map(move |row| (Said::of(row), fault)))
        .filter(|(said, fault)| said.may_meet(fault))
}

/// Returns a request, and the recorder of its chunks.
fn ask(fault: &Fault) -> (ModelRequest, Arc<std::sync::Mutex<Vec<Chunk>>>) {
    let history = agent_core::History::from_messages([Message::user("hi")]).expect("paired");
    let mut req = ModelRequest::new(agent_core::testing::detached_run(history).cx().clone());
    req.stream = fault.streams;
    let heard = Arc::new(std::sync::Mutex::new(Vec::new()));
    let sink = heard.clone();
    req.sink = req.sink.with_observer(move |chunk| sink.lock().expect("lock").push(chunk.clone()));
    (req, heard)
}

/// Returns the message that a listener has in the end.
fn heard_message(chunks: &[Chunk]) -> Vec<agent_core::Block> {
    let mut heard = MessageBuilder::default();
    chunks.iter().for_each(|chunk| heard.push(chunk));
    heard.into_blocks()
}

async fn call_once(said: &Said, fault: &Fault) -> (Result<ModelResponse>, Vec<Chunk>) {
    let provider = Provider::new([(fault.attempt)(said)]);
    let (req, heard) = ask(fault);
    let result = model(said, fault, &provider).call(req).await;
    let heard = heard.lock().expect("lock").clone();
    (result, heard)
}

/// Returns what is wrong with the error of a fault.
fn wrong(error: &Error, expect: &Expect) -> Option<String> {
    let Expect::Error(kind, retry) = expect else { return Some(format!("an answer, not {error:?}")) };
    let is_right = error.kind() == *kind && error.retry() == *retry && !error.message().is_empty();
    (!is_right).then(|| format!("{kind} and {retry:?}, not {error:?} and {:?}", error.retry()))
}

#[tokio::test(start_paused = true)]
async fn every_fault_becomes_a_typed_error_or_the_answer_that_is_still_there() {
    let mut complaints = Vec::new();
    for (said, fault) in cases() {
        let began = Instant::now();
        let (result, heard) = call_once(&said, fault).await;
        let complaint = match (&fault.expect, &result) {
            (Expect::Answer(check), Ok(response)) if heard_message(&heard) == response.message.blocks() => {
                check(&said, response)
            }
            (_, Ok(response)) => Some(format!("an error, not {response:?} of which {heard:?} was heard")),
            (expect, Err(error)) => wrong(error, expect),
        };
        complaints.extend(complaint.map(|why| format!("{} with {}: wanted {why}", said.wire(), fault.name)));
        if began.elapsed() > SILENCE + Duration::from_secs(15) {
            complaints.push(format!("{} with {}: took {:?}", said.wire(), fault.name, began.elapsed()));
        }
    }
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

#[tokio::test(start_paused = true)]
async fn nothing_of_a_failed_attempt_is_glued_to_the_next() {
    let mut complaints = Vec::new();
    for (said, fault) in cases().filter(|(_, fault)| !matches!(fault.expect, Expect::Answer(_))) {
        if let Err(why) = retried(&said, fault).await {
            complaints.push(format!("{} with {}: {why}", said.wire(), fault.name));
        }
    }
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

/// Calls a provider that fails once and then answers, behind a retry layer.
async fn retried(said: &Said, fault: &Fault) -> Result<(), String> {
    let good = if fault.streams { said.stream() } else { Attempt::whole(&said.text) };
    let provider = Provider::new([(fault.attempt)(said), good]);
    let model = Arc::new(model(said, fault, &provider));
    let service = ModelService::new(service_fn(move |req: ModelRequest| {
        let model = model.clone();
        async move { model.call(req).await }
    }));
    let (req, heard) = ask(fault);
    let result = RetryLayer::new().jitter(0.0).layer(service).oneshot(req).await;
    let temporary = !matches!(fault.expect, Expect::Error(_, Retry::Permanent));
    let calls = if temporary { 2 } else { 1 };
    if provider.calls() != calls {
        return Err(format!("asked {} times, not {calls}", provider.calls()));
    }
    let response = match (temporary, result) {
        (true, result) => result.map_err(|error| format!("the second attempt failed: {error:?}"))?,
        (false, Ok(response)) => return Err(format!("an answer: {response:?}")),
        (false, Err(_)) => return Ok(()),
    };
    let good = said.good(&said.text);
    if response.message.blocks() != good.message.blocks() {
        return Err(format!("{:?} is not {:?}", response.message, good.message));
    }
    let heard = heard.lock().expect("lock").clone();
    if heard_message(&heard) != good.message.blocks() {
        return Err(format!("was heard as {heard:?}"));
    }
    let restarts = heard.iter().filter(|chunk| matches!(chunk, Chunk::Restart)).count();
    if restarts != usize::from(fault.speaks) {
        return Err(format!("{restarts} restarts in {heard:?}"));
    }
    Ok(())
}
