//! Answers to questions of members, from a line of text.

use agent::{Error, Result, run::Question};
use serde_json::{Value, json};

use crate::run::{decision, json_or_text};

/// The answer that a line of text means for a question.
///
/// # Errors
/// If the question takes yes or no, and the text is neither.
pub(super) fn answer(question: &Question, text: &str) -> Result<Value> {
    let text = text.trim();
    match question.kind.as_str() {
        "approval" | "approvals" | "in_doubt" | "confirm" | "breakpoint" => {
            let (word, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
            match word {
                "y" | "yes" => Ok(decision(question, true, None)),
                "n" | "no" => Ok(decision(question, false, Some(rest.trim()).filter(|reason| !reason.is_empty()))),
                _ => Err(Error::config("answer yes or no, and after no the reason if you like")),
            }
        }
        "ask_user" => Ok(match serde_json::from_str::<Value>(text) {
            Ok(list @ Value::Array(_)) => list,
            _ => json!([text]),
        }),
        _ => Ok(json_or_text(text)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question(kind: &str) -> Question {
        serde_json::from_value(json!({"id": "c1/q", "kind": kind, "payload": {}})).expect("a question")
    }

    #[test]
    fn a_line_answers_each_kind_of_question() {
        assert_eq!(answer(&question("ask_user"), "red").expect("a text"), json!(["red"]));
        assert_eq!(answer(&question("ask_user"), "[\"red\", 2]").expect("a list"), json!(["red", 2]));
        assert_eq!(answer(&question("may_i"), "true").expect("JSON"), json!(true));
        assert_eq!(answer(&question("may_i"), "perhaps").expect("a text"), json!("perhaps"));
        let approved = answer(&question("confirm"), "yes").expect("a decision");
        assert_ne!(approved, answer(&question("confirm"), "no not now").expect("a decision"));
        let unclear = answer(&question("approval"), "perhaps").expect_err("neither");
        assert!(unclear.message().starts_with("answer yes or no"), "{unclear}");
    }
}
