//! Approval decisions in the form of each kind of question.

use agent::Question;
use serde_json::{Value, json};

/// Returns the answer that approves or rejects what a question is about.
///
/// ```
/// use agent::Question;
/// use serde_json::json;
///
/// let question = Question::new("c1/approval", "approval", json!({"tool": "refund"}));
/// let no = agent_server::decision(&question, false, Some("not today"));
/// assert_eq!(no, json!({"decision": "reject", "reason": "not today"}));
/// ```
pub fn decision(question: &Question, allowed: bool, reason: Option<&str>) -> Value {
    let one = match (allowed, reason) {
        (true, _) => json!({"decision": "approve"}),
        (false, None) => json!({"decision": "reject"}),
        (false, Some(reason)) => json!({"decision": "reject", "reason": reason}),
    };
    match question.kind.as_str() {
        "approval" => one,
        // One question about all calls of a message: one answer per call.
        "approvals" => {
            let calls = question.payload["calls"].as_array().into_iter().flatten();
            calls.filter_map(|call| Some((call["call_id"].as_str()?.to_owned(), one.clone()))).collect()
        }
        "in_doubt" => json!(if allowed { "did_not" } else { "unknown" }),
        _ => json!(allowed),
    }
}
