//! From a request to a run: ids, journal, history, context.

use std::{
    collections::BTreeMap,
    sync::{Arc, atomic::AtomicBool},
};

use agent_core::{
    Checkpoint, Durable, Emitter, EntryBody, Error, EventHub, Exit, Finished, GlobalStorage, History, Inbox, Journal,
    MemoryJournal, Message, Parent, Phase, Result, RunDriver, RunEnd, RunIds, RunInput, RunLog, RunParts, RunRequest,
    State, UsageMeter, fold_session, new_id, recover,
};
use futures::FutureExt;
use serde_json::Value;

use crate::{Run, RunHandle, agent::Inner, anchor::Anchor, builder::explain::difference, executor::Job, replay};

/// What all runs of a tree share, and what is this run's own from the first moment on.
struct Place {
    ids: Arc<RunIds>,
    hub: EventHub,
    journal: Arc<dyn Journal>,
    above: Option<Emitter>,
    pause: Arc<AtomicBool>,
    inbox: Inbox,
    cancel: tokio_util::sync::CancellationToken,
}

pub(crate) fn start(agent: Arc<Inner>, request: RunRequest) -> Run {
    let place = Place::of(&agent, &request);
    let handle = RunHandle {
        cancel: place.cancel.clone(),
        pause: place.pause.clone(),
        inbox: place.inbox.clone(),
        hub: place.hub.clone(),
    };
    let close = CloseHub((place.ids.depth == 0).then(|| place.hub.clone()));
    let future = async move {
        let _close = close;
        run(&agent, request, place).await
    };
    Run::new(handle, future.boxed())
}

/// Ends the readers of a tree's events when its root run is over, however it ended.
struct CloseHub(Option<EventHub>);

impl Drop for CloseHub {
    fn drop(&mut self) {
        if let Some(hub) = &self.0 {
            hub.close();
        }
    }
}

