//! The executor's interface to a run.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
};

use tokio_util::sync::CancellationToken;

use crate::cx::{EngineCx, EngineKey, Inbox, Inner, Pause, PendingRequests, RunCx, Scope, Tasks, is_at};
use crate::request::SubAgents;
use crate::state::{Answer, BackgroundRun, Question, RunIds, id_within};
use crate::{
    budget::Budget,
    deadlines::RunDeadline,
    error::Result,
    event::Emitter,
    history::History,
    journal::EntryBody,
    log::RunLog,
    message::{AssistantMessage, Message, ToolMessage},
    middleware::{Family, Middlewares},
    storage::{GlobalStorage, Resources, State},
};

/// The components of a run.
#[non_exhaustive]
pub struct RunParts {
    /// Ids of the run.
    pub ids: Arc<RunIds>,
    /// Number of steps taken so far.
    pub step: u32,
    /// State of the run.
    pub state: State,
    /// Storage that the hierarchy shares.
    pub globals: GlobalStorage,
    /// Live handles.
    pub resources: Resources,
    /// Budgets of the run.
    pub budget: Budget,
    /// Deadline of the run.
    pub deadline: Option<RunDeadline>,
    /// True if a model call of an ancestor, for which a budget has reserved, waits for this run. The
    /// run's own model calls then do not wait for allowance.
    pub is_reserved: bool,
    /// Agents that the run may call.
    pub sub_agents: SubAgents,
    /// Middlewares inherited from ancestors.
    pub inherited: Middlewares,
    /// Middlewares for the child runs: the inherited ones, and more.
    pub for_descendants: Middlewares,
    /// Token that cancels the run.
    pub cancel: CancellationToken,
    /// Pause request shared by the tree.
    pub pause: Pause,
    /// Messages that steer the run.
    pub inbox: Inbox,
    /// Answers to questions, by question id.
    pub answers: BTreeMap<String, Answer>,
    /// Questions that an attempt before a restart asked: repeated questions reuse them.
    pub questions: Vec<Question>,
    /// Background sub-agents of an earlier attempt.
    pub background: Vec<BackgroundRun>,
    /// Destination of the run's events.
    pub emitter: Emitter,
    /// The run's journal interface.
    pub log: RunLog,
    /// Key that gives the executor's services access to the run.
    pub key: Option<EngineKey>,
}

impl RunParts {
    /// Creates the components with defaults for everything else.
    pub fn new(ids: Arc<RunIds>, emitter: Emitter, log: RunLog) -> Self {
        Self {
            ids,
            step: 0,
            state: State::default(),
            globals: GlobalStorage::default(),
            resources: Resources::default(),
            budget: Budget::default(),
            deadline: None,
            is_reserved: false,
            sub_agents: SubAgents::default(),
            inherited: Arc::new([]),
            for_descendants: Arc::new([]),
            cancel: CancellationToken::new(),
            pause: Pause::default(),
            inbox: Inbox::default(),
            answers: BTreeMap::new(),
            questions: Vec::new(),
            background: Vec::new(),
            emitter,
            log,
            key: None,
        }
    }
}

/// An executor's exclusive handle on a run: only it appends to the history, counts steps and
/// consumes pending requests.
pub struct RunDriver(RunCx);

impl RunDriver {
    /// Creates a run.
    pub fn new(parts: RunParts) -> Self {
        let run = Arc::new(Inner {
            ids: parts.ids,
            step: AtomicU32::new(parts.step),
            entered: AtomicBool::new(false),
            state: parts.state,
            globals: parts.globals,
            resources: parts.resources,
            budget: parts.budget,
            deadline: parts.deadline,
            is_reserved: parts.is_reserved,
            reserved: AtomicU32::new(0),
            warned_of_usage: AtomicBool::new(false),
            family: Box::new(Family {
                sub_agents: parts.sub_agents,
                inherited: parts.inherited,
                for_descendants: parts.for_descendants,
            }),
            cancel: parts.cancel,
            pause: parts.pause,
            inbox: parts.inbox,
            requests: OnceLock::new(),
            live: Mutex::default(),
            tasks: Tasks::default(),
            emitter: parts.emitter,
            log: parts.log,
            key: parts.key,
        });
        let cx = RunCx(run, Scope::Run, false);
        if !(parts.answers.is_empty() && parts.background.is_empty() && parts.questions.is_empty()) {
            let mut pending = cx.pending();
            (pending.answers, pending.background) = (parts.answers, parts.background);
            pending.open = parts.questions.into_iter().map(|question| (question.id.clone(), question)).collect();
        }
        Self(cx)
    }

