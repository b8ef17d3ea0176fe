//! A run on an engine that persists its steps: it waits for answers inside the engine, and resumes
//! there.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use agent_core::{
    Answer, Checkpoint, Error, ErrorKind, Question, Result, RunEnd,
    engine::Steps,
    journal::JournalWriter,
    run::{Clock, RunInput},
};

use futures::future::try_join_all;

use super::{AgentParts, Prepared, RunOptions, RunSlot, answers::accepted, drive};

/// Drives a run to its end, or to a question whose answer the engine does not wait for.
pub(super) async fn drive_on(
    steps: &Steps,
    agent: &AgentParts,
    mut prepared: Prepared,
    mut slot: RunSlot,
    writer: Arc<dyn JournalWriter>,
) -> Result<RunEnd> {
    may_be_driven_again(agent, &prepared)?;
    let options = prepared.options.clone();
    loop {
        let mut checkpoint = match drive(agent, prepared, slot.clone(), writer.clone()).await? {
            RunEnd::Interrupted(checkpoint) => checkpoint,
            RunEnd::Paused(checkpoint) => match unless_cancelled(&slot, steps.paused(&checkpoint.ids.run_id)).await {
                Err(e) if e.kind() == ErrorKind::Interrupted => return Ok(RunEnd::Paused(checkpoint)),
                goes_on => goes_on.map(|()| checkpoint)?,
            },
            end => return Ok(end),
        };
        let answers = match unless_cancelled(&slot, answers_to(&mut checkpoint, steps, &options)).await {
            Err(e) if e.kind() == ErrorKind::Interrupted => return Ok(RunEnd::Interrupted(checkpoint)),
            answers => answers?,
        };
        slot.begins_now(); // waiting for answers does not count
        slot.inbox.reopen();
        slot.pause.withdraw();
        let input = RunInput::Resume { checkpoint, answers };
        prepared = Prepared { input, state: BTreeMap::new(), system: None, options: options.clone() };
    }
}

/// Waits for `waits`, unless the run is cancelled: then it returns the default, and the run resumes
/// without the value and ends.
async fn unless_cancelled<T: Default>(slot: &RunSlot, waits: impl Future<Output = Result<T>>) -> Result<T> {
    tokio::select! {
        biased;
        () = slot.cancel.cancelled() => Ok(T::default()),
        waited = waits => waited,
    }
}

/// Refuses input that would differ when an engine re-drives the run from its start.
fn may_be_driven_again(agent: &AgentParts, prepared: &Prepared) -> Result<()> {
    let refusal = if prepared.options.run_id.is_none() {
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

/// Returns the answers to all open questions of the run. An expired question has no answer: asked
/// again, it takes its default.
///
/// The engine decides whether an answer arrived in time. Its decision holds when the run is driven
/// again, so no clock is read after it.
async fn answers_to(
    checkpoint: &mut Checkpoint,
    steps: &Steps,
    options: &RunOptions,
) -> Result<BTreeMap<String, Answer>> {
    let clock = options.resources.get::<Clock>().unwrap_or_default();
    let each = checkpoint.questions.iter().map(|question| settled(question, checkpoint, steps, &clock));
    let answers: BTreeMap<_, _> = try_join_all(each).await?.into_iter().flatten().collect();
    decide(checkpoint, "", &answers);
    Ok(answers)
}

/// Records the decisions on the questions of a run, whose ids have the prefix `above`, and of the
/// sub-agents suspended with it: answered questions lose their expiry, and the others are marked as
/// expired.
fn decide(checkpoint: &mut Checkpoint, above: &str, answers: &BTreeMap<String, Answer>) {
    for question in &mut checkpoint.questions {
        let is_answered = answers.contains_key(&format!("{above}{}", question.id));
        question.expires = question.expires.filter(|_| !is_answered).map(|_| 0);
    }
    for child in &mut checkpoint.children {
        let place = format!("{above}{}/", child.place());
        if let Some(checkpoint) = &mut child.checkpoint {
            decide(checkpoint, &place, answers);
        }
    }
}

/// Returns the answer to a question; an empty map if the question expired.
async fn settled(
    question: &Question,
    checkpoint: &Checkpoint,
    steps: &Steps,
    clock: &Clock,
) -> Result<BTreeMap<String, Answer>> {
    let time_is_up = async {
        match question.expires {
            Some(at) => {
                let left = Duration::from_millis(at.saturating_sub(clock.now()));
                steps.sleep(&checkpoint.ids.run_id, &format!("expires/{}", question.id), left).await
            }
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        biased;
        answer = answer_to(question, checkpoint, steps) => answer,
        up = time_is_up => up.map(|()| BTreeMap::new()),
    }
}

/// Returns the first answer that the question admits.
async fn answer_to(question: &Question, checkpoint: &Checkpoint, steps: &Steps) -> Result<BTreeMap<String, Answer>> {
    const IN_TIME: u64 = 0;
    loop {
        let answer = steps.answer(&checkpoint.ids.run_id, question).await?;
        let given = BTreeMap::from([(question.id.clone(), answer)]);
        match accepted(checkpoint, given, IN_TIME) {
            Err(e) => tracing::warn!(error = %e, "an answer was refused: the run goes on waiting"),
            taken => return taken,
        }
    }
}
