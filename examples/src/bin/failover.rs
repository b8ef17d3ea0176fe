//! Model that survives an outage of its provider: retries, a timeout and a circuit breaker for each
//! of two models, and failover to the second.

use std::{sync::Arc, time::Duration};

use agent::{
    Model, Retry,
    llm::{CircuitBreaker, Failover, LayeredModel, RetryLayer},
    prelude::*,
    testing::{ScriptedModel, Turn},
};
use agent_examples::models;
use futures::StreamExt;
use tower::timeout::TimeoutLayer;

/// Layers around each model, outermost first: the order determines what each of them sees.
fn reliable(model: impl Model, breakers: &CircuitBreaker) -> impl Model {
    let layers = (
        breakers.layer_for(&model.info()), // open while the provider is down: a failed call with all its attempts counts once
        RetryLayer::new().retries(2).max_delay(Duration::from_millis(500)), // temporary errors are retried
        TimeoutLayer::new(Duration::from_secs(60)), // each attempt has its own minute
    );
    LayeredModel::new(model, layers)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    // The first model is always overloaded; the model that you connect is the second.
    let busy = || Error::new(ErrorKind::Overloaded, "too many requests").with_retry(Retry::Temporary(None));
    let first = ScriptedModel::new([busy, busy, busy].map(Turn::error));
    let second: Arc<dyn Model> = models::or_script([Turn::text("Here I am.")]).await?;

    let breakers = CircuitBreaker::new();
    let model = Failover::builder(reliable(first, &breakers)).fallback(reliable(second, &breakers)).build()?;
    // For the agent this is one model, and each call is one call: one reservation of its budget,
    // one entry in its journal.
    let agent = Agent::builder("assistant", model).build()?;

    let mut run = agent.start(RunRequest::user("Is anybody there?"));
    while let Some(event) = run.next().await {
        match &event.kind {
            EventKind::Retry { attempt, error, .. } => println!("attempt {attempt} comes, after: {error}"),
            EventKind::Failover { from, to, .. } => println!("{from} has done what it could, now {to} is asked"),
            _ => {}
        }
    }
    if let RunEnd::Finished(end) = run.await? {
        println!("{}", end.answer);
    }
    Ok(())
}