    /// The run as hooks see it.
    pub fn cx(&self) -> &RunCx {
        &self.0
    }

    /// The run as its executor sees it.
    pub fn engine(&self) -> EngineCx<'_> {
        EngineCx(&self.0)
    }

    /// Marks the `before_agent` hooks as completed: their decisions hold for the whole run.
    pub fn enter(&self) {
        self.0.0.entered.store(true, Ordering::Release);
        self.engine().log().end_beginning();
    }

    /// Begins the next step; returns its number.
    pub fn next_step(&self) -> u32 {
        self.0.0.step.fetch_add(1, Ordering::AcqRel) + 1
    }

    /// Reverts a step that did not reach the model call.
    pub fn undo_step(&self) {
        self.0.0.step.fetch_sub(1, Ordering::AcqRel);
    }

    /// Appends a message that neither calls a tool nor answers a call, and records it.
    ///
    /// # Errors
    /// Those of [`History::push`].
    pub fn push(&self, message: Message) -> Result<()> {
        self.engine().log().record_message(message)
    }

    /// Appends a message with tool calls and the result of each, in call order, and records them.
    ///
    /// # Errors
    /// Those of [`History::push_turn`].
    pub fn push_turn(&self, message: AssistantMessage, results: &[ToolMessage]) -> Result<()> {
        History::check_turn(&message, results.iter().map(ToolMessage::call_id))?;
        EntryBody::of_turn(message, results).into_iter().for_each(|body| self.engine().log().record(body));
        Ok(())
    }

    /// Takes the unanswered questions.
    pub fn take_questions(&self) -> Vec<Question> {
        self.0.pending_if_any().map(|mut pending| std::mem::take(&mut pending.asked)).unwrap_or_default()
    }

    /// True if there is an unanswered question.
    pub fn has_questions(&self) -> bool {
        self.0.pending_if_any().is_some_and(|pending| !pending.asked.is_empty())
    }

    /// True if there is an unanswered question with an id of the form `id/..`.
    pub fn has_question_of(&self, id: &str) -> bool {
        let asks =
            |pending: MutexGuard<'_, PendingRequests>| pending.asked.iter().any(|q| id_within(&q.id, id).is_some());
        self.0.pending_if_any().is_some_and(asks)
    }

    /// True if sub-agents of the call `id` wait or were paused, which are forgotten with this.
    pub fn take_waiting(&self, id: &str) -> bool {
        let Some(mut pending) = self.0.pending_if_any() else { return false };
        let before = pending.waiting.len();
        pending.waiting.retain(|place| !is_at(place, id));
        pending.waiting.len() < before
    }

    /// True if a sub-agent waits or was paused of which no call told.
    pub fn has_waiting(&self) -> bool {
        self.0.pending_if_any().is_some_and(|pending| !pending.waiting.is_empty())
    }

    /// Removes the answers to questions of the completed call or step `id`: a later call may have
    /// the same id.
    pub fn forget_answers_of(&self, id: impl fmt::Display) {
        if let Some(mut pending) =
            self.0.pending_if_any().filter(|pending| !pending.asks.is_empty() || !pending.answers.is_empty())
        {
            let id = id.to_string();
            pending.answers.retain(|question, _| id_within(question, &id).is_none());
            pending.asks.retain(|question, _| id_within(question, &id).is_none());
        }
    }
}

impl fmt::Debug for RunDriver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RunDriver").field(&self.0).finish()
    }
}

impl fmt::Debug for RunParts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunParts").field("ids", &self.ids).finish_non_exhaustive()
    }
}
