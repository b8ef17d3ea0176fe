//! The redacted view of a conversation.

use std::sync::Mutex;

use agent_core::{History, Message, Result, ToolMessage};

use crate::scan::{Rewrite, message};

/// The view of one run; each message is redacted once.
#[derive(Default)]
pub(super) struct View(Mutex<Shown>);

#[derive(Default)]
struct Shown {
    of: History,
    view: History,
}

impl View {
    /// Returns the redacted conversation. Messages that were redacted before are reused unchanged.
    pub(super) fn of(&self, rewrite: &dyn Rewrite, history: &History) -> Result<History> {
        let mut shown = self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if !history.continues(&shown.of) {
            *shown = Shown::default();
        }
        let mut view = shown.view.clone();
        let new = history.since(&shown.of).into_iter().flatten();
        let mut new = new.map(|m| Ok(message(rewrite, m)?.unwrap_or_else(|| m.clone()))).peekable();
        while let Some(next) = new.next() {
            match next? {
                Message::Assistant(said) if said.has_calls() => {
                    let is_result = |m: &Result<Message>| m.as_ref().is_ok_and(|m| m.as_tool().is_some());
                    let mut results: Vec<ToolMessage> = Vec::new();
                    while let Some(result) = new.next_if(is_result) {
                        results.extend(result?.as_tool().cloned());
                    }
                    view.push_turn(said, results)?;
                }
                other => view.push(other)?,
            }
        }
        drop(new);
        *shown = Shown { of: history.clone(), view: view.clone() };
        Ok(view)
    }
}
