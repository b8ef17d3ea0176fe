//! [`RunState`]: the state of a run.

use std::{collections::BTreeMap, sync::Arc};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Answer, BackgroundRun, Begun, CallState, ChildRun, Phase, Question, RunIds, RunMeta};
use crate::{
    amounts::Amounts,
    error::{Error, Result},
    history::History,
    llm::ModelResponse,
    message::Message,
    tooling::{Effect, ToolOutput},
    usage::Usage,
};

/// Persistent state of a suspended run: a [`RunState`] that an application stores to resume the run
/// later.
pub type Checkpoint = RunState;

/// State of a run: everything needed to resume it, in this process or another. Serialises to
/// self-contained JSON.
///
/// The state changes only through [`apply`](Self::apply): a running run, its recovery from a
/// journal, its replay and its forks all apply the same entries, so they cannot diverge.
///
/// ```
/// # fn keep(checkpoint: &agent_core::Checkpoint) -> agent_core::Result<()> {
/// let text = checkpoint.to_json()?;
/// let same = agent_core::Checkpoint::from_json(&text)?;
/// # assert_eq!(&same, checkpoint); Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RunState {
    /// Version of this format.
    pub version: u16,
    /// Fingerprint of the agent's model, tools and middleware: an agent with another fingerprint
    /// rejects the checkpoint.
    pub fingerprint: String,
    /// Ids of the run.
    pub ids: RunIds,
    /// Nonce of the attempt that made the checkpoint. The checkpoint is outdated once another
    /// attempt has resumed from it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt: Option<Arc<str>>,
    /// Number of steps taken.
    pub step: u32,
    /// The next action.
    pub phase: Phase,
    /// The conversation; an open turn is in `phase`.
    pub history: History,
    /// Values of the run's state.
    pub state: BTreeMap<String, Value>,
    /// Storage that the hierarchy shares; only in the root's checkpoint, since sub-agents share it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub globals: Option<BTreeMap<String, Value>>,
    /// Number of times that the run was resumed.
    #[serde(default, skip_serializing_if = "is_default")]
    pub resumed: u32,
    /// Reason for which the run is to end at its next boundary, if a hook or a tool asked for that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop: Option<String>,
    /// Questions that must be answered before the run continues.
    #[serde(default)]
    pub questions: Vec<Question>,
    /// Answers given so far, by question id.
    #[serde(default)]
    pub answers: BTreeMap<String, Answer>,
    /// Outputs of tools whose calls are still open, because a hook failed or asked a question
    /// afterwards: these tools are not run again.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub finished: BTreeMap<String, ToolOutput>,
    /// Calls in doubt: an attempt that died or was cancelled began them, and their outcome is
    /// unknown. The effect class of each decides how it is handled.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub begun: BTreeMap<String, Begun>,
    /// Model answers in the current step that were not accepted yet, in order: the model is not
    /// called again for them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub answered: Vec<Arc<ModelResponse>>,
    /// Pending steering messages.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steering: Vec<Message>,
    /// Decisions of the run's start, followed by those of the current step, each in order.
    #[serde(default)]
    pub decisions: Vec<(String, Value)>,
    /// Number of decisions of the run's start, which hold for the whole run.
    #[serde(default, skip_serializing_if = "is_default")]
    pub beginning: usize,
    /// Usage of the run itself.
    #[serde(default)]
    pub usage: Usage,
    /// Usage of the run and all its sub-agents.
    #[serde(default)]
    pub tree_usage: Usage,
    /// Number of executions of each tool.
    #[serde(default)]
    pub tool_calls: BTreeMap<String, u32>,
    /// Amounts that budgets counted for the run and all its descendants: limited model calls,
    /// including the possible usage of aborted ones, and each attempt at a tool call.
    #[serde(default, skip_serializing_if = "is_default")]
    pub spent: Amounts,
    /// Active time of the run in milliseconds, over all attempts; excludes the time it was
    /// suspended.
    #[serde(default, skip_serializing_if = "is_default")]
    pub elapsed_ms: u64,
    /// Number of sub-agents that the run has started.
    #[serde(default, skip_serializing_if = "is_default")]
    pub sub_agents: u32,
    /// Location at which the application stored the checkpoint, if its checkpoint callback returned
    /// one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub saved_as: Option<String>,
    /// Background sub-agents whose end was not reported to the run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub background: Vec<BackgroundRun>,
    /// Sub-agents that the open calls and the hooks of the step started, and those that belong to
    /// the whole run. Code that is entered again gets them back.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub children: Vec<ChildRun>,
    /// Bookkeeping that only the next entry needs.
    #[serde(skip)]
    pub(crate) run_meta: RunMeta,
}

