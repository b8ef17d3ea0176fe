//! How the executor is to run a tool.

use std::{fmt, sync::Arc, time::Duration};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{error::Result, message::Part, storage::Merge, tooling::ToolOutput};

/// What repeating a tool call would do.
///
/// The executor makes the intent of every call that is not [`Pure`](Self::Pure) durable before the tool runs, and writes the
/// effect beside it, so that a call in doubt (its process died, or the run was cancelled, before its result was written) can
/// be told from one that never began. When the run goes on, the effect says what to do about the doubt. Variants are
/// ordered by caution.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Effect {
    /// Nothing outside changes: repeated freely.
    Pure,
    /// Repeating with the same [`idempotency key`](crate::ToolRequest::idempotency_key) changes nothing more: repeated
    /// with the key.
    Idempotent,
    /// The tool can be [asked](crate::Tool::reconcile) what became of it.
    Reconcilable,
    /// It must not be repeated: a person is asked. The default for tools that do not say, and what an effect counts as that
    /// this release does not know.
    #[default]
    #[serde(other)]
    AtMostOnce,
}

/// What a [`reconcile`](crate::Tool::reconcile) found.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Reconciled {
    /// It happened, with this result.
    Happened(ToolOutput),
    /// It did not happen, so it may be done now.
    DidNot,
    /// It cannot be known.
    Unknown,
}

/// What a person says became of a call in doubt: the answer to a question of kind [`Doubt::KIND`].
///
/// As JSON: `{"happened": "what the tool gave"}`, `"did_not"` or `"unknown"`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Doubt {
    /// It happened, and gave this.
    Happened(Value),
    /// It did not happen: it is done now.
    DidNot,
    /// Nobody knows, and it is not to be done again: the model is told so.
    Unknown,
}

impl Doubt {
    /// The kind of the question what became of a call in doubt; it is answered with a [`Doubt`].
    pub const KIND: &str = "in_doubt";
}

/// A parameter that is filled from the run's state when the model leaves it out. The model's own value wins.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct StateRead {
    /// The key of the state.
    pub key: String,
    /// The parameter.
    pub param: String,
}

/// A part of the tool's value that is written to the run's state.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct StateWrite {
    /// The key of the state.
    pub key: String,
    /// The field of the tool's value; the whole value if unset. A value without the field writes nothing.
    pub source: Option<String>,
    /// How it is merged; as the state's schema says if unset.
    pub merge: Option<Merge>,
}

/// What a call of a tool may do to the world, as far as its author says: for those who decide whether it runs. Default: nothing is said.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct ToolHints {
    /// True if what it changes may be lost for good; false if it adds and changes nothing that was there.
    pub destructive: Option<bool>,
    /// True if it reaches what nobody here knows, such as the web; false if all that it reaches is known.
    pub open_world: Option<bool>,
}

/// How the executor is to run a tool. Everything has a sensible default.
///
/// ```
/// use std::time::Duration;
///
/// use agent_core::{Effect, ToolOptions};
///
/// let options = ToolOptions::default()
///     .effect(Effect::Pure)
///     .timeout(Duration::from_secs(5))
///     .reads("token", "api_token")
///     .writes("last_report", None);
/// assert!(!options.serial);
/// ```
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct ToolOptions {
    /// What repeating a call would do. Default: [`Effect::AtMostOnce`].
    pub effect: Effect,
    /// True if a call does nothing but run sub-agents and hand on what they say: where an engine keeps steps, theirs are kept and
    /// the call is entered again. Default: false.
    pub delegates: bool,
    /// Never beside another call of the same message. Default: false.
    pub serial: bool,
    /// Most calls of this tool at once, over all runs of the agent. Default: no limit of its own.
    pub concurrency: Option<usize>,
    /// Longest time one attempt may take. Default: none.
    pub timeout: Option<Duration>,
    /// How long a cancelled call may go on to hand up its state; zero drops it at once. Default: zero.
    pub cancel_grace: Duration,
    /// Parameters that are filled from the state.
    pub reads: Vec<StateRead>,
    /// True if the tool looks at the state itself, so that it must run apart from every writer. Default: false.
    pub uses_state: bool,
    /// Parts of the value that are written to the state.
    pub writes: Vec<StateWrite>,
    /// How the value becomes text for the model.
    pub text: OutputText,
    /// Arguments that are always given; a value from the model wins. They are not in the schema that the model sees.
    pub args: Map<String, Value>,
    /// Other names of parameters, each with the parameter's own: models that were trained with another tool of this kind use them. They are
    /// in no schema, and are mapped before arguments are checked, at whichever depth the parameter is. Default: none.
    pub aliases: Vec<(String, String)>,
    /// What a call may do to the world.
    pub hints: ToolHints,
}

