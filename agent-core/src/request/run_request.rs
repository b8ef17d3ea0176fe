//! [`RunRequest`]: the input of a run.

use std::{collections::BTreeMap, fmt, sync::Arc};

use serde_json::Value;

use super::SubRunHandle;
use crate::{
    amounts::Caps,
    budget::Budget,
    cx::RunCx,
    history::History,
    journal::{Durable, Steps},
    llm::ModelParams,
    message::Message,
    state::{Answer, Checkpoint, WhenBusy, WhenWaiting},
    storage::Resources,
    tool::Tool,
};

/// Input of a run: the request type of [`AgentService`](crate::middleware::AgentService).
///
/// ```
/// use agent_core::RunRequest;
///
/// let request = RunRequest::user("Summarise the changelog.").session("alice").streaming(true);
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RunRequest {
    /// New messages, or a checkpoint to resume.
    pub input: RunInput,
    /// Session whose history the run continues. Default: a new session.
    pub session: Option<Arc<str>>,
    /// Identifies the agent within the session. Default: the agent's name.
    pub agent_id: Option<Arc<str>>,
    /// Id of the run. Default: a generated id.
    pub run_id: Option<Arc<str>>,
    /// Parent run, if this is a child run.
    pub parent: Option<Parent>,
    /// Initial conversation of a child run, for example a copy of its caller's.
    pub history: Option<History>,
    /// True if the provider is asked to stream. Default: the agent's setting.
    pub stream: Option<bool>,
    /// Model parameters of this run, which override those of the agent field by field.
    pub params: Option<Box<ModelParams>>,
    /// The tools offered.
    pub tools: ToolChoices,
    /// Values of the run's state; the keys must be declared.
    pub state: BTreeMap<String, Value>,
    /// Run inputs by name: variables of the prompts, and values of the run's state.
    pub inputs: BTreeMap<String, Value>,
    /// Template of the system prompt. Default: the agent's.
    pub system_prompt: Option<String>,
    /// Template of the user message that follows the new messages. Default: the agent's.
    pub user_prompt: Option<String>,
    /// Live handles of this run; they override the agent's.
    pub resources: Resources,
    /// Policy if another run of the agent holds the session. Default: the agent's setting.
    pub when_busy: Option<WhenBusy>,
    /// Policy if the session's newest run waits for answers. Default: the agent's setting.
    pub when_waiting: Option<WhenWaiting>,
    /// User on whose behalf the agent runs, for budgets with a window per user and for readers of
    /// [`RunIds::user`](crate::RunIds). A resumed run keeps its user, and a child run has its
    /// parent's.
    pub user: Option<Arc<str>>,
    /// Name of the worker that drives the run, for readers of the journal
    /// ([`RunIds::worker`](crate::RunIds)). A child run has its parent's.
    pub worker: Option<Arc<str>>,
    /// W3C trace context of the caller: the parent of the run's span. A resumed run keeps the
    /// context with which it began.
    pub traceparent: Option<Arc<str>>,
    /// Caps on the usage of this run and all its descendants, in addition to other limits.
    pub caps: Option<Caps>,
    /// Budget that this run and all its descendants use in addition to the agent's budget.
    pub budget: Option<Budget>,
    /// Resumes the checkpoint even if the agent's model, tools or middleware have changed. Default:
    /// false.
    pub allow_changed_agent: bool,
    /// Rewinds to the checkpoint even if the run has continued since. Default: false.
    pub allow_rewind: bool,
    /// Engine steps of the run and its descendants, if an engine persists them.
    pub steps: Option<Steps>,
}

/// New messages, or a checkpoint to resume.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum RunInput {
    /// New messages.
    Messages(Vec<Message>),
    /// Resume a checkpoint, with answers to its questions.
    Resume {
        /// State of the run.
        checkpoint: Box<Checkpoint>,
        /// The answers, by question id.
        answers: BTreeMap<String, Answer>,
    },
    /// Resume the newest run of the session from the journal, after a crash or any other early end.
    Recover {
        /// Answers to its questions, by question id.
        answers: BTreeMap<String, Answer>,
    },
    /// Replay a run of the session from the journal, by default the newest.
    Replay,
}

