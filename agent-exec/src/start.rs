//! From a request to a run: ids, journal, history, context.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use agent_core::{
    Answer, Budget, Checkpoint, Error, ErrorKind, Exit, ExitReason, Finished, GlobalStorage, History, Journal,
    MemoryJournal, Message, Result, RunEnd, RunIds, RunRequest, State, WhenWaiting, boxed,
    engine::{Emitter, EngineCx, EventHub, Inbox, Parent, Pause, RunDriver, RunLog, RunParts, UsageMeter},
    journal::{EntryBody, JournalWriter, Liveness, RunStatus},
    run::{Clock, RunDeadline, RunInput, checkpoint::Phase, new_id},
};
use serde_json::Value;

use crate::{
    Run, RunHandle,
    agent::Inner,
    answers::accepted,
    builder::explain::difference,
    engine::KEY,
    executor::Job,
    journal_sync::JournalSync,
    replay,
    sessions::{Admission, admit},
};

/// What all runs of a tree share, and what is this run's own from the first moment on.
pub(crate) struct RunSlot {
    pub(crate) ids: Arc<RunIds>,
    pub(crate) hub: EventHub,
    pub(crate) journal: Arc<dyn Journal>,
    above: Option<Emitter>,
    pause: Pause,
    pub(crate) inbox: Inbox,
    pub(crate) cancel: tokio_util::sync::CancellationToken,
}

pub(crate) fn start(agent: Arc<Inner>, request: RunRequest) -> Run {
    let slot = RunSlot::of(&agent, &request);
    let handle = RunHandle {
        cancel: slot.cancel.clone(),
        pause: slot.pause.clone(),
        inbox: slot.inbox.clone(),
        hub: slot.hub.clone(),
    };
    let close = Close { hub: (slot.ids.depth == 0).then(|| slot.hub.clone()), inbox: slot.inbox.clone() };
    let drain = agent.drain.clone().filter(|_| slot.ids.depth == 0).map(|drain| (drain, handle.clone()));
    // In a box: each future that it is handed to would have two places for it.
    let request = Box::new(request);
    let future = boxed(|| async move {
        let _close = close;
        let _present = drain.map(|(drain, handle)| drain.enter(handle)).transpose()?;
        run(&agent, request, slot).await
    });
    Run::new(handle, future)
}

/// Ends the readers of a tree's events when its root run is over, however it ended, and refuses what comes too late to steer.
struct Close {
    hub: Option<EventHub>,
    inbox: Inbox,
}

impl Drop for Close {
    fn drop(&mut self) {
        self.inbox.close();
        if let Some(hub) = &self.hub {
            hub.close();
        }
    }
}

impl RunSlot {
    fn of(agent: &Inner, request: &RunRequest) -> Self {
        let parent = request.parent.as_ref();
        let ids = Arc::new(ids(agent, request));
        let journal: Arc<dyn Journal> = match (parent, &agent.journal) {
            // A replay writes nothing that outlives it.
            _ if matches!(request.input, RunInput::Replay) => Arc::new(MemoryJournal::default()),
            (Some(above), _) => above.engine().emitter().hub().journal().clone(),
            (None, Some(journal)) => journal.clone(),
            (None, None) => Arc::new(MemoryJournal::bounded(agent.entries_kept)),
        };
        let handle = request.parent.as_ref().and_then(|parent| parent.handle.as_ref());
        Self {
            hub: parent.map_or_else(
                || EventHub::new(journal.clone(), ids.session.clone()),
                |above| above.engine().emitter().hub().clone(),
            ),
            journal,
            above: parent.map(|above| above.engine().emitter().clone()),
            pause: match (handle, parent) {
                (Some(handle), _) => handle.pause_flag().clone(),
                (None, above) => above.map(|above| above.engine().pause_flag()).unwrap_or_default(),
            },
            // A layer that runs the agent again finds the first run's closed.
            inbox: handle.map(|handle| handle.inbox().clone()).filter(|inbox| !inbox.is_closed()).unwrap_or_default(),
            cancel: match (handle, parent) {
                (Some(handle), _) => handle.cancellation().clone(),
                (None, above) => above.map(|above| above.cx.cancellation().child_token()).unwrap_or_default(),
            },
            ids,
        }
    }

