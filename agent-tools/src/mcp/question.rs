//! Questions of a server to people.

use agent_core::{Ask, Result};
use rmcp::model::{ElicitRequestParams, ElicitResult, ElicitationAction};
use serde::Deserialize;
use serde_json::{Value, json};

use super::calls::Call;

/// The kind of a question that a server asks.
pub const ELICITATION: &str = "mcp_elicitation";

#[derive(Deserialize)]
struct Given {
    action: ElicitationAction,
    content: Option<Value>,
}

/// The answer to a question of the server `name`, or an error that suspends the run until there is one.
pub(super) fn ask(name: &str, call: &Call, request: &ElicitRequestParams) -> Result<ElicitResult> {
    let (payload, content) = match request {
        ElicitRequestParams::FormElicitationParams { message, requested_schema, .. } => {
            (json!({"server": name, "message": message, "schema": requested_schema}), json!(requested_schema))
        }
        ElicitRequestParams::UrlElicitationParams { message, url, .. } => {
            (json!({"server": name, "message": message, "url": url}), json!({"type": "object"}))
        }
        _ => return Ok(ElicitResult::new(ElicitationAction::Decline)),
    };
    let schema = json!({
        "type": "object",
        "properties": {"action": {"enum": ["accept", "decline", "cancel"]}, "content": content},
        "required": ["action"],
    });
    let nonce = call.name_of(&payload)?;
    let ask = Ask::new(ELICITATION, payload).nonce(nonce).schema(schema.clone());
    let given: Given = call.req.ask_with(ask)?.parse()?;
    let mut result = ElicitResult::new(given.action.clone());
    if given.action == ElicitationAction::Accept {
        let defaults = schema["properties"]["content"]["properties"].as_object();
        let mut content = given.content.unwrap_or_else(|| json!({}));
        for (field, about) in defaults.into_iter().flatten() {
            if let (Some(default), None) = (about.get("default"), content.get(field)) {
                content[field] = default.clone();
            }
        }
        result.content = Some(content);
    }
    Ok(result)
}
