//! Requests of an agent for input of a person.

use agent_core::{Ask, Result, ToolRequest};
use serde::Deserialize;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::Inner;

/// Kind of the question about a request for input. Its payload has the `agent`, its `message`, and
/// the `schema` of the requested object or the `url` that the person must open; the answer is
/// `{"action": "accept", "content": {..}}`, or an action `decline` or `cancel`.
pub const ACP_ELICITATION: &str = "acp_elicitation";

/// Request for input: a form, or an address.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct AskInput {
    mode: String,
    message: String,
    #[serde(default)]
    requested_schema: Option<Value>,
    #[serde(default)]
    url: Option<String>,
    #[serde(default)]
    tool_call_id: Option<String>,
}

/// Reads a request; `None` if its mode is unknown.
pub(super) fn read(params: Value) -> Option<AskInput> {
    let ask: AskInput = serde_json::from_value(params).ok()?;
    let is_known = match &*ask.mode {
        "form" => ask.requested_schema.is_some(),
        "url" => ask.url.is_some(),
        _ => false,
    };
    is_known.then_some(ask)
}

/// Returns the response, or an error that suspends the run until a person answers.
pub(super) fn answer(agent: &Inner, req: &ToolRequest, ask: &AskInput) -> Result<Value> {
    let mut payload = json!({"agent": agent.name, "message": ask.message});
    match &ask.url {
        Some(url) => payload["url"] = url.as_str().into(),
        None => payload["schema"] = json!(ask.requested_schema),
    }
    let content = ask.requested_schema.clone().unwrap_or_else(|| json!({"type": "object"}));
    let schema = json!({
        "type": "object",
        "properties": {"action": {"enum": ["accept", "decline", "cancel"]}, "content": content},
        "required": ["action"],
    });
    let about = json!([payload, ask.tool_call_id]).to_string();
    let nonce: String = Sha256::digest(about).iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    let given: Value = req.ask_with(Ask::new(ACP_ELICITATION, payload).nonce(nonce).schema(schema))?.parse()?;
    Ok(match given["action"].as_str() {
        Some("accept") if ask.url.is_some() => json!({"action": "accept"}),
        Some("accept") => json!({"action": "accept", "content": given["content"]}),
        Some("decline") => json!({"action": "decline"}),
        _ => json!({"action": "cancel"}),
    })
}