    /// Runs in another session after all: nothing was written yet.
    pub(crate) fn move_to(&mut self, session: Arc<str>) {
        Arc::make_mut(&mut self.ids).session = session.clone();
        self.hub.move_to(session);
    }
}

fn ids(agent: &Inner, request: &RunRequest) -> RunIds {
    if let RunInput::Resume { checkpoint, .. } = &request.input {
        return checkpoint.ids.clone();
    }
    match &request.parent {
        Some(Parent { cx, .. }) => cx.ids().child(agent.name.clone(), request.agent_id.clone(), request.run_id.clone()),
        None => {
            let session = request.session.clone().unwrap_or_else(|| new_id().into());
            let mut ids = RunIds::root(agent.name.clone(), session);
            ids.user = request.user.clone();
            if let Some(agent_id) = &request.agent_id {
                ids.agent_id = agent_id.clone();
            }
            if let Some(run_id) = &request.run_id {
                (ids.run_id, ids.root_run_id) = (run_id.clone(), run_id.clone());
            }
            ids
        }
    }
}

/// Where a run begins.
#[derive(Default)]
pub(crate) struct Beginning {
    pub(crate) messages: Vec<Message>,
    pub(crate) history: History,
    pub(crate) globals: BTreeMap<String, Value>,
    /// Steps taken elsewhere.
    pub(crate) step: u32,
    /// Set when the run goes on; it then keeps its history, answers and counts.
    pub(crate) resumed: Option<Box<Checkpoint>>,
    pub(crate) answers: BTreeMap<String, Answer>,
    /// What must be written before a run goes on.
    pub(crate) sync: JournalSync,
}

async fn run(agent: &Arc<Inner>, mut request: Box<RunRequest>, mut slot: RunSlot) -> Result<RunEnd> {
    let system = agent.prompts.prepare(&mut request, &agent.schema)?;
    if let Some(parent) = &request.parent {
        let writer = parent.engine().log().writer()?; // the tree has one writer
        return run_as(agent, request, slot, writer, system).await;
    }
    match admit(agent, &mut request, &mut slot).await? {
        Admission::Runs { writer, guard } => {
            let end = run_as(agent, request, slot, writer, system).await;
            if let Some(guard) = guard {
                guard.end(&end);
            }
            end
        }
        Admission::Ended(end) => end,
    }
}

