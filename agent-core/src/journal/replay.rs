//! Start of a recorded run.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{Entry, EntryBody, Recording, SessionIndex, SessionView};
use crate::{history::History, message::Message, state::Answer};

impl Recording {
    /// Returns the start of the recorded run: the session's content, the steps already taken, the
    /// input messages and the state.
    pub fn beginning(&self) -> RecordedBeginning {
        let mut index = SessionIndex::default();
        self.past.iter().for_each(|entry| index.apply(entry));
        let mut before = index.view(&self.ids.agent_id);
        let (mut messages, mut anchored, mut state) = (Vec::new(), None, BTreeMap::new());
        let mut first = true;
        let mut answers = BTreeMap::new();
        let mut step = None;
        for entry in self.own() {
            match &entry.body {
                EntryBody::HistoryReplaced { reason, history, .. }
                    if reason.as_str() == "resumed" && step.is_none() =>
                {
                    anchored = Some(history.clone());
                }
                EntryBody::StateChanged { state: values, globals } if first => {
                    state = values.clone();
                    before.globals.extend(globals.iter().filter_map(|(k, v)| Some((k.clone(), v.clone()?))));
                }
                EntryBody::MessageAppended { message } if step.is_none() => messages.push(message.clone()),
                EntryBody::ModelFinished { step: taken, .. } => drop(step.get_or_insert(taken.saturating_sub(1))),
                EntryBody::Answered { id, answer, by, digest } => {
                    answers.insert(id.to_string(), Answer::recorded(answer, digest, by.as_deref()));
                }
                _ => {}
            }
            first = matches!(entry.body, EntryBody::RunStarted { .. } | EntryBody::HistoryReplaced { .. });
        }
        let history = anchored.unwrap_or_else(|| before.history.clone());
        RecordedBeginning {
            past: self.past.clone(),
            before,
            history,
            step: step.unwrap_or(0),
            messages,
            state,
            answers,
        }
    }
}

/// Start of a recorded run.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RecordedBeginning {
    /// Entries of the session before the run.
    pub past: Vec<Entry>,
    /// View of the session before the run.
    pub before: SessionView,
    /// Conversation before the input messages.
    pub history: History,
    /// Number of steps that the run had taken elsewhere.
    pub step: u32,
    /// Input messages.
    pub messages: Vec<Message>,
    /// Initial state.
    pub state: BTreeMap<String, Value>,
    /// All answers that the run received, by question id.
    pub answers: BTreeMap<String, Answer>,
}
