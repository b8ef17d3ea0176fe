//! [`RunTape`]: the recorded steps of one run, which replace calls to models, tools and sub-agents.

use std::{
    collections::{BTreeMap, HashMap, HashSet, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use async_trait::async_trait;
use serde_json::Value;

use super::{
    Durable, Entry, EntryBody, KeptCall, KeptError, KeptRun, KeptValue, Recording, SessionIndex, Step, StepBody,
    StepKind, StepResult,
};
use crate::{
    error::{Error, ErrorKind, Result},
    llm::ModelResponse,
    message::Message,
    state::{ChildRun, Finished, Phase},
    tooling::ToolOutput,
    usage::Usage,
};

/// Recorded results of one run, by step. Its sub-agents are not driven again: those of a tool call
/// belong to the call, and those of a hook have their recorded ends.
pub(crate) struct RunTape {
    run: Arc<str>,
    /// Number of the current step.
    step: u32,
    /// True if the recording ends before the run's end.
    open: bool,
    models: BTreeMap<u32, VecDeque<Arc<ModelResponse>>>,
    tools: HashMap<(u32, Arc<str>), RecordedCall>,
    decisions: Vec<(String, Value, Usage)>,
    messages: BTreeMap<u32, Vec<Message>>,
    of_hooks: Vec<RecordedChild>,
}

/// Recorded result of a call, with its changes and child runs.
#[derive(Default)]
struct RecordedCall {
    /// `None` if the tool failed and the model received the error.
    output: Option<ToolOutput>,
    failure: Option<String>,
    state: BTreeMap<String, Value>,
    globals: BTreeMap<String, Option<Value>>,
    /// Entries of the child runs, which are not driven again.
    descendants: Vec<Entry>,
    /// Reason of a stop that was requested before the call ended.
    stop: Option<String>,
}

/// A sub-agent that a hook started.
struct RecordedChild {
    link: ChildRun,
    /// True when the replayed hook has started it.
    is_taken: bool,
    /// Its entries, and those of its descendants.
    entries: Vec<Entry>,
    finished: Option<Finished>,
}

/// Origin of a run in the recording.
#[derive(Clone)]
enum StartedBy {
    Call(u32, Arc<str>),
    /// A hook: the sub-agent at this index.
    Hook(usize),
}

impl RecordedCall {
    fn kept(self) -> KeptCall {
        let failure = self.failure.unwrap_or_default();
        let mut kept = KeptCall::new(self.output.ok_or_else(|| KeptError::of(&Error::tool(failure))));
        let value = |(name, value)| (name, KeptValue::new(value));
        kept.globals = self.globals.into_iter().map(value).collect();
        kept.state = self.state.into_iter().map(|(name, v)| value((name, Some(v)))).collect();
        kept.descendants = self.descendants;
        kept.stop = self.stop;
        kept
    }
}

/// Engine of a replayed run.
pub(crate) struct Recorded(pub(crate) Arc<Mutex<RunTape>>);

#[async_trait]
impl Durable for Recorded {
    fn attempt(&self) -> &str {
        "replay"
    }

    async fn step(&self, step: &Step, body: StepBody<'_>) -> Result<StepResult> {
        match &step.kind {
            StepKind::Model { step: n } => self.of(step)?.model(*n).map(|answer| StepResult::Model(Box::new(answer))),
            StepKind::Tool { call_id, .. } => {
                self.of(step)?.tool(call_id).map(|call| StepResult::Tool(Box::new(call.kept())))
            }
            StepKind::Decision { name } => {
                self.of(step)?.decision(name).map(|(value, beside)| StepResult::Value { value, beside })
            }
            StepKind::Child { owner, key, number, .. } => {
                self.of(step)?.child(owner, key, *number).map(|run| StepResult::value((*run).into()))
            }
            _ => body.await,
        }
    }

    async fn child(&self, step: &Step, body: StepBody<'_>) -> Result<StepResult> {
        match &step.kind {
            StepKind::Run { run, .. } => self.of(step)?.run(run).map(|kept| StepResult::Run(Box::new(kept))),
            _ => body.await,
        }
    }
}

impl Recorded {
    /// The tape of the run that makes the step.
    fn of(&self, step: &Step) -> Result<MutexGuard<'_, RunTape>> {
        let tape = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match tape.run == step.run {
            true => Ok(tape),
            false => Err(tape.missing(&format!("run '{}' is not driven", step.run))),
        }
    }
}

impl RunTape {
    pub(crate) fn new(recording: &Recording) -> Self {
        let mut tape = Self {
            run: recording.ids.run_id.clone(),
            step: 0,
            open: recording.is_open(),
            models: BTreeMap::new(),
            tools: HashMap::new(),
            decisions: Vec::new(),
            messages: BTreeMap::new(),
            of_hooks: Vec::new(),
        };
        let (mut step, mut newest, mut started) = (0, None, HashMap::<Arc<str>, StartedBy>::new());
        let (mut side_usage, mut stop) = (Usage::default(), None);
        for entry in &recording.entries {
            if entry.run != tape.run {
                tape.take_descendant(entry, &mut started);
                continue;
            }
            let finished = newest.take();
            match &entry.body {
                EntryBody::ModelFinished { step, response } => {
                    tape.models.entry(*step).or_default().push_back(response.clone());
                }
                EntryBody::ModelAccepted { step: accepted, .. } => step = *accepted,
                EntryBody::SubAgentLinked { call_id, hook, n, place, key, run, .. } => {
                    let child = ChildRun::new(call_id.clone(), key.as_str(), run.clone());
                    let link = ChildRun { hook: hook.clone(), n: *n, place: place.clone(), ..child };
                    let by = match link.is_of_hook() {
                        true => StartedBy::Hook(tape.of_hooks.len()),
                        false => StartedBy::Call(step, call_id.clone()),
                    };
                    match &by {
                        StartedBy::Call(step, id) => tape.call(*step, id).descendants.push(entry.clone()),
                        StartedBy::Hook(_) => {
                            tape.of_hooks.push(RecordedChild {
                                link,
                                is_taken: false,
                                entries: Vec::new(),
                                finished: None,
                            });
                        }
                    }
                    started.insert(run.clone(), by);
                }
                EntryBody::ToolFinished { call_id, output } => {
                    let call = tape.call(step, call_id);
                    (call.output, call.stop) = (Some(output.clone()), stop.clone());
                    newest = Some((step, call_id.clone()));
                }
                EntryBody::ToolAnswered { call_id, output: Some(output), .. } => {
                    tape.call(step, call_id).failure = Some(output.to_text());
                }
                EntryBody::StateChanged { state, globals } => {
                    if let Some(call) = finished.and_then(|call| tape.tools.get_mut(&call)) {
                        (call.state, call.globals) = (state.clone(), globals.clone());
                    }
                }
                EntryBody::StopRequested { reason } => stop = Some(reason.to_string()),
                EntryBody::SideModelFinished { usage } => side_usage += **usage,
                EntryBody::Decided { name, value, .. } => {
                    tape.decisions.push((name.clone(), value.clone(), std::mem::take(&mut side_usage)));
                }
                EntryBody::MessageAppended { message } if step > 0 => {
                    tape.messages.entry(step).or_default().push(message.clone());
                }
                _ => {}
            }
        }
        tape.find_ends(recording);
        tape
    }

    fn call(&mut self, step: u32, id: &Arc<str>) -> &mut RecordedCall {
        self.tools.entry((step, id.clone())).or_default()
    }

    /// Takes an entry of a run below.
    fn take_descendant(&mut self, entry: &Entry, started: &mut HashMap<Arc<str>, StartedBy>) {
        if let EntryBody::RunStarted { ids, .. } = &entry.body
            && let Some(above) = ids.parent_run_id.as_ref().and_then(|above| started.get(above).cloned())
        {
            started.entry(entry.run.clone()).or_insert(above);
        }
        match started.get(&entry.run) {
            Some(StartedBy::Call(step, id)) => self.call(*step, id).descendants.push(entry.clone()),
            Some(StartedBy::Hook(at)) => self.of_hooks[*at].entries.push(entry.clone()),
            None => {}
        }
    }

    /// Finds how the sub-agents of hooks ended.
    fn find_ends(&mut self, recording: &Recording) {
        let runs: HashSet<_> = self.of_hooks.iter().map(|child| child.link.run.clone()).collect();
        if runs.is_empty() {
            return;
        }
        let (mut index, mut ends) = (SessionIndex::default(), HashMap::new());
        for entry in recording.past.iter().chain(&recording.entries) {
            index.apply(entry);
            if let EntryBody::RunEnded { .. } = &entry.body
                && runs.contains(&entry.run)
                && let Some(state) = index.state(&entry.run).map(|state| index.at_rest(state))
                && let Phase::Ended(exit) = &state.phase
            {
                ends.insert(entry.run.clone(), Finished::of(&state, exit));
            }
        }
        for child in &mut self.of_hooks {
            child.finished = ends.remove(&child.link.run);
        }
    }

    /// Returns the model's answer in this step.
    fn model(&mut self, step: u32) -> Result<ModelResponse> {
        self.step = step;
        let answer = self.models.get_mut(&step).and_then(VecDeque::pop_front);
        answer.map(|answer| (*answer).clone()).ok_or_else(|| self.missing("the model was not asked"))
    }

    /// Returns the result of a call of this step.
    fn tool(&mut self, call_id: &Arc<str>) -> Result<RecordedCall> {
        let call = self.tools.remove(&(self.step, call_id.clone()));
        let call = call.filter(|call| call.output.is_some() || call.failure.is_some());
        call.ok_or_else(|| self.missing(&format!("call '{call_id}' has no result")))
    }

    pub(crate) fn is_decided(&self, run: &Arc<str>, name: &str) -> bool {
        *run == self.run && self.at(name).is_some()
    }

    /// The next decision under `name`, or under one that an earlier release gave it.
    fn at(&self, name: &str) -> Option<usize> {
        let at = |name: &str| self.decisions.iter().position(|(made, ..)| made == name);
        at(name).or_else(|| {
            let (call, rest) = name.split_once('/')?;
            let (_, of_hook) = rest.split_once('/').unzip();
            let of_call = of_hook.map(|rest| format!("{call}/{rest}"));
            of_call.and_then(|name| at(&name)).or_else(|| at(of_hook?)).or_else(|| at(rest))
        })
    }

    /// Returns the decision with this name, with the usage of the side model calls made for it.
    fn decision(&mut self, name: &str) -> Result<(Value, Usage)> {
        let made = self.at(name).map(|at| self.decisions.remove(at));
        made.map(|(_, value, used)| (value, used))
            .ok_or_else(|| self.missing(&format!("nothing was decided under '{name}'")))
    }

    /// Returns the run of the sub-agent that a hook started. An earlier release recorded the key in
    /// the place of the hook.
    fn child(&mut self, owner: &str, key: &str, number: u32) -> Result<Arc<str>> {
        let is_it = |child: &&mut RecordedChild| {
            let ChildRun { call_id, key: name, n, .. } = &child.link;
            let is_owner = *child.link.owner() == *owner && *n == number;
            !child.is_taken && name == key && (is_owner || **call_id == *key)
        };
        match self.of_hooks.iter_mut().find(is_it) {
            Some(child) => {
                child.is_taken = true;
                Ok(child.link.run.clone())
            }
            None => Err(self.missing(&format!("sub-agent '{key}' was not started by '{owner}'"))),
        }
    }

    /// Returns how the run of a sub-agent ended.
    fn run(&mut self, run: &str) -> Result<KeptRun> {
        let child = self.of_hooks.iter_mut().find(|child| *child.link.run == *run);
        let kept = child.and_then(|child| {
            let finished = child.finished.take()?;
            Some(KeptRun { finished, entries: std::mem::take(&mut child.entries), globals: BTreeMap::new() })
        });
        kept.ok_or_else(|| self.missing(&format!("the sub-agent's run '{run}' did not finish")))
    }

    /// Returns the messages that arrived after this step.
    pub(crate) fn messages(&mut self, step: u32) -> Vec<Message> {
        self.messages.remove(&step).unwrap_or_default()
    }

    fn missing(&self, what: &str) -> Error {
        if self.open {
            return Error::new(ErrorKind::Interrupted, "the recording ends here");
        }
        let message = format!("the replay took another path at step {}: in the recording {what}", self.step);
        Error::new(ErrorKind::NonDeterminism, message).with_context("step", self.step.to_string())
    }
}
