//! A model without a provider: it looks up the order that a message names, and refunds it if the
//! customer wants that.

use agent::{AssistantMessage, Block, Model, core::ModelInfo, prelude::*};
use serde_json::{Value, json};

/// Answers by fixed rules.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Script;

#[async_trait]
impl Model for Script {
    fn info(&self) -> ModelInfo {
        ModelInfo::new("script")
    }

    async fn call(&self, req: ModelRequest) -> Result<ModelResponse> {
        let messages: Vec<&Message> = req.messages.iter().collect();
        let newest = messages.iter().rposition(|message| message.role() == "user").unwrap_or(0);
        let said = messages.get(newest).map(|message| message.text()).unwrap_or_default();
        let results: Vec<String> = messages[newest..].iter().filter(|m| m.role() == "tool").map(|m| m.text()).collect();
        let id = format!("call-{}", messages.len());
        let answer = match (results.as_slice(), order_in(&said)) {
            ([], None) => AssistantMessage::from("Which order is it? Its number looks like A-17."),
            ([], Some(number)) => call(id, "look_up_order", &json!({"number": number})),
            ([_], Some(number)) if wants_refund(&said) => {
                call(id, "refund", &json!({"number": number, "reason": said}))
            }
            (results, _) => AssistantMessage::from(results.join("\n").as_str()),
        };
        req.sink.collect(answer).map(ModelResponse::new)
    }
}

fn call(id: String, tool: &str, arguments: &Value) -> AssistantMessage {
    AssistantMessage::new(vec![Block::tool_call(id, tool, arguments.to_string())])
}

/// The first word that has the form of an order number.
fn order_in(text: &str) -> Option<&str> {
    let is_number =
        |word: &&str| matches!(word.split_once('-'), Some((a, b)) if !a.is_empty() && b.parse::<u32>().is_ok());
    text.split(|c: char| !c.is_ascii_alphanumeric() && c != '-').find(is_number)
}

fn wants_refund(text: &str) -> bool {
    let text = text.to_lowercase();
    ["refund", "broken", "money back"].iter().any(|word| text.contains(word))
}
