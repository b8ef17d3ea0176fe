//! Questions about tool calls, as permission requests to the client's user.

use agent::{Question, run::Answer};
use serde_json::{Value, json};

use crate::decision;

/// Options of the user.
const ALLOW: &str = "allow";
const REJECT: &str = "reject";

/// Builds the permission request.
pub(super) fn request(session: &str, question: &Question) -> Value {
    let payload = &question.payload;
    let call = payload["call_id"].as_str().or_else(|| question.id.split('/').next()).unwrap_or(&question.id);
    let title = payload["tool"].as_str().unwrap_or(&question.kind);
    json!({
        "sessionId": session,
        "toolCall": {"toolCallId": call, "title": title, "status": "pending", "rawInput": payload},
        "options": [
            {"optionId": ALLOW, "name": "Allow", "kind": "allow_once"},
            {"optionId": REJECT, "name": "Reject", "kind": "reject_once"},
        ],
    })
}

/// Converts the client's response into an answer; none if the user chose nothing.
pub(super) fn answer(question: &Question, told: Option<&Value>) -> Option<(String, Answer)> {
    let outcome = &told?["outcome"];
    let allowed = match (outcome["outcome"].as_str(), outcome["optionId"].as_str()) {
        (Some("selected"), Some(ALLOW)) => true,
        (Some("selected"), Some(REJECT)) => false,
        _ => return None,
    };
    Some(question.answer(decision(question, allowed, None)))
}