/// Parent of a run.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Parent {
    /// The parent run.
    pub cx: RunCx,
    /// Id of the call that started the child run.
    pub call_id: Option<Arc<str>>,
    /// Handle that controls the child run, if there is one.
    pub handle: Option<SubRunHandle>,
}

impl Parent {
    /// Creates the parent `cx` with its call `call_id`. Changes made by the child run are persisted
    /// with its own steps, not with that call.
    pub(crate) fn new(cx: &RunCx, call_id: Option<Arc<str>>) -> Self {
        Self { cx: cx.clone().of_run(), call_id, handle: None }
    }

    /// Sets the handle that controls the child run.
    pub(crate) fn steered_by(mut self, handle: SubRunHandle) -> Self {
        self.handle = Some(handle);
        self
    }
}

/// The tools that a run offers.
#[derive(Clone, Default)]
#[non_exhaustive]
pub enum ToolChoices {
    /// All tools of the agent.
    #[default]
    All,
    /// The agent's tools with these names; an unknown name is an error.
    Named(Vec<String>),
    /// These tools instead of the agent's.
    Replace(Vec<Arc<dyn Tool>>),
    /// These tools in addition to the agent's.
    Also(Vec<Arc<dyn Tool>>),
}

impl RunRequest {
    /// Creates a request with new messages.
    pub fn new(messages: Vec<Message>) -> Self {
        Self::from_input(RunInput::Messages(messages))
    }

    /// Creates a request with one user message.
    pub fn user(text: impl Into<String>) -> Self {
        Self::new(vec![Message::user(text)])
    }

    /// Creates a request that resumes a checkpoint with answers to its questions, by question id.
    ///
    /// Each answer applies to the question with its id in this checkpoint. Use
    /// [`resume_with`](Self::resume_with) for answers that were transported, or that name their
    /// actor.
    pub fn resume(checkpoint: Checkpoint, answers: impl IntoIterator<Item = (String, Value)>) -> Self {
        Self::resume_with(checkpoint, plain(answers))
    }

    /// Like [`resume`](Self::resume), with answers that are [bound to their
    /// questions](crate::Question::answer).
    ///
    /// The answers are accepted or [refused](crate::run::Refusal) as a whole: if one is refused,
    /// the run fails with [`ErrorKind::AnswerRefused`](crate::ErrorKind::AnswerRefused) before
    /// anything happens, and still waits.
    pub fn resume_with(checkpoint: Checkpoint, answers: impl IntoIterator<Item = (String, Answer)>) -> Self {
        let answers = answers.into_iter().collect();
        Self::from_input(RunInput::Resume { checkpoint: Box::new(checkpoint), answers })
    }

    /// Creates a request that resumes the newest run of a session from the journal: after its
    /// process died, or after it was suspended, failed or cancelled. The agent needs the store, and
    /// must be built like the one that began the run.
    ///
    /// Answers to its questions are given by question id; see
    /// [`SessionIndex::unfinished`](crate::journal::SessionIndex::unfinished) for reading the
    /// questions first.
    pub fn recover(session: impl Into<Arc<str>>, answers: impl IntoIterator<Item = (String, Value)>) -> Self {
        Self::recover_with(session, plain(answers))
    }

    /// Like [`recover`](Self::recover), with answers that are [bound to their
    /// questions](crate::Question::answer).
    pub fn recover_with(session: impl Into<Arc<str>>, answers: impl IntoIterator<Item = (String, Answer)>) -> Self {
        Self::from_input(RunInput::Recover { answers: answers.into_iter().collect() }).session(session)
    }

    /// Creates a request that replays the newest run of a session: hooks run as before, and the
    /// results of models and tools are taken from the journal. Nothing is called and nothing is
    /// written; the events of descendants are those recorded. The events are those of the recorded
    /// run, except for transient events such as chunks. To replay another run than the newest, set
    /// its [`run_id`](Self::run_id).
    ///
    /// If the run diverges from the recording, it fails with
    /// [`NonDeterminism`](crate::ErrorKind::NonDeterminism); the error describes the difference and
    /// the step (context `step`). A recorded run that is not finished is replayed to its last
    /// entry, and ends interrupted or paused there. The agent needs the store.
    pub fn replay(session: impl Into<Arc<str>>) -> Self {
        Self::from_input(RunInput::Replay).session(session)
    }

