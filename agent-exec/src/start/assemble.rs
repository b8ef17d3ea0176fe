//! Builds the job that the executor drives from the prepared run.

use std::{sync::Arc, time::Duration};

use agent_core::{
    Budget, ExitReason, GlobalStorage, Result, RunCx, State,
    engine::{Emitter, EngineCx, RunDriver, RunLog, RunParts},
    journal::JournalWriter,
    middleware::Middlewares,
    run::RunDeadline,
};

use super::{AgentParts, RunOptions, RunSlot, StartState};
use crate::{engine::KEY, executor::Job, stack::ToolTable};

/// Builds the job: opens the run's log and records its start.
pub(super) fn assemble<'a>(
    agent: &'a AgentParts,
    options: &RunOptions,
    slot: RunSlot,
    mut state: StartState,
    writer: Arc<dyn JournalWriter>,
    system: Option<Result<String>>,
    table: ToolTable,
) -> Result<Job<'a>> {
    let resumed = state.is_resumed();
    slot.inbox.put_back(std::mem::take(&mut state.checkpoint.steering));
    let driver = RunDriver::new(parts(agent, options, slot, &state, writer)?);
    if resumed {
        // journals the steering messages of the earlier attempt again
        driver.engine().keep_steering();
    }
    Ok(Job {
        driver,
        lifecycle: state.recording().is_none().then_some(&agent.lifecycle),
        system,
        messages: state.messages,
        resumed,
        stream: options.stream,
        params: options.params.clone(),
        tools: options.tools.clone(),
        table,
    })
}

/// Builds the parts of a new or resumed run.
fn parts(
    agent: &AgentParts,
    options: &RunOptions,
    slot: RunSlot,
    start: &StartState,
    writer: Arc<dyn JournalWriter>,
) -> Result<RunParts> {
    let checkpoint = &*start.checkpoint;
    let ids = Arc::new(checkpoint.ids.clone());
    let elapsed = Duration::from_millis(checkpoint.elapsed_ms) + slot.time.elapsed();
    let above = options.parent.as_ref().map(|parent| &parent.cx);
    let globals = globals(agent, above, start);
    let inherited = above.and_then(|above| KEY.open(above)).map(|above| above.descendant_middlewares().clone());
    // The keys of inherited middlewares are not known where the agent is built.
    let schema = inherited.iter().flat_map(|list| list.iter()).fold(agent.schema.clone(), |own, m| m.state().with(own));
    let state = State::new(schema, checkpoint.state.clone())?;
    let emitter = Emitter::new(ids.clone(), slot.hub, slot.above);
    let above_engine = above.and_then(|above| KEY.open(above));
    let (own_emitter, own_state) = (emitter.clone(), state.clone());
    let log = match above_engine {
        Some(above) => above.log().child(ids.clone(), writer, own_emitter, own_state),
        None => RunLog::new(ids.clone(), slot.journal, writer, own_emitter, own_state, globals.clone()),
    };
    if let Some(steps) = &options.steps {
        log.run_on(steps.clone());
    }
    start.record(&log, &ids, options.history.as_ref());

    let mut parts = RunParts::new(ids, emitter, log);
    (parts.state, parts.globals, parts.resources) = (state, globals, options.resources.clone());
    (parts.cancel, parts.pause, parts.inbox) = (slot.cancel, slot.pause, slot.inbox);
    parts.budget = budget(agent, options, start);
    parts.deadline = deadline(agent, &parts.budget, above.and_then(RunCx::deadline), elapsed);
    parts.is_reserved = above_engine.is_some_and(EngineCx::is_in_reserved_call);
    parts.sub_agents = agent.sub_agents.clone();
    parts.inherited =
        above_engine.map_or_else(|| Arc::new([]) as Middlewares, |above| above.descendant_middlewares().clone());
    parts.for_descendants = parts.inherited.iter().chain(agent.for_descendants.iter()).cloned().collect();
    (parts.step, parts.answers) = (checkpoint.step, checkpoint.answers.clone());
    (parts.questions, parts.background) = (checkpoint.questions.clone(), checkpoint.background.clone());
    parts.key = Some(*KEY);
    Ok(parts)
}

/// Returns the global storage of the hierarchy: the parent run's, the application's, or the one
/// restored from the session.
fn globals(agent: &AgentParts, above: Option<&RunCx>, state: &StartState) -> GlobalStorage {
    match (above, &agent.globals) {
        (Some(above), _) => above.globals().clone(),
        (None, Some(given)) if state.recording().is_none() => given.clone(),
        _ => GlobalStorage::restore(state.checkpoint.globals.clone().unwrap_or_default()),
    }
}

/// Returns the run's budget, with the amounts that were already used.
fn budget(agent: &AgentParts, options: &RunOptions, state: &StartState) -> Budget {
    let checkpoint = &state.checkpoint;
    match &options.parent {
        Some(parent) => parent.cx.budget().of_sub_run(&agent.budget, options.caps, checkpoint.used()),
        None if state.recording().is_some() => Budget::default(), // a replay spends nothing
        None => {
            // the user with whom the run started
            let user = checkpoint.ids.user.as_deref().or(options.user.as_deref());
            let budget = options.budget.as_ref().map_or_else(|| agent.budget.clone(), |more| agent.budget.and(more));
            budget.of_run(&checkpoint.ids, user, options.caps, checkpoint.used())
        }
    }
}

/// Returns the run's deadline: the earliest of the agent's own, the budget's and the parent run's.
fn deadline(
    agent: &AgentParts,
    budget: &Budget,
    above: Option<&RunDeadline>,
    elapsed: Duration,
) -> Option<RunDeadline> {
    let own = agent.executor.deadlines.run.map(|most| (most, ExitReason::Deadline));
    let budgeted = budget.run_caps().wall_time.map(|most| (most, ExitReason::Budget));
    let limits = own.into_iter().chain(budgeted);
    let limits = limits.filter_map(|(most, reason)| RunDeadline::new(most, elapsed, reason));
    limits.chain(above.cloned()).min_by_key(|deadline| deadline.at)
}