/// Turns a tool's value into what the model is shown.
pub type Render = Arc<dyn Fn(&Value) -> Result<Vec<Part>> + Send + Sync>;

/// How a tool's value becomes what the model is shown.
#[derive(Clone, Default)]
#[non_exhaustive]
pub enum OutputText {
    /// As [`value_to_text`](crate::tool::value_to_text) does.
    #[default]
    Default,
    /// One field of the value, through an own rendering if one is given.
    Field {
        /// The field; the whole value if unset.
        source: Option<String>,
        /// The rendering; [`value_to_text`](crate::tool::value_to_text) if unset.
        render: Option<Render>,
    },
    /// A JSON object of texts: each name with the field that it shows.
    Fields(Vec<(String, String)>),
}

impl ToolOptions {
    /// Sets what repeating a call would do.
    #[must_use]
    pub fn effect(mut self, effect: Effect) -> Self {
        self.effect = effect;
        self
    }

    /// Says that a call does nothing but run sub-agents and hand on what they say.
    #[must_use]
    pub fn delegates(mut self) -> Self {
        self.delegates = true;
        self
    }

    /// Never runs the tool beside another call of the same message.
    #[must_use]
    pub fn serial(mut self) -> Self {
        self.serial = true;
        self
    }

    /// Sets the most calls at once, over all runs of the agent.
    #[must_use]
    pub fn concurrency(mut self, most: usize) -> Self {
        self.concurrency = Some(most);
        self
    }

    /// Sets the longest time an attempt may take.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Fills the parameter `param` from the state's `key`.
    #[must_use]
    pub fn reads(mut self, key: impl Into<String>, param: impl Into<String>) -> Self {
        self.reads.push(StateRead { key: key.into(), param: param.into() });
        self
    }

    /// Says that the tool looks at the state itself.
    #[must_use]
    pub fn uses_state(mut self) -> Self {
        self.uses_state = true;
        self
    }

    /// Writes the field `source` of the value, or all of it, to the state's `key`.
    #[must_use]
    pub fn writes(self, key: impl Into<String>, source: Option<&str>) -> Self {
        self.writes_with(key, source, None)
    }

    /// As [`writes`](Self::writes), with a merge rule that beats the schema's.
    #[must_use]
    pub fn writes_with(mut self, key: impl Into<String>, source: Option<&str>, merge: Option<Merge>) -> Self {
        self.writes.push(StateWrite { key: key.into(), source: source.map(str::to_owned), merge });
        self
    }

    /// Sets how the value becomes text.
    #[must_use]
    pub fn text(mut self, text: OutputText) -> Self {
        self.text = text;
        self
    }

    /// Gives the argument `name` in every call unless the model does.
    #[must_use]
    pub fn arg(mut self, name: impl Into<String>, value: impl Into<Value>) -> Self {
        self.args.insert(name.into(), value.into());
        self
    }

    /// Takes `alias` for the parameter `param`, where the model gives it in place of that.
    #[must_use]
    pub fn alias(mut self, alias: impl Into<String>, param: impl Into<String>) -> Self {
        self.aliases.push((alias.into(), param.into()));
        self
    }

    /// Says whether a call may destroy something.
    #[must_use]
    pub fn destructive(mut self, is: bool) -> Self {
        self.hints.destructive = Some(is);
        self
    }

    /// Says whether a call reaches what nobody here knows.
    #[must_use]
    pub fn open_world(mut self, is: bool) -> Self {
        self.hints.open_world = Some(is);
        self
    }
}

impl fmt::Debug for OutputText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("Default"),
            Self::Field { source, render } => {
                f.debug_struct("Field").field("source", source).field("render", &render.is_some()).finish()
            }
            Self::Fields(fields) => f.debug_tuple("Fields").field(fields).finish(),
        }
    }
}