    /// Sets the run's id, which is generated otherwise. In a persisted session it is the
    /// idempotency key of the request: if the session already has a run with this id, nothing runs,
    /// and the error is [`ErrorKind::Stale`](crate::ErrorKind::Stale). For a [replay](Self::replay)
    /// it selects the run: an older one, or one of a sub-agent, which that agent must replay.
    #[must_use]
    pub fn run_id(mut self, run_id: impl Into<Arc<str>>) -> Self {
        self.run_id = Some(run_id.into());
        self
    }

    /// Executes every step of the run and its descendants through this engine, which persists the
    /// results: another process that drives the run again from its beginning does not repeat them.
    /// The request needs the same [`run_id`](Self::run_id) each time, and the agent must have no
    /// store: the engine persists the run's data.
    ///
    /// Code between steps runs again, and must come to the same result: a hook that reads the clock
    /// or a random number must make it a [decision](RunCx::decide). Deadlines restart in each
    /// attempt, and sub-agents do not run in the background.
    #[must_use]
    pub fn durable(mut self, engine: Arc<dyn Durable>) -> Self {
        self.steps = Some(Steps::new(engine));
        self
    }

    fn from_input(input: RunInput) -> Self {
        Self {
            input,
            session: None,
            agent_id: None,
            run_id: None,
            parent: None,
            history: None,
            stream: None,
            params: None,
            tools: ToolChoices::All,
            state: BTreeMap::new(),
            inputs: BTreeMap::new(),
            system_prompt: None,
            user_prompt: None,
            resources: Resources::default(),
            when_busy: None,
            when_waiting: None,
            user: None,
            worker: None,
            traceparent: None,
            caps: None,
            budget: None,
            allow_changed_agent: false,
            allow_rewind: false,
            steps: None,
        }
    }

    /// Sets the session whose history the run continues. It is created on first use.
    #[must_use]
    pub fn session(mut self, session: impl Into<Arc<str>>) -> Self {
        self.session = Some(session.into());
        self
    }

    /// Sets whether the provider is asked to stream.
    #[must_use]
    pub fn streaming(mut self, stream: bool) -> Self {
        self.stream = Some(stream);
        self
    }

    /// Sets the model parameters of this run, which [override](ModelParams::with) the agent's field
    /// by field. A request that resumes a run must set them again.
    ///
    /// ```
    /// use agent_core::{ModelParams, RunRequest};
    ///
    /// let request = RunRequest::user("A poem, please.").params(ModelParams::default().temperature(1.0));
    /// ```
    #[must_use]
    pub fn params(mut self, params: ModelParams) -> Self {
        self.params = Some(Box::new(params));
        self
    }

    /// Offers only these of the agent's tools.
    #[must_use]
    pub fn tools_named(mut self, names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.tools = ToolChoices::Named(names.into_iter().map(Into::into).collect());
        self
    }

    /// Offers these tools instead of the agent's.
    #[must_use]
    pub fn tools(mut self, tools: Vec<Arc<dyn Tool>>) -> Self {
        self.tools = ToolChoices::Replace(tools);
        self
    }

    /// Offers these tools in addition to the agent's. A duplicate name fails the run. A request
    /// that resumes a run must set them again.
    #[must_use]
    pub fn more_tools(mut self, tools: Vec<Arc<dyn Tool>>) -> Self {
        self.tools = ToolChoices::Also(tools);
        self
    }

    /// Sets a value of the run's state.
    #[must_use]
    pub fn state(mut self, key: impl Into<String>, value: impl Into<Value>) -> Self {
        self.state.insert(key.into(), value.into());
        self
    }

    /// Sets a run input: a variable of the prompts or, if the agent's state has such a key, a value
    /// of the state. An unknown name is an error, and so is a value whose type differs from the
    /// declared one.
    ///
    /// ```
    /// use agent_core::RunRequest;
    ///
    /// let request = RunRequest::new(Vec::new()).input("city", "Bern").input("days", 3);
    /// ```
    #[must_use]
    pub fn input(mut self, name: impl Into<String>, value: impl Into<Value>) -> Self {
        self.inputs.insert(name.into(), value.into());
        self
    }

