//! [`AskParent`]: lets a sub-agent ask its caller.

use std::sync::Arc;

use agent_core::{
    Ask, Effect, Error, Exit, ExitReason, Message, Middleware, Placement, Result, RunCx, Tool, ToolOptions, ToolOutput,
    ToolRequest, ToolResults, ToolSpec, Verdict,
};
use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// Name of the tool.
pub(super) const ASK_PARENT: &str = "ask_parent";

/// Configuration of `AskParent`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct AskParentConfig {
    /// A person answers, instead of the calling agent. Default: false.
    pub person: bool,
}

/// Gives an agent the tool `ask_parent`, with which it asks its calling agent or, if configured, a
/// person.
///
/// A question to the caller ends the sub-agent's run with the exit reason `ask_parent` and the
/// question as its answer. [`Delegation`](crate::Delegation) with
/// [`recall`](crate::Delegation::recall) shows it to the caller's model with the sub-agent's id.
/// When that model calls the sub-agent again by its id, the answer arrives as the next message of
/// the conversation, which resumes where it stopped. So nobody is kept waiting, no model is called
/// outside its own loop, and a crash in between loses nothing.
///
/// A question to a person ([`person`](Self::person)) suspends the whole tree, like any question.
/// Its kind is `ask_parent`, its payload has `question` and the `path` of the agent, and the answer
/// is a text.
///
/// Register it with the agent that is called. An agent without a caller is asked to decide by
/// itself.
///
/// # Order
///
/// Outside middleware that ends runs itself in `on_exit`: the question then becomes the answer,
/// whatever inner middleware returned.
///
/// # Example
///
/// ```
/// use agent_core::Middleware;
/// use agent_middleware::AskParent;
///
/// let ask = AskParent::new();
/// assert_eq!(ask.tools()[0].spec().name, "ask_parent");
/// ```
#[derive(Clone, Debug, Default)]
pub struct AskParent {
    config: AskParentConfig,
}

impl AskParent {
    /// Sends questions to the calling agent.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sends questions to a person instead.
    #[must_use]
    pub fn person(mut self) -> Self {
        self.config.person = true;
        self
    }
}

impl From<AskParentConfig> for AskParent {
    fn from(config: AskParentConfig) -> Self {
        Self { config }
    }
}

#[derive(Deserialize)]
struct Args {
    question: String,
}

#[async_trait]
impl Tool for AskParent {
    fn spec(&self) -> ToolSpec {
        let parameters = json!({
            "type": "object",
            "properties": {"question": {"type": "string", "description": "The question, complete in itself."}},
            "required": ["question"],
            "additionalProperties": false,
        });
        let who = if self.config.person { "a person" } else { "whoever gave you this task" };
        let description = format!("Asks {who} what you must know to go on and cannot find out yourself.");
        ToolSpec::new(ASK_PARENT, description, parameters)
    }

    fn options(&self) -> ToolOptions {
        ToolOptions::default().effect(Effect::Pure)
    }

    async fn call(&self, req: ToolRequest) -> Result<ToolOutput> {
        let Args { question } = req.parse()?;
        if self.config.person {
            let payload = json!({"question": question, "path": req.cx.ids().path});
            let ask = Ask::new(ASK_PARENT, payload).schema(json!({"type": "string"}));
            return Ok(ToolOutput::text(req.ask_with(ask)?.parse::<String>()?));
        }
        if req.cx.ids().depth == 0 {
            return Err(Error::tool("Nobody called this agent: decide by yourself, and say what you assumed."));
        }
        Ok(ToolOutput::text("Asked. The answer comes as the next message."))
    }
}

#[async_trait]
impl Middleware for AskParent {
    fn name(&self) -> &str {
        ASK_PARENT
    }

    fn placement(&self) -> Placement {
        Placement::default().unique()
    }

    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        vec![Arc::new(self.clone())]
    }

    async fn after_tools(&self, _: &RunCx, results: &mut ToolResults) -> Result<Verdict> {
        let asked = |name: &str, is_error: bool| name == ASK_PARENT && !is_error;
        let ends = !self.config.person && results.results.iter().any(|r| asked(&r.name, r.output.is_error()));
        Ok(if ends { Verdict::Finish } else { Verdict::Proceed })
    }

    async fn on_exit(&self, cx: &RunCx, exit: &mut Exit) -> Result<Verdict> {
        if !self.config.person
            && exit.reason == ExitReason::Verdict
            && let Some(question) = question(cx)
        {
            *exit = Exit::new(ExitReason::Tool(ASK_PARENT.to_owned()), question);
        }
        Ok(Verdict::Proceed)
    }
}

/// Returns the question that the last turn asked the caller.
fn question(cx: &RunCx) -> Option<String> {
    let history = cx.history();
    let mut turn = history.iter().rev();
    turn.next().filter(|message| message.as_tool().is_some())?;
    let calls = turn.find_map(Message::as_assistant)?;
    let asked: Vec<_> = calls
        .calls()
        .filter(|call| &*call.name == ASK_PARENT)
        .filter_map(|call| serde_json::from_str(&call.arguments).ok())
        .map(|Args { question }| question)
        .collect();
    (!asked.is_empty()).then(|| asked.join("\n"))
}
