//! Conditions and rules of routes.

use std::{fmt, sync::Arc};

use agent_core::{Message, ModelRequest, Part, TokenCounter};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Condition of a route, as data for configuration files.
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
    /// The prompt, including tools, has more tokens than this.
    TokensOver(u64),
    /// The request offers more tools than this.
    ToolsOver(usize),
    /// The run is beyond this step.
    StepOver(u32),
    /// The conversation contains an image or a document.
    Media,
    /// A key of the run's state has this value.
    State {
        /// State key.
        key: String,
        /// Required value.
        is: Value,
    },
    /// All conditions hold; true if the list is empty.
    All(Vec<Self>),
    /// At least one condition holds; false if the list is empty.
    Any(Vec<Self>),
    /// The condition does not hold.
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

/// Rule of a route: a [`Condition`], or a closure over the request.
#[derive(Clone)]
pub struct Rule(How);

#[derive(Clone)]
enum How {
    Data(Condition),
    Code(Arc<dyn Fn(&ModelRequest) -> bool + Send + Sync>),
}

impl Rule {
    /// Creates a rule from a predicate over the request.
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
