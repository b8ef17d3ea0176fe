//! An agent that is a tool.

use agent_core::{
    AssistantMessage, Block, Error, ErrorKind, Message, Model, ModelInfo, ModelRequest, ModelResponse, Result, Tool,
    async_trait,
};
use serde_json::json;

use super::{Agent, AgentBuilder};

impl Agent {
    /// Begins an agent that no model drives: what it is told becomes the argument `message` of a call of `tool`, whose result is
    /// the answer. What an agent has, it has as well: journal and recovery, questions, budgets, deadlines, hooks around the call;
    /// and it runs as a sub-agent as they do. Tools that speak with agents elsewhere are made agents with it.
    ///
    /// No model is called, so none counts against a budget; each message counts as one call of a tool. A tool that fails fails the
    /// run with its own error. A message that is not text is refused.
    ///
    /// ```
    /// use agent_exec::Agent;
    /// use agent_tools::tool;
    ///
    /// /// Counts words.
    /// #[tool(effect = "pure")]
    /// async fn count(message: String) -> String {
    ///     format!("{} words", message.split_whitespace().count())
    /// }
    ///
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// let counter = Agent::of_tool("counter", count).build()?;
    /// let end = counter.run("To be or not to be").await?.finished().expect("it finishes");
    /// assert_eq!(end.answer, "6 words");
    /// # Ok::<(), agent_core::Error>(()) }).unwrap();
    /// ```
    pub fn of_tool(name: impl Into<String>, tool: impl Tool) -> AgentBuilder {
        let called = tool.spec().name;
        Self::builder(name, Relay::to(&called)).tool(tool).exit_on([called]).raise_tool_errors()
    }
}

/// What an agent [of a tool](Agent::of_tool) has in the place of a model: it calls the tool of this name with what was said last. For those who put such an
/// agent together by its parts, as agents' files do.
#[derive(Clone, Debug)]
pub struct Relay(String);

impl Relay {
    /// To the tool of this name, which ends the run and whose errors do ([`exit_on`](AgentBuilder::exit_on),
    /// [`raise_tool_errors`](AgentBuilder::raise_tool_errors)).
    ///
    /// ```
    /// use agent_core::Model;
    ///
    /// assert_eq!(agent_exec::Relay::to("a2a").info().name, "relay to a2a");
    /// ```
    pub fn to(tool: impl Into<String>) -> Self {
        Self(tool.into())
    }
}

#[async_trait]
impl Model for Relay {
    fn info(&self) -> ModelInfo {
        ModelInfo::new(format!("relay to {}", self.0))
    }

    async fn call(&self, req: ModelRequest) -> Result<ModelResponse> {
        let said: Vec<_> = req.messages.iter().rev().take_while(|m| matches!(m, Message::User(_))).collect();
        if let Some(Message::Tool(failed)) = req.messages.last() {
            return Err(Error::tool(Message::Tool(failed.clone()).text())); // a hook made a result of the error
        }
        let is_text = |message: &&Message| match message {
            Message::User(user) => user.parts().iter().all(|part| part.as_text().is_some()),
            _ => false,
        };
        if said.is_empty() || !said.iter().all(is_text) {
            let message = "an agent that is a tool takes messages of text, and at least one of them";
            return Err(Error::new(ErrorKind::InvalidRequest, message));
        }
        let texts: Vec<_> = said.into_iter().rev().map(Message::text).collect();
        let arguments = json!({"message": texts.join("\n\n")}).to_string();
        let call = Block::tool_call(format!("call-{}", req.cx.step()), self.0.as_str(), arguments);
        req.sink.collect(AssistantMessage::new(vec![call])).map(ModelResponse::new)
    }
}
