//! What goes into a run.

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

/// What goes into a run: the request type of [`AgentService`](crate::middleware::AgentService).
///
/// ```
/// use agent_core::RunRequest;
///
/// let request = RunRequest::user("Summarise the changelog.").session("alice").streaming(true);
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RunRequest {
    /// New messages, or a checkpoint to go on from.
    pub input: RunInput,
    /// The session whose history the run continues; none is a session of its own.
    pub session: Option<Arc<str>>,
    /// Tells agents of one session apart; the agent's name if unset.
    pub agent_id: Option<Arc<str>>,
    /// The id that the run is to have; a new one if unset.
    pub run_id: Option<Arc<str>>,
    /// The run above, when an agent runs for another.
    pub parent: Option<Parent>,
    /// A conversation that a child run begins with a copy of: its caller's, say.
    pub history: Option<History>,
    /// Whether the provider is asked to stream; as the agent says if unset.
    pub stream: Option<bool>,
    /// How the model is to answer in this run: what it sets is in the place of what the agent sets.
    pub params: Option<Box<ModelParams>>,
    /// The tools on offer.
    pub tools: ToolChoices,
    /// Values of the run's state; the keys must be declared.
    pub state: BTreeMap<String, Value>,
    /// Run inputs by name: variables of the prompts, and values of the run's state.
    pub inputs: BTreeMap<String, Value>,
    /// The template of the system prompt; the agent's if unset.
    pub system_prompt: Option<String>,
    /// The template of the user message that comes after the new messages; the agent's if unset.
    pub user_prompt: Option<String>,
    /// Live handles of this run; they win over the agent's.
    pub resources: Resources,
    /// What to do if another run of the agent holds the session; as the agent says if unset.
    pub when_busy: Option<WhenBusy>,
    /// What to do if the session's newest run waits for answers; as the agent says if unset.
    pub when_waiting: Option<WhenWaiting>,
    /// On whose behalf the agent runs, for budgets that count for a user and for whoever reads [`RunIds::user`](crate::RunIds).
    /// A run that goes on has the user that it began with, and a child run its parent's.
    pub user: Option<Arc<str>>,
    /// The worker that drives the run, by its name, for whoever reads the journal ([`RunIds::worker`](crate::RunIds)). A child run has its parent's.
    pub worker: Option<Arc<str>>,
    /// The W3C trace context of whoever asks: the run's span lies below it. A run that goes on has the one that it began with.
    pub traceparent: Option<Arc<str>>,
    /// What this run may use with all its descendants, beside what others allow it.
    pub caps: Option<Caps>,
    /// What the run and all its descendants draw on beside the agent's budget.
    pub budget: Option<Budget>,
    /// Goes on from a checkpoint even if the agent's model, tools or middleware are others now. Default: false.
    pub despite_changes: bool,
    /// Goes back to a checkpoint even if the run went on elsewhere since. Default: false.
    pub despite_newer: bool,
    /// What makes the steps of the run and of its descendants, if an engine keeps them.
    pub steps: Option<Steps>,
}

/// New messages, or a checkpoint to go on from.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum RunInput {
    /// New messages.
    Messages(Vec<Message>),
    /// A checkpoint, with answers to its questions by question id.
    Resume {
        /// Where the run stood.
        checkpoint: Box<Checkpoint>,
        /// The answers.
        answers: BTreeMap<String, Answer>,
    },
    /// Where the newest run of the session stands, read from the journal: after a crash, or whatever else ended it early.
    Recover {
        /// Answers to its questions, by question id.
        answers: BTreeMap<String, Answer>,
    },
    /// The newest run of the session again, from the journal alone.
    Replay,
}

/// The run above.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Parent {
    /// The run.
    pub cx: RunCx,
    /// The call that started this one.
    pub call_id: Option<Arc<str>>,
    /// What steers this one, if anything does.
    pub handle: Option<SubRunHandle>,
}

