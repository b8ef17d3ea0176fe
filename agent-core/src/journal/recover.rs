//! From a session's entries to where its newest run stands: what a crash left behind.

use std::{
    collections::{BTreeMap, HashMap, HashSet, VecDeque},
    sync::Arc,
};

use serde_json::Value;

use super::{Entry, EntryBody, Fold, Journal, RunStatus, fold::each_entry};
use crate::{
    Amounts, Answer, AssistantMessage, BackgroundRun, Begun, CallState, Checkpoint, Exit, ExitReason, History, Message,
    ModelResponse, PendingTurn, Phase, Question, Result, RunIds, ToolOutput, Usage,
};

/// Where the newest run of an agent stands in its session, unless it is finished: a checkpoint, whether the run was
/// suspended, failed, or died with its process.
///
/// Only entries that are durable count. A tool that had begun and left no result is in [`Checkpoint::begun`]: what becomes
/// of it is decided by its [`Effect`](crate::Effect) when the run goes on. Read it while you hold the session's writer if
/// you mean to go on: another process may be at it.
///
/// # Errors
/// Those of [`Journal::read`].
pub async fn recover(journal: &dyn Journal, session: &str, agent_id: &str) -> Result<Option<Checkpoint>> {
    let mut tree = Tree::new(agent_id);
    each_entry(journal, session, |entry| tree.apply(entry)).await?;
    let Some(root) = tree.root.clone().filter(|root| tree.runs[root].is_open()) else { return Ok(None) };

    let mut folds: HashMap<Arc<str>, Fold> = HashMap::new();
    for run in tree.runs.values().filter(|run| run.is_open() || run.ids.depth > 0) {
        folds.entry(run.ids.agent_id.clone()).or_insert_with(|| Fold::new(run.ids.agent_id.clone()));
    }
    each_entry(journal, session, |entry| folds.values_mut().for_each(|fold| fold.apply(entry))).await?;
    let views = folds.into_iter().map(|(agent_id, fold)| (agent_id, fold.finish_open())).collect::<HashMap<_, _>>();
    let histories = views.iter().map(|(agent_id, view)| (agent_id.clone(), view.history.clone())).collect();
    let mut checkpoint = tree.checkpoint(&root, &histories);
    checkpoint.globals = views.get(&checkpoint.ids.agent_id).map(|view| view.globals.clone());
    Ok(Some(checkpoint))
}

/// The newest run of one agent, and all runs below it.
struct Tree {
    agent_id: Arc<str>,
    root: Option<Arc<str>>,
    /// All runs of the agent up to the newest.
    roots: HashSet<Arc<str>>,
    runs: HashMap<Arc<str>, RunFold>,
}

/// What the entries say of one run.
struct RunFold {
    ids: RunIds,
    fingerprint: String,
    /// The newest attempt; the first has the run's own id here.
    attempt: Arc<str>,
    step: u32,
    /// What the model answered in the step under way, until one is accepted.
    answered: Vec<Arc<ModelResponse>>,
    turn: Option<PendingTurn>,
    begun: BTreeMap<String, Begun>,
    finished: BTreeMap<String, ToolOutput>,
    /// The calls of the open turn that were begun, and their tools.
    counted: BTreeMap<Arc<str>, Arc<str>>,
    exit: Option<Exit>,
    /// Messages that steer the run and did not come to their turn yet.
    steering: VecDeque<Message>,
    beginning: Vec<(String, Value)>,
    decisions: Vec<(String, Value)>,
    state: BTreeMap<String, Value>,
    questions: Vec<Question>,
    answers: BTreeMap<String, Answer>,
    usage: Usage,
    /// What its budget booked.
    spent: Amounts,
    /// What it set aside for model calls under way, by the attempt's number for them: used, if that is never settled.
    reserved: BTreeMap<u32, Amounts>,
    clock: Clock,
    tool_calls: BTreeMap<String, u32>,
    /// The runs below.
    children: Vec<Link>,
    /// How many of them belong to earlier turns: a call of the open one may have the id of a call of an earlier one.
    earlier: usize,
    /// Those of them that ran in the background, and of whose end the run was told.
    reported: HashSet<Arc<str>>,
    status: Option<RunStatus>,
    undone: bool,
}

