//! Changes between model calls.

use std::{collections::HashMap, sync::Arc};

use agent::{ToolOutput, journal::EntryBody};
use serde_json::{Value, json};

use super::Recorded;
use crate::output::{count, line};

/// Input of a step's model call.
#[derive(Debug)]
pub(super) struct Step {
    step: u32,
    /// New and changed messages.
    news: Vec<String>,
    /// Tokens of the prompt, as the provider counted.
    prompt: u64,
    /// Tokens that its cache served.
    cached: u64,
}

impl Step {
    pub(super) fn to_json(&self) -> Value {
        json!({"step": self.step, "news": self.news, "prompt_tokens": self.prompt, "cached_tokens": self.cached})
    }
}

pub(super) fn text(recorded: &Recorded) -> String {
    let mut text = String::new();
    let mut before = 0;
    for step in steps(recorded) {
        let grown = i128::from(step.prompt) - i128::from(before);
        before = step.prompt;
        let tokens = format!("{} tokens ({grown:+}), {} from the cache", count(step.prompt), count(step.cached));
        text.push_str(&format!("call {}: {tokens}\n", step.step));
        for news in &step.news {
            text.push_str(&format!("  {}\n", line(news, 160)));
        }
    }
    text.push('\n');
    text
}

/// The calls of the run at the top; those of child runs are calls of others.
pub(super) fn steps(recorded: &Recorded) -> Vec<Step> {
    let (mut steps, mut news) = (Vec::new(), Vec::new());
    let mut outputs: HashMap<Arc<str>, ToolOutput> = HashMap::new();
    for entry in recorded.entries.iter().filter(|entry| entry.run == recorded.run) {
        match &entry.body {
            EntryBody::MessageAppended { message } => news.push(format!("+ {}: {}", message.role(), message.text())),
            EntryBody::HistoryReplaced { reason, before, history } if reason.as_str() != "resumed" => {
                news.push(format!(
                    "~ the conversation was replaced ({reason}): {before} messages, now {}",
                    history.len()
                ));
            }
            EntryBody::StateChanged { state, globals } => {
                let keys: Vec<_> = state.keys().chain(globals.keys()).map(String::as_str).collect();
                news.push(format!("~ state: {}", keys.join(", ")));
            }
            EntryBody::ModelFinished { step, response } => {
                let usage = response.usage;
                let news = std::mem::take(&mut news);
                steps.push(Step { step: *step, news, prompt: usage.prompt(), cached: usage.cached });
            }
            EntryBody::ModelAccepted { message: changed, .. } => {
                let said = if changed.is_some() { "assistant, as a hook left it" } else { "assistant, as it answered" };
                news.push(format!("+ {said}"));
            }
            EntryBody::ToolFinished { call_id, output } => drop(outputs.insert(call_id.clone(), output.clone())),
            EntryBody::ToolAnswered { call_id, name, output } => {
                let finished = outputs.remove(call_id);
                let output = output.as_ref().or(finished.as_ref()).map_or_else(String::new, ToolOutput::to_text);
                news.push(format!("+ result of {name}: {output}"));
            }
            _ => {}
        }
    }
    steps
}
