//! Names that a registry does not know.

use std::fmt;

use agent_core::Error;

use super::DefinitionProblem;

/// Kind of a part in a [`Registry`](super::Registry).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PartKind {
    /// A model.
    Model,
    /// A tool.
    Tool,
    /// A tool set.
    Toolset,
    /// A tool that the model's provider runs, with the credentials of its server.
    ServerTool,
    /// A middleware.
    Middleware,
    /// A merge rule.
    Handler,
}

/// A name in a definition that is not in the registry.
///
/// ```
/// use agent_core::testing::ScriptedModel;
/// use agent_exec::{AgentDefinition, PartKind, Registry, UnknownPart};
///
/// let registry = Registry::new().model("small", ScriptedModel::new([])).model("large", ScriptedModel::new([]));
/// let definition: AgentDefinition = serde_json::from_str(r#"{"name": "a", "model": "huge"}"#).unwrap();
/// let error = registry.builder(&definition).unwrap_err();
/// let unknown = UnknownPart::of(&error).unwrap();
/// assert_eq!((unknown.kind, unknown.name.as_str()), (PartKind::Model, "huge"));
/// assert_eq!(unknown.known, ["large", "small"]);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct UnknownPart {
    /// Kind of the part.
    pub kind: PartKind,
    /// The unknown name.
    pub name: String,
    /// The registered names of this kind.
    pub known: Vec<String>,
}

impl UnknownPart {
    pub(super) fn new(kind: PartKind, name: &str, known: impl IntoIterator<Item = String>) -> Self {
        Self { kind, name: name.to_owned(), known: known.into_iter().collect() }
    }

    /// Returns the unknown name behind an error, if it is the error's first or only problem.
    pub fn of(error: &Error) -> Option<&Self> {
        match DefinitionProblem::of(error) {
            [first, ..] => Self::of(&first.error),
            [] => std::error::Error::source(error)?.downcast_ref(),
        }
    }
}

impl fmt::Display for PartKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Model => "model",
            Self::Tool => "tool",
            Self::Toolset => "tool set",
            Self::ServerTool => "server tool",
            Self::Middleware => "middleware",
            Self::Handler => "handler",
        })
    }
}

impl fmt::Display for UnknownPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, name, known } = self;
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        write!(f, "the registry has no {kind} '{name}'; of that kind it has: {known}")
    }
}

impl std::error::Error for UnknownPart {}

impl From<UnknownPart> for Error {
    fn from(unknown: UnknownPart) -> Self {
        Self::config(unknown.to_string()).with_source(unknown)
    }
}