/// A run below.
struct Link {
    /// The call that started it.
    call_id: Arc<str>,
    key: String,
    run: Arc<str>,
    background: bool,
}

impl Tree {
    fn new(agent_id: &str) -> Self {
        Self { agent_id: agent_id.into(), root: None, roots: HashSet::new(), runs: HashMap::new() }
    }

    fn apply(&mut self, entry: &Entry) {
        match &entry.body {
            EntryBody::RunStarted { ids, fingerprint } => {
                let is_root = ids.parent_run_id.is_none() && ids.agent_id == self.agent_id;
                if is_root {
                    self.runs.clear();
                    self.root = Some(ids.run_id.clone());
                    self.roots.insert(ids.run_id.clone());
                }
                if is_root || self.root.as_ref() == Some(&ids.root_run_id) {
                    let mut run = RunFold::new(ids, fingerprint);
                    run.clock.tick(entry);
                    self.runs.insert(ids.run_id.clone(), run);
                }
            }
            EntryBody::Undone { before_run } => {
                // Undoing an earlier run undoes all that came after it.
                let root = self.root.as_ref().filter(|_| self.roots.contains(before_run));
                if let Some(run) = self.runs.get_mut(root.unwrap_or(before_run)) {
                    run.undone = true;
                }
            }
            body => {
                if let Some(run) = self.runs.get_mut(&entry.run) {
                    run.clock.tick(entry);
                    run.apply(body);
                }
            }
        }
    }

    fn tree_usage(&self, run: &RunFold) -> Usage {
        let mut all = run.usage;
        for child in run.children.iter().filter_map(|link| self.runs.get(&link.run)) {
            all += self.tree_usage(child);
        }
        all
    }

    fn tree_spent(&self, run: &RunFold) -> Amounts {
        let below = run.children.iter().filter_map(|link| self.runs.get(&link.run));
        let spent = run.reserved.values().fold(run.spent, |all, reserved| all.plus(*reserved));
        below.fold(spent, |all, child| all.plus(self.tree_spent(child)))
    }

    fn checkpoint(&self, run: &Arc<str>, histories: &HashMap<Arc<str>, History>) -> Checkpoint {
        let run = &self.runs[run];
        let mut c = Checkpoint::new(run.ids.clone(), run.fingerprint.clone());
        c.attempt = Some(run.attempt.clone());
        c.step = run.step;
        c.history = histories.get(&run.ids.agent_id).cloned().unwrap_or_default();
        c.state = run.state.clone();
        c.answers = run.answers.clone();
        c.steering = run.steering.iter().cloned().collect();
        c.decisions = run.beginning.iter().chain(&run.decisions).cloned().collect();
        c.usage = run.usage;
        c.tree_usage = self.tree_usage(run);
        c.tool_calls = run.tool_calls.clone();
        c.spent = self.tree_spent(run);
        c.elapsed_ms = run.clock.elapsed;
        c.sub_agents = u32::try_from(run.children.len()).unwrap_or(u32::MAX);
        c.questions = run.questions.clone();
        c.answered.clone_from(&run.answered);
        c.phase = match (&run.status, &run.turn, &run.exit) {
            (Some(RunStatus::Finished(reason)), ..) => {
                let answer = run.exit.as_ref().map(|exit| exit.answer.clone()).unwrap_or_default();
                Phase::Ended(Exit::new(reason.clone(), answer))
            }
            (_, Some(turn), _) => Phase::Tools(self.open_turn(run, turn, histories)),
            // At the step limit no hook is asked.
            (_, None, Some(exit)) if exit.reason == ExitReason::StepLimit => Phase::Ended(exit.clone()),
            (_, None, Some(exit)) => Phase::Exit(exit.clone()),
            (_, None, None) => Phase::BeforeModel,
        };
        (c.begun, c.finished) = (run.begun.clone(), run.finished.clone());
        c.background = self.background(run, histories);
        c
    }

