//! Execution options of tools.

use std::{fmt, sync::Arc, time::Duration};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{error::Result, message::Part, storage::Merge, tooling::ToolOutput};

/// Effect class of a tool: the consequence of repeating a call.
///
/// Before a tool that is not [`Pure`](Self::Pure) runs, the executor persists the intent of the
/// call together with its effect class. A call in doubt (its process died, or the run was
/// cancelled, before its result was persisted) can thus be distinguished from one that never began.
/// On resume, the effect class decides how the call is handled. Variants are ordered by caution.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Effect {
    /// Changes nothing outside: repeated freely.
    Pure,
    /// Repeating the call with the same [`idempotency key`](crate::ToolRequest::idempotency_key)
    /// changes nothing more: repeated with the key.
    Idempotent,
    /// The tool can [report](crate::Tool::reconcile) the outcome of an earlier attempt.
    Reconcilable,
    /// The call must not be repeated: a person is asked. Default, and the fallback for an effect
    /// that this release does not know.
    #[default]
    #[serde(other)]
    AtMostOnce,
}

/// Outcome found by [`reconcile`](crate::Tool::reconcile).
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Reconciled {
    /// The call happened, with this result.
    Happened(ToolOutput),
    /// The call did not happen, so it may run now.
    DidNot,
    /// The outcome cannot be determined.
    Unknown,
}

/// A person's statement about a call in doubt: the answer to a question of kind [`Doubt::KIND`].
///
/// As JSON: `{"happened": "what the tool gave"}`, `"did_not"` or `"unknown"`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Doubt {
    /// The call happened, with this result.
    Happened(Value),
    /// The call did not happen: it runs now.
    DidNot,
    /// The outcome is unknown, and the call must not be repeated: the model is informed.
    Unknown,
}

impl Doubt {
    /// Kind of the question about a call in doubt; it is answered with a [`Doubt`].
    pub const KIND: &str = "in_doubt";
}

/// A parameter that is filled from the run's state when the model omits it. A value from the model
/// wins.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct StateRead {
    /// Key in the state.
    pub key: String,
    /// Name of the parameter.
    pub param: String,
}

/// A part of the tool's value that is written to the run's state.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct StateWrite {
    /// Key in the state.
    pub key: String,
    /// Field of the tool's value; the whole value if unset. A value without the field writes
    /// nothing.
    pub source: Option<String>,
    /// Merge rule. Default: the rule of the state's schema.
    pub merge: Option<Merge>,
}

/// Consequences of a tool's calls for the outside world, as declared by its author, for policies
/// that decide whether a call runs. Default: undeclared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct ToolHints {
    /// True if changes may destroy existing data; false if they are only additive.
    pub destructive: Option<bool>,
    /// True if the tool reaches an open set of external systems, such as the web; false if all that
    /// it reaches is known.
    pub open_world: Option<bool>,
}

/// Execution options of a tool. All fields have defaults.
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
    /// Effect class: the consequence of repeating a call. Default: [`Effect::AtMostOnce`].
    pub effect: Effect,
    /// True if a call only runs sub-agents and returns their results: under an engine that persists
    /// steps, the sub-agents' steps are persisted and the call is entered again. Default: false.
    pub delegates: bool,
    /// True if the tool must not run concurrently with another call of the same message. Default:
    /// false.
    pub serial: bool,
    /// Maximum number of concurrent calls of this tool, over all runs of the agent. Default:
    /// unlimited.
    pub concurrency: Option<usize>,
    /// Timeout of one attempt. Default: none.
    pub timeout: Option<Duration>,
    /// Grace period in which a cancelled call may still return its state; zero drops it at once.
    /// Default: zero.
    pub cancel_grace: Duration,
    /// Parameters that are filled from the state.
    pub reads: Vec<StateRead>,
    /// True if the tool reads the state directly, so that it must not run concurrently with a
    /// writer. Default: false.
    pub uses_state: bool,
    /// Parts of the value that are written to the state.
    pub writes: Vec<StateWrite>,
    /// Conversion of the value to text for the model.
    pub text: OutputText,
    /// Fixed arguments; a value from the model wins. They are omitted from the schema that the
    /// model sees.
    pub args: Map<String, Value>,
    /// Aliases of parameters, each with the parameter's name: names that models may have learnt
    /// from another tool of this kind. Aliases are in no schema, and are mapped before arguments
    /// are validated, at every depth. Default: none.
    pub aliases: Vec<(String, String)>,
    /// Declared consequences of a call for the outside world.
    pub hints: ToolHints,
    /// True if a call may run with repaired arguments after the model's output was cut off inside
    /// them. Only tools of [`Effect::Pure`] may accept that; other tools always refuse. Default:
    /// false, and the model receives an error that asks for another call.
    pub accepts_truncated: bool,
}