/// True for a default value; such fields are omitted from JSON.
pub(crate) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

impl RunState {
    /// The format version that this release writes.
    pub const VERSION: u16 = 1;

    /// Creates a state before the first step.
    pub fn new(ids: RunIds, fingerprint: impl Into<String>) -> Self {
        Self {
            version: Self::VERSION,
            fingerprint: fingerprint.into(),
            ids,
            attempt: None,
            step: 0,
            phase: Phase::BeforeModel,
            history: History::default(),
            state: BTreeMap::new(),
            globals: None,
            resumed: 0,
            stop: None,
            questions: Vec::new(),
            answers: BTreeMap::new(),
            finished: BTreeMap::new(),
            begun: BTreeMap::new(),
            answered: Vec::new(),
            steering: Vec::new(),
            decisions: Vec::new(),
            beginning: 0,
            usage: Usage::default(),
            tree_usage: Usage::default(),
            tool_calls: BTreeMap::new(),
            spent: Amounts::default(),
            elapsed_ms: 0,
            sub_agents: 0,
            saved_as: None,
            background: Vec::new(),
            children: Vec::new(),
            run_meta: RunMeta::default(),
        }
    }

    /// Usage of the run and all its descendants, as the maximum of all counters: the amounts that a
    /// budget takes over.
    pub fn used(&self) -> Amounts {
        let tool_calls = self.tool_calls.values().copied().map(u64::from).sum();
        let Usage { calls, cost, .. } = self.tree_usage;
        let counted =
            Amounts::none().tokens(self.tree_usage.total()).cost(cost).model_calls(calls).tool_calls(tool_calls);
        counted.max(self.spent)
    }

    /// The ids of calls, of the run and of the sub-agents that it waits for, that were begun and have no
    /// result, and whose repetition would not be safe: it is unknown whether they had their effect.
    ///
    /// ```
    /// use agent_core::{Checkpoint, RunIds};
    ///
    /// let checkpoint = Checkpoint::new(RunIds::root("assistant", "garden"), "");
    /// assert!(checkpoint.in_doubt().is_empty());
    /// ```
    pub fn in_doubt(&self) -> Vec<&str> {
        let is_safe = |begun: &Begun| matches!(begun.effect, Effect::Pure | Effect::Idempotent);
        let turn = match &self.phase {
            Phase::Tools(turn) => turn.calls.as_slice(),
            _ => &[],
        };
        let own = turn.iter().filter(|call| self.begun.get(&*call.call_id).is_some_and(|begun| !is_safe(begun)));
        let own = own.filter(|call| !matches!(call.state, CallState::Done(_))).map(|call| &*call.call_id);
        let children = self.children.iter().filter_map(|child| child.checkpoint.as_deref());
        let background = self.background.iter().filter_map(|run| run.checkpoint.as_deref());
        own.chain(children.chain(background).flat_map(Self::in_doubt)).collect()
    }

    /// Replaces a message of the conversation, for example in a fork.
    ///
    /// # Errors
    /// [`ErrorKind::History`](crate::ErrorKind::History) if there is no such message, or if a call
    /// would be unpaired.
    pub fn edit(&mut self, index: usize, message: Message) -> Result<()> {
        self.history.replace(index, message)
    }

    /// Serialises the checkpoint as JSON text.
    ///
    /// # Errors
    /// Never for a checkpoint of this crate.
    pub fn to_json(&self) -> Result<String> {
        serde_json::to_string(self).map_err(|e| Error::config("the checkpoint is not JSON").with_source(e))
    }

    /// Parses the text of [`to_json`](Self::to_json).
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) if the text is not a checkpoint, or its
    /// version is newer than this release.
    pub fn from_json(text: &str) -> Result<Self> {
        let checkpoint: Self =
            serde_json::from_str(text).map_err(|e| Error::config("this text is not a checkpoint").with_source(e))?;
        if checkpoint.version > Self::VERSION {
            let (found, known) = (checkpoint.version, Self::VERSION);
            return Err(Error::config(format!(
                "checkpoint version {found} is newer than this release knows ({known})"
            )));
        }
        Ok(checkpoint)
    }
}
