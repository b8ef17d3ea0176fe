//! The unanswered part of a conversation.

use agent_core::{AssistantMessage, History, Message, ToolMessage};
use serde_json::Value;

/// Everything since the last answer: the question, and the tools' results.
#[derive(Debug)]
pub(super) struct Exchange {
    pub(super) question: String,
    /// Earlier questions, newest first: a short question may depend on them.
    pub(super) earlier: Vec<String>,
    /// Number of messages with calls so far.
    pub(super) rounds: usize,
    pub(super) done: Vec<Done>,
}

/// A finished call.
#[derive(Debug)]
pub(super) struct Done {
    pub(super) tool: String,
    pub(super) args: Value,
    pub(super) text: String,
    pub(super) failed: bool,
}

impl Exchange {
    pub(super) fn of(history: &History) -> Self {
        let messages: Vec<&Message> = history.iter().collect();
        let is_user = |m: &&Message| matches!(m, Message::User(_));
        let is_answer = |m: &&Message| m.as_assistant().is_some_and(|m| !m.has_calls());
        let asked_last = messages.iter().rposition(is_user).unwrap_or(0);
        let after_answer = messages.iter().rposition(is_answer).map_or(0, |at| at + 1);
        // An answer that was rejected without a comment is repeated; steering messages belong to
        // the same question.
        let (before, now) = messages.split_at(after_answer.min(asked_last));
        let asked = |part: &[&Message]| part.iter().filter(|m| is_user(m)).map(|m| m.text()).collect::<Vec<_>>();
        Self {
            question: asked(now).join("\n"),
            earlier: asked(before).into_iter().rev().collect(),
            rounds: now.iter().filter(|m| m.as_assistant().is_some_and(AssistantMessage::has_calls)).count(),
            done: done(now),
        }
    }
}

fn done(messages: &[&Message]) -> Vec<Done> {
    let mut done = Vec::new();
    let mut calls = Vec::new();
    for message in messages {
        match message {
            Message::Assistant(m) => calls = m.calls().collect(),
            Message::Tool(result) => {
                let call = calls.iter().find(|call| *call.id == *result.call_id());
                let args = call.and_then(|call| serde_json::from_str(&call.arguments).ok()).unwrap_or_default();
                done.push(Done::new(result, args, message.text()));
            }
            _ => {}
        }
    }
    done
}

impl Done {
    fn new(result: &ToolMessage, args: Value, text: String) -> Self {
        Self { tool: result.name().to_owned(), args, text, failed: result.is_error() }
    }

    /// Returns the argument `name`, if it is a string.
    pub(super) fn arg(&self, name: &str) -> Option<&str> {
        self.args.get(name).and_then(Value::as_str)
    }
}

#[cfg(test)]
mod tests {
    use agent_core::Block;

    use super::*;

    fn turn(history: &mut History, id: &str) {
        let calls = AssistantMessage::new(vec![Block::tool_call(id, "look", r#"{"at":"x"}"#)]);
        history.push_turn(calls, vec![ToolMessage::text(id, "look", "seen", false)]).expect("paired");
    }

    #[test]
    fn what_was_answered_is_over() {
        let mut history = History::default();
        history.push(Message::user("first")).expect("paired");
        turn(&mut history, "1");
        history.push(Message::assistant("answer")).expect("paired");
        history.push(Message::user("second")).expect("paired");
        turn(&mut history, "2");
        let exchange = Exchange::of(&history);
        assert_eq!((exchange.question.as_str(), exchange.rounds, exchange.done.len()), ("second", 1, 1));
        assert_eq!((exchange.earlier[0].as_str(), exchange.done[0].arg("at")), ("first", Some("x")));
    }

    #[test]
    fn a_message_that_steers_adds_to_the_question_and_does_not_begin_anew() {
        let mut history = History::default();
        history.push(Message::user("first")).expect("paired");
        turn(&mut history, "1");
        history.push(Message::user("also this")).expect("paired");
        let exchange = Exchange::of(&history);
        assert_eq!((exchange.question.as_str(), exchange.rounds), ("first\nalso this", 1));
    }

    #[test]
    fn an_answer_that_was_not_accepted_is_given_again_without_calling_anew() {
        let mut history = History::default();
        history.push(Message::user("first")).expect("paired");
        turn(&mut history, "1");
        history.push(Message::assistant("answer")).expect("paired");
        assert_eq!(Exchange::of(&history).rounds, 1);
    }
}