impl Place {
    fn of(agent: &Inner, request: &RunRequest) -> Self {
        let parent = request.parent.as_ref().map(|p| &p.cx);
        let ids = Arc::new(ids(agent, request));
        let journal: Arc<dyn Journal> = match (parent, &agent.journal) {
            // A replay writes nothing that outlives it.
            _ if matches!(request.input, RunInput::Replay) => Arc::new(MemoryJournal::default()),
            (Some(above), _) => above.emitter().hub().journal().clone(),
            (None, Some(journal)) => journal.clone(),
            (None, None) => Arc::new(MemoryJournal::default()),
        };
        Self {
            hub: parent.map_or_else(
                || EventHub::new(journal.clone(), ids.session.clone()),
                |above| above.emitter().hub().clone(),
            ),
            journal,
            above: parent.map(|above| above.emitter().clone()),
            pause: parent.map(agent_core::RunCx::pause_flag).unwrap_or_default(),
            inbox: Inbox::default(),
            cancel: parent.map(|above| above.cancellation().child_token()).unwrap_or_default(),
            ids,
        }
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
    pub(crate) answers: BTreeMap<String, Value>,
    /// What must be written before a run goes on.
    pub(crate) anchor: Anchor,
}

async fn run(agent: &Arc<Inner>, mut request: RunRequest, mut place: Place) -> Result<RunEnd> {
    let is_root = request.parent.is_none();
    let writer = match &request.parent {
        Some(parent) => {
            parent.cx.log().release();
            parent.cx.log().writer()? // the tree has one writer
        }
        None => place.journal.open(&place.ids.session, &place.ids.agent_id).await?,
    };
    let input = match std::mem::replace(&mut request.input, RunInput::Messages(Vec::new())) {
        RunInput::Recover { answers } => {
            let checkpoint = Box::new(unfinished(agent, &place).await?);
            place.ids = Arc::new(checkpoint.ids.clone());
            RunInput::Resume { checkpoint, answers }
        }
        input => input,
    };
    let recording = match &input {
        RunInput::Replay => Some(replay::recording(agent, &mut place.ids).await?),
        _ => None,
    };
    let mut beginning = match &recording {
        Some(recording) => replay::begin(recording, &*writer, &mut request).await?,
        None => begin(agent, input, &request, &place, is_root).await?,
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
        let newer = place.inbox.take();
        checkpoint.steering.drain(..).chain(newer).for_each(|message| place.inbox.push(message));
    }
    let values = checkpoint.as_ref().map_or_else(|| request.state.clone(), |c| c.state.clone());
    let state = State::new(agent.schema.clone(), values)?;
    let emitter = Emitter::new(place.ids.clone(), place.hub.clone(), place.above.clone());
    let decisions = checkpoint.as_ref().map(|c| c.decisions.clone()).unwrap_or_default();
    let run_id = place.ids.run_id.clone();
    let log = RunLog::new(run_id, writer, emitter.clone(), state.clone(), globals.clone(), decisions);
    if is_root && agent.journal.is_none() {
        log.hold_back();
    }
    if let Some(recording) = &recording {
        log.replay(recording);
    }
    record_begin(agent, &log, &place.ids, &request, checkpoint.as_deref(), &beginning);

    let above = request.parent.as_ref().map(|p| &p.cx);
    let inherited = above.map_or_else(|| Arc::new([]) as _, |cx| cx.covers().clone());
    let mut parts = RunParts::new(place.ids.clone(), emitter, log.clone());
    parts.history = beginning.history;
    parts.state = state;
    parts.globals = globals;
    parts.resources = agent.resources.clone().extended(&request.resources);
    parts.budget = match above {
        Some(cx) => cx.budget().clone(),
        None if recording.is_some() => Default::default(), // nothing is spent
        None => agent.budget.clone(),
    };
    parts.step = beginning.step;
    parts.sub_agents = agent.sub_agents.clone();
    parts.covers = inherited.iter().chain(agent.covers.iter()).cloned().collect();
    parts.inherited = inherited;
    parts.cancel = place.cancel;
    parts.pause = place.pause;
    parts.inbox = place.inbox;
    parts.answers = beginning.answers;
    let meter = above.map(|cx| cx.usage_meter().clone());
    let mut phase = Phase::BeforeModel;
    let resumed = checkpoint.is_some();
    match checkpoint {
        Some(mut c) => {
            parts.step = c.step;
            parts.usage = UsageMeter::new(meter, c.usage, c.tree_usage);
            log.restore_tool_calls(&c.tool_calls);
            log.restore(&mut c);
            phase = c.phase;
        }
        None => parts.usage = UsageMeter::new(meter, Default::default(), Default::default()),
    }
    let job = Job {
        driver: RunDriver::new(parts),
        messages: beginning.messages,
        phase,
        resumed,
        stream: request.stream.unwrap_or(agent.stream),
        tools: request.tools,
        schema: &agent.schema,
        fingerprint: &agent.fingerprint,
    };
    let end = agent.executor.execute(job).await;
    match recording {
        Some(recording) => replay::compare(&recording, &*place.journal, end).await,
        None => end,
    }
}

async fn begin(
    agent: &Inner,
    input: RunInput,
    request: &RunRequest,
    place: &Place,
    is_root: bool,
) -> Result<Beginning> {
    match input {
        RunInput::Messages(messages) => {
            let mut beginning = Beginning { messages, ..Beginning::default() };
            // Only a session that was named, in a store that was given, can have a past.
            if is_root && agent.journal.is_some() && request.session.is_some() {
                let kept = fold_session(&*place.journal, &place.ids.session, &place.ids.agent_id).await?;
                beginning.history = kept.history;
                beginning.globals = kept.globals;
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
            let is_asked = |id: &String| checkpoint.questions.iter().any(|q| q.id == *id);
            // What comes from the run above was checked at the top; some of it may have been answered before a crash.
            if let Some(unknown) = given.keys().find(|id| is_root && !is_asked(id)) {
                let asked: Vec<_> = checkpoint.questions.iter().map(|q| q.id.as_str()).collect();
                let asked = if asked.is_empty() { "nothing".into() } else { asked.join(", ") };
                return Err(Error::config(format!("nobody asked '{unknown}'; the checkpoint asks: {asked}")));
            }
            let anchor = match &agent.journal {
                Some(journal) if is_root => Anchor::of(&**journal, &checkpoint, request.despite_newer).await?,
                _ => Anchor::None,
            };
            let mut answers = std::mem::take(&mut checkpoint.answers);
            answers.extend(given);
            let globals = checkpoint.globals.clone().unwrap_or_default();
            let history = checkpoint.history.clone();
            Ok(Beginning { history, globals, resumed: Some(checkpoint), answers, anchor, ..Beginning::default() })
        }
        _ => Err(Error::config("this release does not know that kind of run input")),
    }
}

/// Where the newest run of the session stands.
async fn unfinished(agent: &Inner, place: &Place) -> Result<Checkpoint> {
    let (session, agent_id) = (&place.ids.session, &place.ids.agent_id);
    if agent.journal.is_none() {
        return Err(Error::config("there is nothing to recover from: give the agent a store with store(..)"));
    }
    let nothing = || Error::config(format!("session '{session}' holds no unfinished run of agent '{agent_id}'"));
    recover(&*place.journal, session, agent_id).await?.ok_or_else(nothing)
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
        if !request.state.is_empty() {
            log.record(EntryBody::StateChanged { state: request.state.clone(), globals: BTreeMap::new() });
        }
        return;
    };
    beginning.anchor.record(log, checkpoint);
    log.record(EntryBody::RunResumed { ids: ids.clone(), attempt: log.attempt().to_owned() });
    for question in &checkpoint.questions {
        if let Some(answer) = beginning.answers.get(&question.id) {
            log.record(EntryBody::Answered { id: question.id.clone(), answer: answer.clone(), by: None });
        }
    }
}