impl Parent {
    /// The run `cx`, by its call `call_id`. What the child run changes is kept with its own steps, not with that call.
    pub(crate) fn new(cx: &RunCx, call_id: Option<Arc<str>>) -> Self {
        Self { cx: cx.clone().of_run(), call_id, handle: None }
    }

    /// Lets `handle` steer the child run.
    pub(crate) fn steered_by(mut self, handle: SubRunHandle) -> Self {
        self.handle = Some(handle);
        self
    }
}

/// Which tools a run offers.
#[derive(Clone, Default)]
#[non_exhaustive]
pub enum ToolChoices {
    /// All of the agent's.
    #[default]
    All,
    /// Those of the agent's with these names; another name is an error.
    Named(Vec<String>),
    /// These instead of the agent's.
    Replace(Vec<Arc<dyn Tool>>),
    /// These beside all of the agent's.
    Also(Vec<Arc<dyn Tool>>),
}

impl RunRequest {
    /// A run on new messages.
    pub fn new(messages: Vec<Message>) -> Self {
        Self::from_input(RunInput::Messages(messages))
    }

    /// A run on one user message.
    pub fn user(text: impl Into<String>) -> Self {
        Self::new(vec![Message::user(text)])
    }

    /// Goes on from a checkpoint with answers to its questions, by question id.
    ///
    /// Each answers the question that has its id in this checkpoint. Answers that travelled, and such as say who gave them,
    /// go into [`resume_with`](Self::resume_with).
    pub fn resume(checkpoint: Checkpoint, answers: impl IntoIterator<Item = (String, Value)>) -> Self {
        Self::resume_with(checkpoint, plain(answers))
    }

    /// As [`resume`](Self::resume), with answers that are [bound to their questions](crate::Question::answer).
    ///
    /// Either all of them are taken or, if one is [refused](crate::run::Refusal), none: then the run fails with
    /// [`ErrorKind::AnswerRefused`](crate::ErrorKind::AnswerRefused) before anything happened, and still waits.
    pub fn resume_with(checkpoint: Checkpoint, answers: impl IntoIterator<Item = (String, Answer)>) -> Self {
        let answers = answers.into_iter().collect();
        Self::from_input(RunInput::Resume { checkpoint: Box::new(checkpoint), answers })
    }

    /// Goes on with the newest run of a session where the journal says that it stands: after its process died, or after it
    /// was suspended, failed or cancelled. The agent needs a store, and is built as the one that began.
    ///
    /// Answers to its questions are given by question id; see [`SessionIndex::unfinished`](crate::journal::SessionIndex::unfinished) for looking at them first.
    pub fn recover(session: impl Into<Arc<str>>, answers: impl IntoIterator<Item = (String, Value)>) -> Self {
        Self::recover_with(session, plain(answers))
    }

    /// As [`recover`](Self::recover), with answers that are [bound to their questions](crate::Question::answer).
    pub fn recover_with(session: impl Into<Arc<str>>, answers: impl IntoIterator<Item = (String, Answer)>) -> Self {
        Self::from_input(RunInput::Recover { answers: answers.into_iter().collect() }).session(session)
    }

    /// Runs the newest run of a session again: hooks see it as it was, and what the models and the tools gave is taken from
    /// the journal. Nothing is called and nothing is written; what descendants did is told as it was recorded. The events are
    /// those of the recorded run, apart from what only passes, such as chunks. Another run than the newest is replayed by its
    /// [`run_id`](Self::run_id).
    ///
    /// If the run takes another path than the recorded one, it fails with
    /// [`NonDeterminism`](crate::ErrorKind::NonDeterminism), with what differs and (context `step`) where. A recorded run that
    /// is not finished is replayed as far as it came, and is interrupted or paused there. The agent needs the store.
    pub fn replay(session: impl Into<Arc<str>>) -> Self {
        Self::from_input(RunInput::Replay).session(session)
    }

