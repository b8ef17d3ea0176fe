//! What an executor may do with a run and a hook may not.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
};

use tokio_util::sync::CancellationToken;

use crate::cx::{EngineCx, EngineKey, Inbox, Inner, Pause, PendingRequests, RunCx, Tasks};
use crate::request::SubAgents;
use crate::state::{Answer, BackgroundRun, Checkpoint, Question, RunIds, id_within};
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

/// Everything a run is made of.
#[non_exhaustive]
pub struct RunParts {
    /// Who runs.
    pub ids: Arc<RunIds>,
    /// Steps taken so far.
    pub step: u32,
    /// The run's state.
    pub state: State,
    /// The hierarchy's storage.
    pub globals: GlobalStorage,
    /// Live handles.
    pub resources: Resources,
    /// What the run may use.
    pub budget: Budget,
    /// When it must be over.
    pub deadline: Option<RunDeadline>,
    /// Agents that may be called.
    pub sub_agents: SubAgents,
    /// Middlewares of agents above that this run has, too.
    pub inherited: Middlewares,
    /// Middlewares that the child runs have, too: what is inherited, and more.
    pub for_descendants: Middlewares,
    /// Cancels the run.
    pub cancel: CancellationToken,
    /// Pauses the tree.
    pub pause: Pause,
    /// Messages for the run.
    pub inbox: Inbox,
    /// Answers to questions, by question id.
    pub answers: BTreeMap<String, Answer>,
    /// Questions that an attempt before a restart asked: asked again, they are the same.
    pub questions: Vec<Question>,
    /// Sub-agents of an earlier attempt that ran in the background.
    pub background: Vec<BackgroundRun>,
    /// The way that events leave.
    pub emitter: Emitter,
    /// The run's side of the journal.
    pub log: RunLog,
    /// What opens the run, besides its driver.
    pub key: Option<EngineKey>,
}

impl RunParts {
    /// A run with nothing but these.
    pub fn new(ids: Arc<RunIds>, emitter: Emitter, log: RunLog) -> Self {
        Self {
            ids,
            step: 0,
            state: State::default(),
            globals: GlobalStorage::default(),
            resources: Resources::default(),
            budget: Budget::default(),
            deadline: None,
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

/// An executor's hold of a run: only it appends to the history, counts steps and takes what was asked of the run.
pub struct RunDriver(RunCx);

impl RunDriver {
    /// Makes a run.
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
            reserved: AtomicU32::new(0),
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
        let cx = RunCx(run, None);
        if !(parts.answers.is_empty() && parts.background.is_empty() && parts.questions.is_empty()) {
            let mut pending = cx.pending();
            (pending.answers, pending.background) = (parts.answers, parts.background);
            pending.open = parts.questions.into_iter().map(|question| (question.id.clone(), question)).collect();
        }
        Self(cx)
    }

    /// The run as its hooks see it.
    pub fn cx(&self) -> &RunCx {
        &self.0
    }

    /// The run as its executor sees it.
    pub fn engine(&self) -> EngineCx<'_> {
        EngineCx(&self.0)
    }

    /// Says that the `before_agent` hooks have run: what they decided holds for the whole run.
    pub fn enter(&self) {
        self.0.0.entered.store(true, Ordering::Release);
        self.engine().log().end_beginning();
    }

    /// Begins the next step; returns its number.
    pub fn next_step(&self) -> u32 {
        self.0.0.step.fetch_add(1, Ordering::AcqRel) + 1
    }

    /// Takes back a step that did not come to call the model.
    pub fn undo_step(&self) {
        self.0.0.step.fetch_sub(1, Ordering::AcqRel);
    }

    /// Appends a message that neither calls a tool nor answers a call, and records it.
    ///
    /// # Errors
    /// As [`History::push`].
    pub fn push(&self, message: Message) -> Result<()> {
        self.engine().log().record_message(message)
    }

    /// Appends a message with tool calls and the result of each, in call order, and records them.
    ///
    /// # Errors
    /// As [`History::push_turn`].
    pub fn push_turn(&self, message: AssistantMessage, results: &[ToolMessage]) -> Result<()> {
        History::check_turn(&message, results.iter().map(ToolMessage::call_id))?;
        EntryBody::of_turn(message, results).into_iter().for_each(|body| self.engine().log().record(body));
        Ok(())
    }

    /// Takes the questions that were asked and have no answer.
    pub fn take_questions(&self) -> Vec<Question> {
        self.0.pending_if_any().map(|mut pending| std::mem::take(&mut pending.asked)).unwrap_or_default()
    }

    /// True if a question was asked that has no answer.
    pub fn has_questions(&self) -> bool {
        self.0.pending_if_any().is_some_and(|pending| !pending.asked.is_empty())
    }

    /// True if a question was asked in the place `id/..` and has no answer.
    pub fn has_question_of(&self, id: &str) -> bool {
        let asks =
            |pending: MutexGuard<'_, PendingRequests>| pending.asked.iter().any(|q| id_within(&q.id, id).is_some());
        self.0.pending_if_any().is_some_and(asks)
    }

    /// Takes where the sub-agent of the call `id` stands, if it waits.
    pub fn take_child(&self, id: &str) -> Option<Box<Checkpoint>> {
        self.0.pending_if_any()?.children.remove(id)
    }

    /// Forgets the answers to questions of the call or step `id`, which is over: a later call may have the same id.
    pub fn forget_answers_of(&self, id: impl fmt::Display) {
        if let Some(mut pending) = self.0.pending_if_any().filter(|pending| !pending.answers.is_empty()) {
            let id = id.to_string();
            pending.answers.retain(|question, _| id_within(question, &id).is_none());
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
