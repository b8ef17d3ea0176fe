//! Answers to the interrupts of a suspended run.

use agent::{Checkpoint, Question, run::Answer};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{decision, error::ApiError};

/// Answer to one interrupt.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Resume {
    pub(crate) interrupt_id: String,
    pub(crate) status: ResumeStatus,
    #[serde(default)]
    pub(crate) payload: Value,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ResumeStatus {
    Resolved,
    Cancelled,
}

/// Interrupt id of a paused run, which waits only to be resumed.
pub(crate) const PAUSED: &str = "paused";

/// Returns the interrupt id of a question: its digest, so that an answer to an earlier question, or
/// to the same one with other arguments, does not match.
pub fn interrupt_id(question: &Question) -> &str {
    if question.digest.is_empty() { &question.id } else { &question.digest }
}

/// Converts resumptions into answers by question id. The run checks the form of each answer.
///
/// # Errors
/// 409 for an interrupt that is not open, or cannot be cancelled.
pub(crate) fn answers(open: &Checkpoint, resume: &[Resume]) -> Result<Vec<(String, Answer)>, ApiError> {
    let mut answers = Vec::new();
    for given in resume.iter().filter(|given| given.interrupt_id != PAUSED) {
        let question = open.questions.iter().find(|question| interrupt_id(question) == given.interrupt_id);
        let Some(question) = question else {
            let message = "the interrupt is not open: it was answered, or replaced by another question";
            return Err(ApiError::conflict("answer_refused", message));
        };
        let value = match given.status {
            ResumeStatus::Resolved => answer(question, &given.payload),
            ResumeStatus::Cancelled => cancelled(question)?,
        };
        answers.push(question.answer(value));
    }
    Ok(answers)
}

/// Returns those that are about open interrupts.
pub(crate) fn open_ones(open: &Checkpoint, decided: &[Resume]) -> Vec<Resume> {
    let is_open = |given: &&Resume| open.questions.iter().any(|question| interrupt_id(question) == given.interrupt_id);
    decided.iter().filter(is_open).cloned().collect()
}

/// Converts a payload. Front ends send `{"approved": ..}` for approvals, independently of the
/// question's schema.
fn answer(question: &Question, payload: &Value) -> Value {
    let approved = payload.get("approved").and_then(Value::as_bool).filter(|_| is_yes_or_no(question));
    match (approved, payload.get("editedArgs")) {
        (None, _) => payload.clone(),
        (Some(true), Some(arguments)) => json!({"decision": "edit", "arguments": arguments}),
        (Some(approved), _) => decision(question, approved, payload.get("reason").and_then(Value::as_str)),
    }
}

/// True if the question can be answered by yes or no.
pub(crate) fn is_yes_or_no(question: &Question) -> bool {
    matches!(question.kind.as_str(), "approval" | "approvals" | "in_doubt")
}

/// Returns the default answer of a question that was cancelled.
fn cancelled(question: &Question) -> Result<Value, ApiError> {
    question.default.as_deref().cloned().ok_or_else(|| {
        let message = format!("the question of kind '{}' cannot be cancelled: answer it", question.kind);
        ApiError::conflict("answer_refused", message)
    })
}

#[cfg(test)]
mod tests {
    use agent::run::RunIds;

    use super::*;

    fn resume(id: &str, status: ResumeStatus, payload: Value) -> Vec<Resume> {
        vec![Resume { interrupt_id: id.to_owned(), status, payload }]
    }

    fn open(questions: Vec<Question>) -> Checkpoint {
        let mut open = Checkpoint::new(RunIds::root("a", "s"), "");
        open.questions = questions;
        open
    }

    #[test]
    fn an_answer_is_to_the_question_as_it_was_asked_and_to_none_other() {
        let mut question = Question::new("c1/approval", "approval", json!({}));
        question.digest = "run.attempt.hash".to_owned();
        let open = open(vec![question]);
        let given = resume("run.attempt.hash", ResumeStatus::Resolved, json!({"approved": false, "reason": "no"}));
        let taken = answers(&open, &given).expect("it is asked");
        assert_eq!(taken[0].0, "c1/approval");
        assert_eq!(taken[0].1.value, json!({"decision": "reject", "reason": "no"}));
        assert_eq!(taken[0].1.digest, "run.attempt.hash");
        for id in ["c1/approval", "run.attempt.other", ""] {
            assert!(answers(&open, &resume(id, ResumeStatus::Resolved, json!({"approved": true}))).is_err(), "{id}");
        }
    }

    #[test]
    fn what_is_cancelled_takes_what_holds_without_an_answer() {
        let mut with = Question::new("with", "approval", json!({}));
        with.default = Some(Box::new(json!({"decision": "reject"})));
        let without = Question::new("without", "ask_user", json!({}));
        let open = open(vec![with, without]);
        let taken = answers(&open, &resume("with", ResumeStatus::Cancelled, Value::Null)).expect("it has a default");
        assert_eq!(taken[0].1.value, json!({"decision": "reject"}));
        let refused = answers(&open, &resume("without", ResumeStatus::Cancelled, Value::Null));
        assert!(refused.expect_err("it has none").message().contains("cannot be cancelled"));
    }
}
