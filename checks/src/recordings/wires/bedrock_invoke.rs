//! Claude over Amazon Bedrock's InvokeModel: Anthropic's messages in another envelope.

use agent::{
    Result,
    llm::{AnthropicCodec, Providers, RequestReader},
};
use serde_json::Value;

use super::{Said, Wire, anthropic_messages::AnthropicMessages};
use crate::recordings::{Exchange, Frames};

#[derive(Debug)]
pub(super) struct BedrockInvoke;

impl Wire for BedrockInvoke {
    fn api(&self) -> &'static str {
        "bedrock-invoke"
    }

    fn codec(&self, exchange: &Exchange) -> Result<Box<dyn RequestReader>> {
        let bedrock = Providers::builtin().find("bedrock")?.clone().with("region", "us-east-1");
        let profile = bedrock.anthropic.unwrap_or_default();
        Ok(Box::new(AnthropicCodec::new(exchange.model(), profile)?))
    }

    fn foreign(&self, exchange: &Exchange) -> Option<&'static str> {
        let is_claude = exchange.request.path.contains("claude")
            || exchange.request.json.as_ref().is_some_and(|body| body.get("anthropic_version").is_some());
        let is_older = exchange.request.json.as_ref().is_some_and(|body| body.get("prompt").is_some());
        match (is_claude, is_older) {
            (false, _) => Some("another maker's own protocol inside InvokeModel"),
            (true, true) => Some("completions of texts, Claude's older protocol"),
            (true, false) => None,
        }
    }

    fn is_error(&self, json: &Value) -> bool {
        AnthropicMessages.is_error(json)
    }

    fn is_broken_off(&self, frames: &Frames) -> bool {
        AnthropicMessages.is_broken_off(frames)
    }

    fn is_complete(&self, frames: &Frames) -> bool {
        AnthropicMessages.is_complete(frames)
    }

    fn whole(&self, frames: &[Value]) -> Value {
        AnthropicMessages.whole(frames)
    }

    fn turn(&self, whole: &Value) -> Option<Value> {
        AnthropicMessages.turn(whole)
    }

    fn said(&self, turn: &Value) -> Said {
        AnthropicMessages.said(turn)
    }

    fn sent_back(&self, request: &Value) -> Option<Value> {
        AnthropicMessages.sent_back(request)
    }

    fn beside(&self, whole: &Value) -> Value {
        AnthropicMessages.beside(whole)
    }

    fn tokens(&self, whole: &Value) -> Option<u64> {
        AnthropicMessages.tokens(whole)
    }

    fn finish<'a>(&self, whole: &'a Value) -> &'a str {
        AnthropicMessages.finish(whole)
    }

    fn arguments_are_json(&self) -> bool {
        true
    }
}
