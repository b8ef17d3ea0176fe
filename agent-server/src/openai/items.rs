//! Items of a conversation from a client.

use serde_json::Value;

use crate::client_tools::CallResult;

/// End of a conversation from a client.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Items {
    /// Results of the client's tools that are not answered yet.
    pub(super) results: Vec<CallResult>,
    /// Items after the agent's last message.
    pub(super) newest: Vec<Value>,
}

impl Items {
    /// Reads the items of a conversation in either protocol.
    pub(super) fn of(conversation: Option<&Value>) -> Self {
        let mut items = Self::default();
        match conversation {
            Some(Value::String(text)) => {
                items.newest.push(serde_json::json!({"type": "message", "role": "user", "content": text}));
            }
            Some(Value::Array(all)) => all.iter().for_each(|item| items.push(item)),
            _ => {}
        }
        items
    }

    fn push(&mut self, item: &Value) {
        let kind = item["type"].as_str().unwrap_or("message");
        match (kind, item["role"].as_str()) {
            ("function_call_output", _) => self.result(&item["call_id"], &item["output"]),
            (_, Some("tool")) => self.result(&item["tool_call_id"], &item["content"]),
            ("message", Some("user" | "system" | "developer")) => self.newest.push(item.clone()),
            // An assistant item: everything before it is answered.
            _ => *self = Self::default(),
        }
    }

    fn result(&mut self, call: &Value, content: &Value) {
        self.newest.clear();
        let call = call.as_str().unwrap_or_default().to_owned();
        self.results.push(CallResult { call, text: text(content), is_error: false });
    }
}

/// Returns the text of a content: a string, or the text parts of an array.
fn text(content: &Value) -> String {
    match content {
        Value::Array(parts) => parts.iter().filter_map(|part| part["text"].as_str()).collect::<Vec<_>>().join("\n"),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Returns the id of an open call for the client.
pub(super) fn told_id(call: &str, run: &str) -> String {
    format!("{call}@{run}")
}

/// Splits such an id into call and run.
pub(super) fn read_id(told: &str) -> Option<(&str, &str)> {
    told.rsplit_once('@').filter(|(call, run)| !call.is_empty() && !run.is_empty())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn results_are_new_until_the_agent_has_said_something() {
        let result = json!({"role": "tool", "tool_call_id": "c1@r", "content": "17"});
        let call = json!({"role": "assistant", "tool_calls": []});
        let user = json!({"role": "user", "content": "and now?"});
        let of = |items: Value| Items::of(Some(&items));
        let open = of(json!([user, call, result, user]));
        assert_eq!((open.results[0].text.as_str(), open.newest.len()), ("17", 1));
        let answered = of(json!([user, call, result, {"role": "assistant", "content": "17"}, user]));
        assert_eq!((answered.results.len(), answered.newest.len()), (0, 1));
    }

    #[test]
    fn both_protocols_are_read() {
        let output = json!([{"type": "function_call_output", "call_id": "c1@r", "output": [{"type": "input_text", "text": "a"}]}]);
        assert_eq!(
            Items::of(Some(&output)).results[0],
            CallResult { call: "c1@r".into(), text: "a".into(), is_error: false }
        );
        assert_eq!(Items::of(Some(&json!("hi"))).newest[0]["content"], "hi");
        assert_eq!(read_id("c1@run.x"), Some(("c1", "run.x")));
        assert_eq!((read_id("c1"), read_id("@r")), (None, None));
    }
}
