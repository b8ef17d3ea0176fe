//! [`RunState`]: where a run stands.

use std::{collections::BTreeMap, sync::Arc};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Answer, BackgroundRun, Begun, Phase, Question, RunIds, Trail};
use crate::{
    amounts::Amounts,
    error::{Error, Result},
    history::History,
    llm::ModelResponse,
    message::Message,
    tooling::ToolOutput,
    usage::Usage,
};

/// A run at rest: its [`RunState`], as an application keeps it to go on with the run later.
pub type Checkpoint = RunState;

/// Where a run stands: everything needed to go on with it, in this process or another. JSON that stands for itself.
///
/// [`apply`](Self::apply) is the only way in which it changes: a run under way, its recovery from a journal, its replay and
/// its forks all apply the same entries, so they cannot disagree.
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
    /// The version of this format.
    pub version: u16,
    /// Tells the agent's model, tools and middleware apart from another's: another agent refuses the checkpoint.
    pub fingerprint: String,
    /// Who ran.
    pub ids: RunIds,
    /// The nonce of the attempt that made it: a checkpoint that an attempt with another one went on from is out of date.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt: Option<Arc<str>>,
    /// Steps taken.
    pub step: u32,
    /// What comes next.
    pub phase: Phase,
    /// The conversation; a turn under way is in the phase.
    pub history: History,
    /// The run's state.
    pub state: BTreeMap<String, Value>,
    /// The storage of the hierarchy; only in the root's checkpoint, since sub-agents share it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub globals: Option<BTreeMap<String, Value>>,
    /// What must be answered before the run goes on.
    #[serde(default)]
    pub questions: Vec<Question>,
    /// Answers given so far, by question id.
    #[serde(default)]
    pub answers: BTreeMap<String, Answer>,
    /// What tools gave whose calls are still open, because a hook failed or asked after them: they are not run again.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub finished: BTreeMap<String, ToolOutput>,
    /// Calls whose tools were begun by an attempt that died or was cancelled, with no result: what became of them is not
    /// known, and their effect says what to do about it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub begun: BTreeMap<String, Begun>,
    /// What the model answered in the step under way that was not accepted yet, in order: it is not called again for them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub answered: Vec<Arc<ModelResponse>>,
    /// Messages that steer the run and did not come to their turn yet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steering: Vec<Message>,
    /// Decisions of the run's beginning, and behind them those of the step under way, each in order.
    #[serde(default)]
    pub decisions: Vec<(String, Value)>,
    /// How many of the decisions are of the run's beginning, and hold for the whole run.
    #[serde(default, skip_serializing_if = "is_default")]
    pub beginning: usize,
    /// What the run used itself.
    #[serde(default)]
    pub usage: Usage,
    /// What it used with all its sub-agents.
    #[serde(default)]
    pub tree_usage: Usage,
    /// How often each tool was run.
    #[serde(default)]
    pub tool_calls: BTreeMap<String, u32>,
    /// What budgets counted for the run and all its descendants: model calls that were limited, what cut-off ones may have used
    /// included, and each try at a tool.
    #[serde(default, skip_serializing_if = "is_default")]
    pub spent: Amounts,
    /// Milliseconds for which the run was under way, over all its attempts; waiting for an answer is not part of it.
    #[serde(default, skip_serializing_if = "is_default")]
    pub elapsed_ms: u64,
    /// Sub-agents that it started.
    #[serde(default, skip_serializing_if = "is_default")]
    pub sub_agents: u32,
    /// Where the application keeps it, if it said so when it was shown the checkpoint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub saved_as: Option<String>,
    /// Those that ran in the background, and of whose end it was not told.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub background: Vec<BackgroundRun>,
    /// What only the next entry needs to know.
    #[serde(skip)]
    pub(crate) trail: Trail,
}

/// For fields that are left out of JSON where they say nothing.
pub(crate) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

impl RunState {
    /// The version that this release writes.
    pub const VERSION: u16 = 1;

    /// A checkpoint before the first step.
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
            trail: Trail::default(),
        }
    }

    /// What the run used with all its descendants, as far as any count of it says: what a budget takes over from it.
    pub fn used(&self) -> Amounts {
        let tool_calls = self.tool_calls.values().copied().map(u64::from).sum();
        let Usage { calls, cost, .. } = self.tree_usage;
        let counted =
            Amounts::none().tokens(self.tree_usage.total()).cost(cost).model_calls(calls).tool_calls(tool_calls);
        counted.max(self.spent)
    }

    /// Puts another message in the place of one of the conversation, such as in a fork.
    ///
    /// # Errors
    /// [`ErrorKind::History`](crate::ErrorKind::History) if there is no such message, or if a call would be unpaired.
    pub fn edit(&mut self, index: usize, message: Message) -> Result<()> {
        self.history.replace(index, message)
    }

    /// The checkpoint as JSON text.
    ///
    /// # Errors
    /// Never for a checkpoint of this framework.
    pub fn to_json(&self) -> Result<String> {
        serde_json::to_string(self).map_err(|e| Error::config("the checkpoint is not JSON").with_source(e))
    }

    /// Reads [`to_json`](Self::to_json)'s text.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) if it is no checkpoint, or of a newer version than this release.
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
