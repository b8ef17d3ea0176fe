//! Reading conversations of two roles from requests.

use std::{collections::BTreeMap, sync::Arc};

use agent_core::{
    AssistantMessage, Block, History, Message, Part, ToolMessage, UserMessage,
    message::{Origin, Raw},
};
use serde_json::value::RawValue;

/// A conversation, as far as it was read.
pub(crate) struct Reading<'a> {
    pub(crate) origin: &'a Origin,
    messages: Vec<Message>,
    /// The tools of the calls so far, by their ids.
    names: BTreeMap<Arc<str>, Arc<str>>,
}

/// A result in a message: the id of its call, what it says, and whether it failed.
pub(crate) type Answer = (String, Vec<Part>, bool);

impl<'a> Reading<'a> {
    pub(crate) fn new(origin: &'a Origin) -> Self {
        Self { origin, messages: Vec::new(), names: BTreeMap::new() }
    }

    /// What was read, repaired if no provider would take it.
    pub(crate) fn history(self) -> History {
        History::import(self.messages).0
    }

    pub(crate) fn push(&mut self, message: Message) {
        self.messages.push(message);
    }

    /// The assistant's next message, and its blocks. After one with calls, it is the same turn: only then do the results follow.
    pub(crate) fn assistant(&mut self, json: &RawValue, mut blocks: Vec<Block>) -> serde_json::Result<()> {
        let mut as_sent = raw(json, self.origin);
        if let Some(Message::Assistant(before)) =
            self.messages.pop_if(|m| m.as_assistant().is_some_and(AssistantMessage::has_calls))
        {
            let said = before.raw().map_or("", Raw::json);
            let said = said.strip_prefix('[').and_then(|said| said.strip_suffix(']')).unwrap_or(said);
            as_sent = Raw::parse(self.origin.clone(), format!("[{said},{}]", json.get()))?;
            blocks = before.blocks().iter().cloned().chain(blocks).collect();
        }
        let message = AssistantMessage::from_provider(blocks, as_sent);
        self.names.extend(message.calls().map(|call| (call.id.clone(), call.name.clone())));
        self.messages.push(Message::Assistant(message));
        Ok(())
    }

    /// A message with results, each block an answer or another part: what else it holds follows them in a message without JSON of
    /// its own, which is therefore written in the same message again.
    pub(crate) fn answers(&mut self, blocks: &[&RawValue], read: impl Fn(&RawValue) -> Result<Answer, Part>) {
        let mut others = Vec::new();
        for json in blocks {
            match read(json) {
                Ok((id, parts, is_error)) => {
                    let name = self.names.get(&*id).cloned().unwrap_or_default();
                    let result = ToolMessage::new(id, name, parts.into(), is_error);
                    self.messages.push(Message::Tool(result.with_raw(raw(json, self.origin))));
                }
                Err(part) => others.push(part),
            }
        }
        if !others.is_empty() {
            self.messages.push(Message::User(UserMessage::new(others)));
        }
    }
}

/// The part with the JSON that it was read from.
pub(crate) fn with_raw(mut part: Part, json: &RawValue, origin: &Origin) -> Part {
    match &mut part {
        Part::Text(text) => text.raw = Some(raw(json, origin)),
        Part::Image(media) | Part::Document(media) => media.raw = Some(raw(json, origin)),
        _ => {}
    }
    part
}

pub(crate) fn raw(json: &RawValue, origin: &Origin) -> Raw {
    Raw::new(origin.clone(), json.to_owned())
}
