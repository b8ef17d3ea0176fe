//! A run whose engine keeps its steps: it waits for answers there, and goes on.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use agent_core::{
    Answer, Checkpoint, Error, ErrorKind, Question, Result, RunEnd,
    engine::Steps,
    journal::JournalWriter,
    run::{Clock, RunInput},
};

use super::{AgentParts, Prepared, RunSlot, Terms, answers::accepted, drive};

/// Drives a run to its end, or to a question whose answer its engine does not wait for.
pub(super) async fn drive_on(
    steps: &Steps,
    agent: &AgentParts,
    mut prepared: Prepared,
    slot: RunSlot,
    writer: Arc<dyn JournalWriter>,
) -> Result<RunEnd> {
    may_be_driven_again(agent, &prepared)?;
    let terms = prepared.terms.clone();
    loop {
        let checkpoint = match drive(agent, prepared, slot.clone(), writer.clone()).await? {
            RunEnd::Interrupted(checkpoint) => checkpoint,
            RunEnd::Paused(checkpoint) => match unless_cancelled(&slot, steps.paused(&checkpoint.ids.run_id)).await {
                Err(e) if e.kind() == ErrorKind::Interrupted => return Ok(RunEnd::Paused(checkpoint)),
                goes_on => goes_on.map(|()| checkpoint)?,
            },
            end => return Ok(end),
        };
        let answers = match unless_cancelled(&slot, answers_to(&checkpoint, steps, &terms)).await {
            Err(e) if e.kind() == ErrorKind::Interrupted => return Ok(RunEnd::Interrupted(checkpoint)),
            answers => answers?,
        };
        slot.inbox.reopen();
        slot.pause.withdraw();
        let input = RunInput::Resume { checkpoint, answers };
        prepared = Prepared { input, state: BTreeMap::new(), system: None, terms: terms.clone() };
    }
}

/// What the run waits for. A run that is cancelled waits for nothing: it goes on without, and ends as it is.
async fn unless_cancelled<T: Default>(slot: &RunSlot, waits: impl Future<Output = Result<T>>) -> Result<T> {
    tokio::select! {
        biased;
        () = slot.cancel.cancelled() => Ok(T::default()),
        waited = waits => waited,
    }
}

/// Refuses what would not be the same when an engine drives the run again from its beginning.
fn may_be_driven_again(agent: &AgentParts, prepared: &Prepared) -> Result<()> {
    let refusal = if prepared.terms.run_id.is_none() {
        "a run whose engine keeps its steps needs an id that is the same each time: give it one with run_id(..)"
    } else if agent.journal.is_some() {
        "the run's engine keeps its steps, and the agent has a store of its own: build the agent without store(..)"
    } else if !matches!(prepared.input, RunInput::Messages(_)) {
        "an engine that keeps steps drives a run from its beginning: give it the run's first messages each time"
    } else {
        return Ok(());
    };
    Err(Error::config(refusal))
}

/// The answers to all questions of the run, as its engine has them; none to one whose time is up: asked again, it has its
/// default.
async fn answers_to(checkpoint: &Checkpoint, steps: &Steps, terms: &Terms) -> Result<BTreeMap<String, Answer>> {
    let clock = terms.resources.get::<Clock>().unwrap_or_default();
    let (run, mut answers) = (&checkpoint.ids.run_id, BTreeMap::new());
    for question in &checkpoint.questions {
        let time_is_up = async {
            match question.expires {
                Some(at) => {
                    let left = Duration::from_millis(at.saturating_sub(clock.now()));
                    steps.sleep(run, &format!("expires/{}", question.id), left).await
                }
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            answer = answer_to(question, checkpoint, steps, &clock) => answers.extend(answer?),
            up = time_is_up => up?,
        }
    }
    Ok(answers)
}

/// The first answer that the question admits.
async fn answer_to(
    question: &Question,
    checkpoint: &Checkpoint,
    steps: &Steps,
    clock: &Clock,
) -> Result<BTreeMap<String, Answer>> {
    loop {
        let answer = steps.answer(&checkpoint.ids.run_id, question).await?;
        let given = BTreeMap::from([(question.id.clone(), answer)]);
        match accepted(checkpoint, given, clock.now()) {
            Err(e) => tracing::warn!(error = %e, "an answer was refused: the run goes on waiting"),
            taken => return taken,
        }
    }
}