    /// Sets the template of the system prompt for this run, replacing the agent's.
    #[must_use]
    pub fn system_prompt(mut self, template: impl Into<String>) -> Self {
        self.system_prompt = Some(template.into());
        self
    }

    /// Sets the template of the user message that follows the new messages, replacing the agent's.
    #[must_use]
    pub fn user_prompt(mut self, template: impl Into<String>) -> Self {
        self.user_prompt = Some(template.into());
        self
    }

    /// Adds a live handle for this run.
    #[must_use]
    pub fn resource<T: std::any::Any + Send + Sync>(mut self, handle: T) -> Self {
        self.resources = self.resources.with(handle);
        self
    }

    /// Sets the policy for a session that another run of the agent holds.
    #[must_use]
    pub fn when_busy(mut self, policy: WhenBusy) -> Self {
        self.when_busy = Some(policy);
        self
    }

    /// Sets the policy for a session whose newest run waits for answers.
    #[must_use]
    pub fn when_waiting(mut self, policy: WhenWaiting) -> Self {
        self.when_waiting = Some(policy);
        self
    }

    /// Sets the user on whose behalf the agent runs: a budget with a window per user counts the run
    /// there, and hooks and tools find the user in the run's [ids](crate::RunIds).
    #[must_use]
    pub fn on_behalf_of(mut self, user: impl Into<Arc<str>>) -> Self {
        self.user = Some(user.into());
        self
    }

    /// Sets the name of the worker that drives the run, for readers of its journal.
    #[must_use]
    pub fn driven_by(mut self, worker: impl Into<Arc<str>>) -> Self {
        self.worker = Some(worker.into());
        self
    }

    /// Sets the trace context of the run: the value of a `traceparent` header (W3C Trace Context).
    ///
    /// ```
    /// use agent_core::RunRequest;
    ///
    /// let request = RunRequest::user("Hello").traceparent("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01");
    /// # drop(request);
    /// ```
    #[must_use]
    pub fn traceparent(mut self, traceparent: impl Into<Arc<str>>) -> Self {
        self.traceparent = Some(traceparent.into());
        self
    }

    /// Sets the caps on this run and all its descendants. They can only tighten the agent's budget.
    #[must_use]
    pub fn caps(mut self, caps: Caps) -> Self {
        self.caps = Some(caps);
        self
    }

    /// Sets a budget that this run and all its descendants use in addition to the agent's, for
    /// example the caller's. Its windows are ignored. It is not persisted: a request that resumes
    /// the run must set it again.
    #[must_use]
    pub fn budget(mut self, budget: Budget) -> Self {
        self.budget = Some(budget);
        self
    }

    /// Resumes the checkpoint even if the agent has changed since.
    #[must_use]
    pub fn allow_changed_agent(mut self) -> Self {
        self.allow_changed_agent = true;
        self
    }

    /// Rewinds to the checkpoint even if the session's journal shows that the run continued since:
    /// later entries are undone.
    #[must_use]
    pub fn allow_rewind(mut self) -> Self {
        self.allow_rewind = true;
        self
    }

    /// Makes the run a child of `parent`.
    #[must_use]
    pub fn child_of(mut self, parent: Parent) -> Self {
        self.parent = Some(parent);
        self
    }
}

fn plain(answers: impl IntoIterator<Item = (String, Value)>) -> impl Iterator<Item = (String, Answer)> {
    answers.into_iter().map(|(id, value)| (id, value.into()))
}

impl fmt::Debug for ToolChoices {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All => f.write_str("All"),
            Self::Named(names) => f.debug_tuple("Named").field(names).finish(),
            Self::Replace(tools) => f.debug_list().entries(tools.iter().map(|t| t.spec().name)).finish(),
            Self::Also(tools) => {
                let names = tools.iter().map(|t| t.spec().name).collect::<Vec<_>>();
                f.debug_tuple("Also").field(&names).finish()
            }
        }
    }
}