    /// The sub-agents in the background of whose end the run was not told. A call that did not give its result goes on with its
    /// own itself.
    fn background(&self, run: &RunFold, histories: &HashMap<Arc<str>, History>) -> Vec<BackgroundRun> {
        let is_open = |at: usize, call_id: &Arc<str>| {
            let turn = run.turn.as_ref().filter(|_| at >= run.earlier);
            !run.finished.contains_key(&**call_id)
                && turn.is_some_and(|turn| turn.open_calls().any(|open| *open == **call_id))
        };
        let mut all = Vec::new();
        for (at, link) in run.children.iter().enumerate() {
            let began = self.runs.contains_key(&link.run);
            let again = || run.children[at + 1..].iter().any(|later| later.call_id == link.call_id);
            if link.background
                && !run.reported.contains(&link.run)
                && !is_open(at, &link.call_id)
                && (began || !again())
            {
                let checkpoint = began.then(|| Box::new(self.checkpoint(&link.run, histories)));
                all.push(BackgroundRun::new(&link.key, link.call_id.clone(), link.run.clone(), checkpoint));
            }
        }
        all
    }

    /// The turn, with where the sub-agents of its calls stand. A call with a sub-agent is not in doubt: that is gone on with.
    fn open_turn(&self, run: &RunFold, turn: &PendingTurn, histories: &HashMap<Arc<str>, History>) -> PendingTurn {
        let mut turn = turn.clone();
        for call in turn.calls.iter_mut().filter(|call| call.state == CallState::Todo) {
            let mut below = run.children[run.earlier..].iter().rev().filter(|link| link.call_id == call.call_id);
            let gave = run.finished.contains_key(&*call.call_id);
            if let Some(link) = below.find(|link| self.runs.contains_key(&link.run) && !(link.background && gave)) {
                let child = Some(Box::new(self.checkpoint(&link.run, histories)));
                call.state = CallState::Suspended { child };
            }
        }
        turn
    }
}

/// For how long a run was under way, by the times of its entries.
#[derive(Default)]
struct Clock {
    elapsed: u64,
    last: u64,
}

impl Clock {
    /// The time between the end of one attempt and the beginning of the next does not count.
    fn tick(&mut self, entry: &Entry) {
        let begins = matches!(entry.body, EntryBody::RunStarted { .. } | EntryBody::RunResumed { .. });
        if !begins {
            self.elapsed += entry.time.saturating_sub(self.last);
        }
        self.last = entry.time;
    }
}

impl RunFold {
    fn new(ids: &RunIds, fingerprint: &str) -> Self {
        Self {
            ids: ids.clone(),
            fingerprint: fingerprint.to_owned(),
            attempt: ids.run_id.clone(),
            step: 0,
            answered: Vec::new(),
            turn: None,
            begun: BTreeMap::new(),
            finished: BTreeMap::new(),
            counted: BTreeMap::new(),
            exit: None,
            steering: VecDeque::new(),
            beginning: Vec::new(),
            decisions: Vec::new(),
            state: BTreeMap::new(),
            questions: Vec::new(),
            answers: BTreeMap::new(),
            usage: Usage::default(),
            spent: Amounts::none(),
            reserved: BTreeMap::new(),
            clock: Clock::default(),
            tool_calls: BTreeMap::new(),
            children: Vec::new(),
            earlier: 0,
            reported: HashSet::new(),
            status: None,
            undone: false,
        }
    }

    /// True if it can go on.
    fn is_open(&self) -> bool {
        !self.undone && !matches!(self.status, Some(RunStatus::Finished(_)))
    }