async fn run_as(
    agent: &Arc<Inner>,
    mut request: Box<RunRequest>,
    mut slot: RunSlot,
    writer: Arc<dyn JournalWriter>,
    system: Option<Result<String>>,
) -> Result<RunEnd> {
    let is_root = request.parent.is_none();
    let input = match std::mem::replace(&mut request.input, RunInput::Messages(Vec::new())) {
        RunInput::Recover { answers } => {
            let checkpoint = Box::new(unfinished(agent, &slot).await?);
            slot.ids = Arc::new(checkpoint.ids.clone());
            RunInput::Resume { checkpoint, answers }
        }
        input => input,
    };
    let recording = match &input {
        RunInput::Replay => Some(replay::recording(agent, request.run_id.as_deref(), &mut slot.ids).await?),
        _ => None,
    };
    let mut beginning = match &recording {
        Some(recording) => replay::begin(recording, &*writer, &mut request).await?,
        None => begin(agent, input, &request, &slot, is_root).await?,
    };

    let globals = match (&request.parent, &agent.globals) {
        (Some(parent), _) => parent.cx.globals().clone(),
        (None, Some(given)) if recording.is_none() => given.clone(),
        _ => GlobalStorage::restore(std::mem::take(&mut beginning.globals)),
    };
    let mut checkpoint = beginning.resumed.take();
    if let Some(checkpoint) = &mut checkpoint {
        if !is_root && let Phase::Ended(exit) = &checkpoint.phase {
            return Ok(RunEnd::Finished(Box::new(ended(checkpoint, exit, beginning.history))));
        }
        let newer = slot.inbox.take();
        slot.inbox.extend(checkpoint.steering.drain(..).chain(newer).collect())?;
    }
    let values = checkpoint.as_ref().map_or_else(|| request.state.clone(), |c| c.state.clone());
    let state = State::new(agent.schema.clone(), values)?;
    let emitter = Emitter::new(slot.ids.clone(), slot.hub.clone(), slot.above.clone());
    let above = request.parent.as_ref().map(|p| &p.cx);
    let above_engine = request.parent.as_ref().map(Parent::engine);
    let log = RunLog::new(
        slot.ids.clone(),
        writer,
        emitter.clone(),
        state.clone(),
        globals.clone(),
        above_engine.map(EngineCx::log),
    );
    let _over = Over(log.clone());
    match &checkpoint {
        Some(checkpoint) => log.adopt(checkpoint),
        None => log.seed(beginning.history.clone()),
    }
    if let Some(recording) = &recording {
        log.replay(recording);
    }
    record_begin(agent, &log, &slot.ids, &request, checkpoint.as_deref(), &beginning);

    let inherited = above_engine.map_or_else(|| Arc::new([]) as _, |above| above.covers().clone());
    let mut parts = RunParts::new(slot.ids.clone(), emitter, log.clone());
    parts.key = Some(*KEY);
    parts.state = state;
    parts.globals = globals;
    parts.resources = agent.resources.clone().extended(&request.resources);
    let spent = checkpoint.as_ref().map(|c| c.used()).unwrap_or_default();
    parts.budget = match above {
        Some(cx) => cx.budget().of_sub_run(&agent.budget, request.caps, spent),
        None if recording.is_some() => Budget::default(), // nothing is spent
        None => {
            let user = slot.ids.user.as_deref().or(request.user.as_deref()); // the one that it began with
            agent.budget.of_run(&slot.ids, user, request.caps, spent)
        }
    };
    let elapsed = checkpoint.as_ref().map(|c| Duration::from_millis(c.elapsed_ms)).unwrap_or_default();
    parts.deadline = deadline(agent, &parts.budget, above.and_then(|cx| cx.deadline()), elapsed);
    parts.sub_agents_started = checkpoint.as_ref().map(|c| c.sub_agents).unwrap_or_default();
    parts.step = beginning.step;
    parts.sub_agents = agent.sub_agents.clone();
    parts.covers = inherited.iter().chain(agent.covers.iter()).cloned().collect();
    parts.inherited = inherited;
    parts.cancel = slot.cancel;
    parts.pause = slot.pause;
    parts.inbox = slot.inbox;
    parts.answers = beginning.answers;
    let meter = above_engine.map(|above| above.usage_meter().clone());
    let mut phase = Phase::BeforeModel;
    let resumed = checkpoint.is_some();
    match checkpoint {
        Some(mut c) => {
            parts.step = c.step;
            parts.questions = std::mem::take(&mut c.questions);
            parts.background = std::mem::take(&mut c.background);
            parts.usage = UsageMeter::new(meter, c.usage, c.tree_usage);
            phase = c.phase;
        }
        None => parts.usage = UsageMeter::new(meter, Default::default(), Default::default()),
    }
    let job = Job {
        driver: RunDriver::new(parts),
        lifecycle: recording.is_none().then_some(&agent.lifecycle),
        system,
        messages: beginning.messages,
        phase,
        resumed,
        stream: request.stream.unwrap_or(agent.stream),
        params: match request.params {
            Some(over) => (*agent.executor.params).clone().with(*over).into(),
            None => agent.executor.params.clone(),
        },
        tools: request.tools,
        schema: &agent.schema,
        fingerprint: &agent.fingerprint,
        elapsed,
    };
    let end = agent.executor.execute(job).await;
    match recording {
        Some(recording) => replay::compare(&recording, &*slot.journal, end).await,
        None => end,
    }
}