/// Function that converts a tool's value to content for the model.
pub type Render = Arc<dyn Fn(&Value) -> Result<Vec<Part>> + Send + Sync>;

/// Conversion of a tool's value to text for the model.
#[derive(Clone, Default)]
#[non_exhaustive]
pub enum OutputText {
    /// The conversion of [`value_to_text`](crate::tool::value_to_text).
    #[default]
    Default,
    /// One field of the value, with a custom rendering if set.
    Field {
        /// The field; the whole value if unset.
        source: Option<String>,
        /// Rendering; [`value_to_text`](crate::tool::value_to_text) if unset.
        render: Option<Render>,
    },
    /// A JSON object of texts: each name with the field that it contains.
    Fields(Vec<(String, String)>),
}

impl ToolOptions {
    /// Sets the effect class: the consequence of repeating a call.
    #[must_use]
    pub fn effect(mut self, effect: Effect) -> Self {
        self.effect = effect;
        self
    }

    /// Declares that a call only runs sub-agents and returns their results.
    #[must_use]
    pub fn delegates(mut self) -> Self {
        self.delegates = true;
        self
    }

    /// Prevents the tool from running concurrently with another call of the same message.
    #[must_use]
    pub fn serial(mut self) -> Self {
        self.serial = true;
        self
    }

    /// Sets the maximum number of concurrent calls, over all runs of the agent.
    #[must_use]
    pub fn concurrency(mut self, most: usize) -> Self {
        self.concurrency = Some(most);
        self
    }

    /// Sets the timeout of one attempt.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Fills the parameter `param` from the key `key` of the state.
    #[must_use]
    pub fn reads(mut self, key: impl Into<String>, param: impl Into<String>) -> Self {
        self.reads.push(StateRead { key: key.into(), param: param.into() });
        self
    }

    /// Declares that the tool reads the state directly.
    #[must_use]
    pub fn uses_state(mut self) -> Self {
        self.uses_state = true;
        self
    }

    /// Writes the field `source` of the value, or the whole value, to the key `key` of the state.
    #[must_use]
    pub fn writes(self, key: impl Into<String>, source: Option<&str>) -> Self {
        self.writes_with(key, source, None)
    }

    /// Like [`writes`](Self::writes), with a merge rule that overrides the schema's.
    #[must_use]
    pub fn writes_with(mut self, key: impl Into<String>, source: Option<&str>, merge: Option<Merge>) -> Self {
        self.writes.push(StateWrite { key: key.into(), source: source.map(str::to_owned), merge });
        self
    }

    /// Sets the conversion of the value to text.
    #[must_use]
    pub fn text(mut self, text: OutputText) -> Self {
        self.text = text;
        self
    }

    /// Sets the argument `name` in every call unless the model provides it.
    #[must_use]
    pub fn arg(mut self, name: impl Into<String>, value: impl Into<Value>) -> Self {
        self.args.insert(name.into(), value.into());
        self
    }

    /// Accepts `alias` as another name of the parameter `param`.
    #[must_use]
    pub fn alias(mut self, alias: impl Into<String>, param: impl Into<String>) -> Self {
        self.aliases.push((alias.into(), param.into()));
        self
    }

    /// Runs a call although the model's output was cut off inside its arguments, for a tool of
    /// [`Effect::Pure`].
    #[must_use]
    pub fn accepts_truncated(mut self) -> Self {
        self.accepts_truncated = true;
        self
    }

    /// Declares whether a call may destroy existing data.
    #[must_use]
    pub fn destructive(mut self, is: bool) -> Self {
        self.hints.destructive = Some(is);
        self
    }

    /// Declares whether a call reaches an open set of external systems.
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