    fn apply(&mut self, body: &EntryBody) {
        match body {
            EntryBody::RunResumed { attempt, .. } => {
                self.attempt = attempt.as_str().into();
                self.status = None;
                self.steering.clear(); // what it goes on with is written down again
                std::mem::take(&mut self.reserved).into_values().for_each(|lost| self.spend(lost));
            }
            EntryBody::Steered { message } => self.steering.push_back(message.clone()),
            EntryBody::MessageAppended { message } => {
                if self.steering.front() == Some(message) {
                    self.steering.pop_front();
                }
                // A run that was about to finish went on for it; at the step limit it only takes it along.
                self.exit = self.exit.take().filter(|exit| exit.reason == ExitReason::StepLimit);
            }
            EntryBody::BudgetReserved { call, amounts } => drop(self.reserved.insert(*call, *amounts)),
            EntryBody::BudgetSettled { call, amounts } => {
                self.reserved.remove(call);
                self.spend(*amounts);
            }
            EntryBody::SideModelFinished { usage } => self.usage += **usage,
            EntryBody::ModelFinished { response, .. } => {
                self.usage += response.usage;
                self.exit = None;
                self.answered.push(response.clone());
            }
            EntryBody::ModelAccepted { step, message, exit } => {
                self.step = *step;
                self.questions.clear();
                self.decisions.clear();
                self.exit = exit.as_deref().cloned();
                let finished = self.answered.drain(..).next_back().map(|response| response.message.clone());
                if let Some(message) = message.clone().or(finished).filter(AssistantMessage::has_calls) {
                    self.turn = Some(PendingTurn::new(message));
                }
            }
            EntryBody::ToolStarted { call_id, name, effect, attempt } => {
                self.begun.insert(call_id.to_string(), Begun::new(*effect, attempt.clone()));
                self.counted.insert(call_id.clone(), name.clone());
            }
            EntryBody::ToolSuspended { call_id } => drop(self.begun.remove(&**call_id)),
            EntryBody::ToolFinished { call_id, output } => {
                self.begun.remove(&**call_id);
                self.finished.insert(call_id.to_string(), output.clone());
            }
            EntryBody::ToolAnswered { call_id, output, .. } => self.answer(call_id, output.as_ref()),
            EntryBody::TurnEnded { exit, .. } => self.end_turn(exit.as_deref().cloned()),
            EntryBody::Decided { name, value, beginning } => {
                let decisions = if *beginning { &mut self.beginning } else { &mut self.decisions };
                decisions.push((name.clone(), value.clone()));
            }
            EntryBody::Asked { question } => {
                self.questions.retain(|asked| asked.id != question.id);
                self.answers.remove(&question.id); // an earlier one: it was asked again
                self.questions.push((**question).clone());
            }
            EntryBody::Answered { id, answer, by, digest } => {
                self.questions.retain(|asked| *asked.id != **id);
                self.answers.insert(id.to_string(), Answer::recorded(answer, digest, by.as_deref()));
            }
            EntryBody::StateChanged { state, .. } => self.state.extend(state.clone()),
            EntryBody::SubAgentLinked { call_id, key, run, background } => {
                let (call_id, key, run) = (call_id.clone(), key.clone(), run.clone());
                self.children.push(Link { call_id, key, run, background: *background });
            }
            EntryBody::SubAgentReported { run, message } => {
                self.reported.insert(run.clone());
                self.steering.extend(message.clone());
            }
            EntryBody::RunEnded { status, usage, answer, .. } => {
                self.usage = **usage;
                self.status = Some(status.clone());
                if let (RunStatus::Finished(reason), Some(answer)) = (status, answer) {
                    self.exit = Some(Exit::new(reason.clone(), &**answer));
                }
            }
            _ => {}
        }
    }

    fn spend(&mut self, amounts: Amounts) {
        self.spent = self.spent.plus(amounts);
    }

    fn answer(&mut self, call_id: &Arc<str>, output: Option<&ToolOutput>) {
        let below = format!("{call_id}/");
        self.questions.retain(|asked| !asked.id.starts_with(&below));
        self.begun.remove(&**call_id);
        let finished = self.finished.remove(&**call_id);
        if let Some(name) = self.counted.remove(call_id) {
            *self.tool_calls.entry(name.to_string()).or_default() += 1;
        }
        let calls = self.turn.iter_mut().flat_map(|turn| &mut turn.calls);
        if let (Some(call), Some(output)) =
            (calls.into_iter().find(|c| c.call_id == *call_id), output.cloned().or(finished))
        {
            call.state = CallState::Done(output);
        }
    }

    fn end_turn(&mut self, exit: Option<Exit>) {
        let calls = self.turn.take().map(|turn| turn.calls).unwrap_or_default();
        let step = Arc::from(format!("step-{}", self.step));
        for place in calls.into_iter().map(|call| call.call_id).chain([step]) {
            let below = format!("{place}/");
            self.answers.retain(|question, _| !question.starts_with(&below));
        }
        self.questions.clear();
        self.begun.clear();
        self.finished.clear();
        self.counted.clear();
        self.decisions.clear();
        self.earlier = self.children.len();
        self.exit = exit;
    }
}
