//! The transfer tools, and the middleware that keeps their rules.

use std::sync::Arc;

use agent_core::{
    Effect, Error, EventKind, Flow, History, Message, Middleware, ModelRequest, ModelResponse, Result, RunCx, Tool,
    ToolBatch, ToolOptions, ToolOutput, ToolRequest, ToolSpec, async_trait,
};
use serde_json::json;

use super::filter::HistoryFilter;

const PREFIX: &str = "transfer_to_";

/// The tool that transfers to the agent `name`.
pub(super) fn tool_name(name: &str) -> String {
    format!("{PREFIX}{name}")
}

/// The newest transfer of a conversation.
struct Newest {
    agent: Arc<str>,
    /// Number of messages up to the results of the message that transferred.
    len: usize,
}

/// Returns the newest transfer for which `wanted` holds. Of the calls of one message, the first
/// transfer counts.
fn newest(history: &History, wanted: impl Fn(&str) -> bool) -> Option<Newest> {
    let messages: Vec<&Message> = history.iter().collect();
    let mut end = messages.len();
    while end > 0 {
        let results = messages[..end].iter().rev().map_while(|m| m.as_tool()).count();
        let turn = messages[end - results..end].iter().filter_map(|m| m.as_tool());
        let agent = turn.filter(|result| !result.is_error()).find_map(|result| result.name().strip_prefix(PREFIX));
        if let Some(agent) = agent.filter(|agent| wanted(agent)) {
            return Some(Newest { agent: agent.into(), len: end });
        }
        end -= results.max(1);
    }
    None
}

/// Returns the agent that the conversation's last message transfers to.
pub(super) fn target(history: &History) -> Option<Arc<str>> {
    let newest = newest(history, |_| true)?;
    (newest.len == history.len()).then_some(newest.agent)
}

/// Tool that transfers the conversation to one agent.
pub(super) struct Transfer {
    agent: Arc<str>,
    description: String,
}

impl Transfer {
    pub(super) fn new(agent: &str, description: &str) -> Result<Self> {
        let fits = agent.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'));
        if !fits || tool_name(agent).len() > 64 {
            return Err(Error::config(format!(
                "agent '{agent}' cannot be handed over to: its name must be at most 52 letters, digits, '_' and '-'"
            )));
        }
        Ok(Self { agent: agent.into(), description: description.to_owned() })
    }
}

#[async_trait]
impl Tool for Transfer {
    fn spec(&self) -> ToolSpec {
        let about = format!(
            "Transfers the conversation to the agent '{}', which answers the user from then on. {}",
            self.agent, self.description
        );
        let parameters = json!({
            "type": "object",
            "properties": {"reason": {"type": "string", "description": "Reason of the transfer, in one sentence."}},
        });
        ToolSpec::new(tool_name(&self.agent), about, parameters)
    }

    fn options(&self) -> ToolOptions {
        ToolOptions::default().effect(Effect::Pure)
    }

    async fn call(&self, req: ToolRequest) -> Result<ToolOutput> {
        let value = json!({"from": req.cx.ids().agent, "to": self.agent, "reason": req.args["reason"]});
        req.cx.emit(EventKind::Custom { name: "handoff".into(), value });
        Ok(ToolOutput::text(format!("The conversation is transferred to '{}'.", self.agent)))
    }
}

/// Allows one transfer per message, and applies the filter of the agent's history.
pub(super) struct TransferRules {
    agent: Arc<str>,
    filter: Option<HistoryFilter>,
}

impl TransferRules {
    pub(super) fn new(agent: &str, filter: Option<HistoryFilter>) -> Self {
        Self { agent: agent.into(), filter }
    }

    /// Returns the conversation as the model sees it: filtered up to its newest transfer to this agent.
    fn filtered(&self, history: &History) -> Result<Option<History>> {
        let Some(filter) = &self.filter else { return Ok(None) };
        let Some(transfer) = newest(history, |agent| *agent == *self.agent) else { return Ok(None) };
        let before = History::from_messages(history.iter().take(transfer.len).cloned())?;
        let since = history.iter().skip(transfer.len).cloned();
        Ok(Some(History::from_messages(filter(&before)?.iter().cloned().chain(since))?))
    }
}

#[async_trait]
impl Middleware for TransferRules {
    fn name(&self) -> &str {
        "handoff"
    }

    async fn before_model(&self, _: &RunCx, req: &mut ModelRequest) -> Result<Flow<ModelResponse>> {
        if let Some(history) = self.filtered(&req.messages)? {
            req.messages = history;
        }
        Ok(Flow::Continue)
    }

    async fn before_tools(&self, _: &RunCx, batch: &mut ToolBatch) -> Result<()> {
        let transfers = batch.calls.iter_mut().filter(|call| call.request.call.name.starts_with(PREFIX));
        for call in transfers.skip(1) {
            // Not an error: a failed transfer would let the run go on.
            call.answer(ToolOutput::text("Ignored: another transfer of this message came first."));
        }
        Ok(())
    }
}
