//! When a route is taken.

use std::{fmt, sync::Arc};

use agent_core::{Message, ModelRequest, Part, TokenCounter};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// When a route is taken, as data: for configuration files.
///
/// ```
/// use agent_llm::router::Condition;
///
/// let short: Condition = serde_json::from_str(r#"{"all": [{"not": {"tokens_over": 2000}}, {"not": {"tools_over": 0}}]}"#)?;
/// let same = Condition::All(vec![
///     Condition::Not(Box::new(Condition::TokensOver(2_000))),
///     Condition::Not(Box::new(Condition::ToolsOver(0))),
/// ]);
/// assert_eq!(short, same);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
#[non_exhaustive]
pub enum Condition {
    /// The prompt, with its tools, has more tokens than this.
    TokensOver(u64),
    /// More tools than this are offered.
    ToolsOver(usize),
    /// The run has come further than this step.
    StepOver(u32),
    /// The conversation has an image or a document.
    Media,
    /// A key of the run's state has this value.
    State {
        /// The key.
        key: String,
        /// The value.
        is: Value,
    },
    /// All of them hold; true if there are none.
    All(Vec<Self>),
    /// One of them holds; false if there are none.
    Any(Vec<Self>),
    /// It does not hold.
    Not(Box<Self>),
}

impl Condition {
    fn holds(&self, req: &ModelRequest, counter: &dyn TokenCounter) -> bool {
        match self {
            Self::TokensOver(most) => req.tokens(counter) > *most,
            Self::ToolsOver(most) => req.tools.len() > *most,
            Self::StepOver(most) => req.cx.step() > *most,
            Self::Media => req.messages.iter().any(has_media),
            Self::State { key, is } => req.cx.state().get_value(key).as_ref() == Some(is),
            Self::All(all) => all.iter().all(|condition| condition.holds(req, counter)),
            Self::Any(any) => any.iter().any(|condition| condition.holds(req, counter)),
            Self::Not(condition) => !condition.holds(req, counter),
        }
    }
}

fn has_media(message: &Message) -> bool {
    let is_media = |part: &Part| matches!(part, Part::Image(_) | Part::Document(_));
    match message {
        Message::User(message) => message.parts().iter().any(is_media),
        Message::Tool(message) => message.parts().iter().any(is_media),
        _ => false,
    }
}

/// When a route is taken: a [`Condition`], or a closure over the request.
#[derive(Clone)]
pub struct Rule(How);

#[derive(Clone)]
enum How {
    Data(Condition),
    Code(Arc<dyn Fn(&ModelRequest) -> bool + Send + Sync>),
}

impl Rule {
    /// Takes a route where this is true of the request.
    pub fn when(holds: impl Fn(&ModelRequest) -> bool + Send + Sync + 'static) -> Self {
        Self(How::Code(Arc::new(holds)))
    }

    pub(super) fn holds(&self, req: &ModelRequest, counter: &dyn TokenCounter) -> bool {
        match &self.0 {
            How::Data(condition) => condition.holds(req, counter),
            How::Code(holds) => holds(req),
        }
    }
}

impl From<Condition> for Rule {
    fn from(condition: Condition) -> Self {
        Self(How::Data(condition))
    }
}

impl fmt::Debug for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            How::Data(condition) => condition.fmt(f),
            How::Code(_) => f.write_str("a closure"),
        }
    }
}
