//! Checks of model responses.

use agent_core::{AssistantMessage, Block, ModelResponse, Result, RunCx};

use super::{GuardStage, GuardSubject, Guardrails};

impl Guardrails {
    /// Runs the guards on a response's text; returns true if it changed.
    pub(super) async fn check_output(&self, cx: &RunCx, response: &mut ModelResponse) -> Result<bool> {
        if !response.message.has_text() || !self.checks(GuardStage::Output) {
            return Ok(false);
        }
        let text = response.message.text();
        let subject = GuardSubject { stage: GuardStage::Output, text, tool: None };
        match self.ask(cx, self.at(GuardStage::Output), "output", subject).await? {
            Ok(None) => return Ok(false),
            Ok(Some(text)) => response.message = said_instead(&response.message, text),
            Err(stopped) => {
                let stopped = stopped.into_response();
                (response.message, response.finish, response.verdict) =
                    (stopped.message, stopped.finish, stopped.verdict);
            }
        }
        response.details.clear(); // they may contain the replaced text
        Ok(true)
    }
}

/// Returns the message with one text in place of all its texts, and without the provider's raw
/// JSON.
fn said_instead(message: &AssistantMessage, text: String) -> AssistantMessage {
    let mut text = Some(Block::text(text));
    let new = message.blocks().iter().filter_map(|block| match block {
        Block::Text(_) => text.take(),
        Block::Reasoning(_) => None, // its signature is only valid for the original response
        other => Some(other.clone()),
    });
    AssistantMessage::new(new.collect())
}
