//! Questions of a run, as forms for the client's user.

use agent::{Question, run::Answer};
use serde_json::{Value, json};

/// Types of the fields that a form may have.
const SIMPLE: [&str; 5] = ["string", "number", "integer", "boolean", "array"];

/// Builds the request of a form for the question.
pub(super) fn request(session: &str, question: &Question) -> Value {
    let message = ["message", "question"].iter().find_map(|member| question.payload[member].as_str());
    let message = message.map_or_else(|| format!("{}: {}", question.kind, question.payload), str::to_owned);
    json!({"sessionId": session, "mode": "form", "message": message, "requestedSchema": form(question).0})
}

/// Converts the client's response into an answer; `None` if the user gave none.
pub(super) fn answer(question: &Question, told: Option<&Value>) -> Option<(String, Answer)> {
    let told = told?;
    if told["action"] != "accept" {
        return None;
    }
    let content = told.get("content").filter(|content| !content.is_null())?;
    let value = match form(question).1 {
        Form::Whole => content.clone(),
        Form::Field => content.get("answer")?.clone(),
        Form::Json => {
            let text = content.get("answer")?.as_str()?;
            serde_json::from_str(text).unwrap_or_else(|_| text.into())
        }
    };
    Some(question.answer(value))
}

/// Place of the answer in a form.
enum Form {
    /// The content is the answer.
    Whole,
    /// A field holds the answer.
    Field,
    /// A field holds the answer as JSON text, since forms do not support its schema.
    Json,
}

fn form(question: &Question) -> (Value, Form) {
    let field = |schema: Value| json!({"type": "object", "properties": {"answer": schema}, "required": ["answer"]});
    let is_simple = |schema: &Value| {
        schema["type"].as_str().is_some_and(|kind| SIMPLE.contains(&kind)) && schema.get("properties").is_none()
    };
    match question.schema.as_deref() {
        None => (field(json!({"type": "string", "title": "Answer"})), Form::Field),
        Some(schema) if is_simple(schema) => (field(schema.clone()), Form::Field),
        Some(schema) => {
            let fields = schema["properties"].as_object().filter(|_| schema["type"] == "object");
            if fields.is_some_and(|fields| !fields.is_empty() && fields.values().all(is_simple)) {
                return (schema.clone(), Form::Whole);
            }
            (field(json!({"type": "string", "title": "Answer", "description": schema.to_string()})), Form::Json)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_has_simple_fields_and_its_content_becomes_the_answer() {
        let of = |schema: Value| {
            let mut question = Question::new("q", "ask", json!({"message": "Which?"}));
            question.schema = (!schema.is_null()).then(|| Box::new(schema));
            question
        };
        let accepted = |content: Value| json!({"action": "accept", "content": content});
        for (schema, content, wanted) in [
            (Value::Null, json!({"answer": "red"}), json!("red")),
            (json!({"type": "integer"}), json!({"answer": 7}), json!(7)),
            (json!({"type": "object", "properties": {"a": {"type": "string"}}}), json!({"a": "b"}), json!({"a": "b"})),
            (json!({"anyOf": [{"type": "object"}]}), json!({"answer": "{\"a\": 1}"}), json!({"a": 1})),
        ] {
            let question = of(schema.clone());
            let asked = request("s", &question);
            assert_eq!(
                (&asked["mode"], &asked["message"], &asked["requestedSchema"]["type"]),
                (&json!("form"), &json!("Which?"), &json!("object"))
            );
            let (_, answer) = answer(&question, Some(&accepted(content))).expect("answered");
            assert_eq!(answer.value, wanted, "{schema}");
        }
        assert!(answer(&of(Value::Null), Some(&json!({"action": "decline"}))).is_none());
        assert!(answer(&of(Value::Null), Some(&json!({"action": "accept"}))).is_none());
    }
}
