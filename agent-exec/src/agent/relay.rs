//! An agent that wraps a single tool.

use agent_core::{
    AssistantMessage, Block, Error, ErrorKind, Message, Model, ModelInfo, ModelRequest, ModelResponse, Result, Tool,
    async_trait,
};
use serde_json::json;

use super::{Agent, AgentBuilder};

impl Agent {
    /// Returns a builder for an agent without a language model: each message becomes the argument
    /// `message` of a call to `tool`, whose result is the answer. The agent supports everything
    /// that other agents do: journal and recovery, questions, budgets, deadlines, hooks around the
    /// call, and use as a sub-agent. It turns tools that talk to remote agents into agents.
    ///
    /// No model is called, so no model call is charged to a budget; each message counts as one tool
    /// call. A failing tool fails the run with its own error. Messages with content other than text
    /// are refused.
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

/// The model of an agent [of a tool](Agent::of_tool): calls the tool of this name with the last
/// user messages. For code that builds such an agent from its parts, as agent definition files do.
#[derive(Clone, Debug)]
pub struct Relay(String);

impl Relay {
    /// Relays to the tool of this name. Add it to [`exit_on`](AgentBuilder::exit_on) and set
    /// [`raise_tool_errors`](AgentBuilder::raise_tool_errors), so that its result and its errors
    /// end the run.
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
            // a hook turned the error into a result
            return Err(Error::tool(Message::Tool(failed.clone()).text()));
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