/// Lets go of the session also when the run is dropped, whatever is left of its tasks by then.
struct Over(RunLog);

impl Drop for Over {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// When the run must be over: the first of the agent's own deadline, the budget's, and that of the run above.
fn deadline(agent: &Inner, budget: &Budget, above: Option<&RunDeadline>, elapsed: Duration) -> Option<RunDeadline> {
    let own = agent.executor.deadlines.run.map(|most| (most, ExitReason::Deadline));
    let budgeted = budget.run_caps().wall_time.map(|most| (most, ExitReason::Budget));
    let limits = own.into_iter().chain(budgeted);
    let limits = limits.filter_map(|(most, reason)| RunDeadline::new(most, elapsed, reason));
    limits.chain(above.cloned()).min_by_key(|deadline| deadline.at)
}

async fn begin(
    agent: &Inner,
    input: RunInput,
    request: &RunRequest,
    slot: &RunSlot,
    is_root: bool,
) -> Result<Beginning> {
    match input {
        RunInput::Messages(messages) => {
            let mut beginning = Beginning { messages, ..Beginning::default() };
            // Only a session that was named, in a store that was given, can have a past.
            if is_root && agent.journal.is_some() && request.session.is_some() {
                if request.run_id.is_some() {
                    refuse_again(slot).await?;
                }
                let index = slot.journal.index(&slot.ids.session).await?;
                let kept = index.look(|index| index.view(&slot.ids.agent_id));
                let waits = matches!(kept.last_run, Some((_, Some(RunStatus::Interrupted))));
                if waits && request.when_waiting.unwrap_or(agent.when_waiting) == WhenWaiting::Reject {
                    return Err(waiting(slot).await?);
                }
                beginning.history = kept.history;
                beginning.globals = kept.globals;
            } else if !is_root && let Some(copied) = &request.history {
                beginning.history = copied.clone();
            } else if let (Some(parent), Some(recalled)) = (&request.parent, &request.agent_id) {
                beginning.history = parent.engine().log().look_at_session(|index| index.history(recalled)).await?;
            }
            Ok(beginning)
        }
        RunInput::Resume { mut checkpoint, answers: given } => {
            let changed = checkpoint.fingerprint != agent.fingerprint;
            if let (true, Some(migrate)) = (changed, &agent.migration) {
                migrate(&mut checkpoint)?;
            } else if changed && !request.despite_changes {
                let changes = difference(&checkpoint.fingerprint, &agent.fingerprint);
                return Err(Error::config(format!(
                    "the checkpoint is of another agent; resume with the agent that made it, give the agent a migration, or say despite_changes():\n{changes}"
                )));
            }
            let journal = agent.journal.as_deref().filter(|_| is_root);
            // What comes from the run above was checked at the top.
            let given = match is_root {
                true => {
                    let clock = agent.resources.clone().extended(&request.resources).get::<Clock>().unwrap_or_default();
                    let used_once = journal.filter(|_| !request.despite_newer);
                    let accepted = accepted(&checkpoint, given, clock.now(), used_once).await;
                    accepted.map_err(|e| e.with_checkpoint((*checkpoint).clone()))?
                }
                false => given,
            };
            let sync = match journal {
                Some(journal) => JournalSync::of(journal, &checkpoint, request.despite_newer).await?,
                None => JournalSync::UpToDate,
            };
            let mut answers = std::mem::take(&mut checkpoint.answers);
            answers.extend(given);
            let globals = checkpoint.globals.clone().unwrap_or_default();
            let history = checkpoint.history.clone();
            Ok(Beginning { history, globals, resumed: Some(checkpoint), answers, sync, ..Beginning::default() })
        }
        _ => Err(Error::config("this release does not know that kind of run input")),
    }
}

/// The refusal of a run whose session waits for answers.
async fn waiting(slot: &RunSlot) -> Result<Error> {
    let (session, agent_id) = (&slot.ids.session, &slot.ids.agent_id);
    let asked = slot.journal.index(session).await?.look(|index| index.unfinished(agent_id));
    let questions = asked.iter().flat_map(|checkpoint| &checkpoint.questions);
    let questions: Vec<_> = questions.map(|question| format!("'{}' ({})", question.id, question.kind)).collect();
    let message = format!(
        "session '{session}' waits for answers: {}; go on with them by RunRequest::recover, or leave them by \
         when_waiting(WhenWaiting::Supersede)",
        questions.join(", ")
    );
    let refusal = Error::new(ErrorKind::Busy, message);
    Ok(match asked {
        Some(checkpoint) => refusal.with_checkpoint(checkpoint),
        None => refusal,
    })
}

/// A request with an id of its own that comes again, because its answer was lost on the way, does not run again.
async fn refuse_again(slot: &RunSlot) -> Result<()> {
    let (run, session) = (&slot.ids.run_id, &slot.ids.session);
    if slot.journal.index(session).await?.look(|index| index.liveness(&slot.ids)) == Liveness::Unknown {
        return Ok(());
    }
    let message = format!(
        "session '{session}' has a run '{run}' already: read its end there, go on with it (RunRequest::recover), or give the \
         new run an id of its own"
    );
    Err(Error::new(ErrorKind::Stale, message))
}

/// Where the newest run of the session stands.
async fn unfinished(agent: &Inner, slot: &RunSlot) -> Result<Checkpoint> {
    let (session, agent_id) = (&slot.ids.session, &slot.ids.agent_id);
    if agent.journal.is_none() {
        return Err(Error::config("there is nothing to recover from: give the agent a store with store(..)"));
    }
    let nothing = || Error::config(format!("session '{session}' holds no unfinished run of agent '{agent_id}'"));
    slot.journal.index(session).await?.look(|index| index.unfinished(agent_id)).ok_or_else(nothing)
}

/// The end of a run that was over already, for the run above that did not take it.
fn ended(checkpoint: &Checkpoint, exit: &Exit, history: History) -> Finished {
    let mut finished = Finished::new(checkpoint.ids.clone(), exit.answer.clone(), exit.reason.clone(), history);
    finished.steps = checkpoint.step;
    (finished.usage, finished.tree_usage) = (checkpoint.usage, checkpoint.tree_usage);
    finished.tool_calls.clone_from(&checkpoint.tool_calls);
    finished.state.clone_from(&checkpoint.state);
    finished
}

fn record_begin(
    agent: &Inner,
    log: &RunLog,
    ids: &Arc<RunIds>,
    request: &RunRequest,
    resumed: Option<&Checkpoint>,
    beginning: &Beginning,
) {
    let Some(checkpoint) = resumed else {
        log.record(EntryBody::RunStarted { ids: ids.clone(), fingerprint: agent.fingerprint.clone() });
        if let Some(history) = request.history.clone().filter(|_| ids.depth > 0) {
            log.record(EntryBody::HistoryReplaced { reason: "forked".into(), before: 0, history });
        }
        if !request.state.is_empty() {
            log.record(EntryBody::StateChanged { state: request.state.clone(), globals: BTreeMap::new() });
        }
        return;
    };
    beginning.sync.record(log, checkpoint);
    log.record(EntryBody::RunResumed { ids: ids.clone(), attempt: log.attempt().to_string() });
    for question in &checkpoint.questions {
        if let Some(answer) = beginning.answers.get(&question.id) {
            log.record(EntryBody::answered(&question.id, answer));
        }
    }
}