    /// Sets the run's id, which is made up otherwise. In a session that is kept it makes a request safe to send again: if the
    /// session has a run of this id nothing runs, and the error is [`ErrorKind::Stale`](crate::ErrorKind::Stale). Of a [replay](Self::replay) it says which run is driven again: an older
    /// one, or one of a sub-agent, which that agent replays.
    #[must_use]
    pub fn run_id(mut self, run_id: impl Into<Arc<str>>) -> Self {
        self.run_id = Some(run_id.into());
        self
    }

    /// Makes every step of the run, and of its descendants, through this engine, which keeps what they gave: driven again from its
    /// beginning by another process, the run does not repeat them. The request needs the same [`run_id`](Self::run_id) each
    /// time, and the agent has no store: what the run is to keep, the engine does.
    ///
    /// What is done between steps is done again, and must come to the same result: a hook that asks the clock or draws a number
    /// makes it a [decision](RunCx::decide). Deadlines count anew in each attempt, and sub-agents do not run in the background.
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
            despite_changes: false,
            despite_newer: false,
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

    /// Sets how the model is to answer in this run: [over](ModelParams::with) what the agent says, field by field. A request
    /// that goes on with a run brings them again.
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

    /// Offers these tools beside the agent's. One that is named as another fails the run. A request that goes on with a run
    /// brings them again.
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

    /// Gives a run input: a variable of the prompts or, where the agent's state has such a key, a value of the state. Another
    /// name is an error, and so is a value of another type than was declared.
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

    /// Sets the template of the system prompt for this run, in place of the agent's.
    #[must_use]
    pub fn system_prompt(mut self, template: impl Into<String>) -> Self {
        self.system_prompt = Some(template.into());
        self
    }

    /// Sets the template of the user message that comes after the new messages, in place of the agent's.
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

    /// Sets what to do if another run of the agent holds the session.
    #[must_use]
    pub fn when_busy(mut self, policy: WhenBusy) -> Self {
        self.when_busy = Some(policy);
        self
    }

    /// Sets what to do if the session's newest run waits for answers.
    #[must_use]
    pub fn when_waiting(mut self, policy: WhenWaiting) -> Self {
        self.when_waiting = Some(policy);
        self
    }

    /// Sets on whose behalf the agent runs: a budget with a window for each user counts it there, and hooks and tools find the
    /// user in the run's [ids](crate::RunIds).
    #[must_use]
    pub fn on_behalf_of(mut self, user: impl Into<Arc<str>>) -> Self {
        self.user = Some(user.into());
        self
    }

    /// Sets which worker drives the run, for whoever reads its journal.
    #[must_use]
    pub fn driven_by(mut self, worker: impl Into<Arc<str>>) -> Self {
        self.worker = Some(worker.into());
        self
    }

    /// Sets the trace that the run belongs to: the value of a header `traceparent` (W3C Trace Context).
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

    /// Sets what this run may use with all its descendants. It can only be less than what the agent's budget allows.
    #[must_use]
    pub fn caps(mut self, caps: Caps) -> Self {
        self.caps = Some(caps);
        self
    }

    /// Sets what this run and all its descendants draw on beside the agent's budget: an account of whoever asks for it, say. Its windows
    /// open none. It lives in this process: a run that goes on draws on it if that request says so again.
    #[must_use]
    pub fn budget(mut self, budget: Budget) -> Self {
        self.budget = Some(budget);
        self
    }

    /// Goes on from the checkpoint even if the agent has changed since.
    #[must_use]
    pub fn despite_changes(mut self) -> Self {
        self.despite_changes = true;
        self
    }

    /// Goes back to the checkpoint even if its session's journal knows that the run went on since: what came after it is undone.
    #[must_use]
    pub fn despite_newer(mut self) -> Self {
        self.despite_newer = true;
        self
    }

    /// Makes it a child of `parent`.
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
