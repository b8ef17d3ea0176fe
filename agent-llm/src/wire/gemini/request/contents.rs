//! From contents to messages.

use agent_core::{AssistantMessage, Block, Message, SystemMessage, UserMessage};
use serde_json::value::RawValue;

use super::results;
use crate::wire::gemini::{
    contents::PARTS,
    fold::Fold,
    manner::Manner,
    part::{raw, user_part},
    rest::Rest,
    wrapper::{Wrapper, write_items},
};

/// A content, with its own JSON.
pub(super) struct Content<'a> {
    pub(super) json: &'a RawValue,
    pub(super) role: String,
    /// None if its parts are no list.
    pub(super) parts: Option<Wrapper<'a>>,
}

impl<'a> Content<'a> {
    fn read(json: &'a RawValue) -> Option<Self> {
        let fields: super::Fields<'a> = serde_json::from_str(json.get()).ok()?;
        let role = fields.get("role").and_then(|role| serde_json::from_str(role.get()).ok()).unwrap_or_default();
        Some(Self { json, role, parts: Wrapper::read(json.get(), &PARTS) })
    }

    fn is_model(&self) -> bool {
        self.role == "model"
    }

    fn items(&self) -> &[&'a RawValue] {
        self.parts.as_ref().map_or(&[], |parts| &parts.items)
    }
}

/// The messages of a conversation; none if the JSON is not a list of contents.
///
/// Contents of the model that follow each other are one message, since the results of all their calls follow the last.
pub(super) fn read(contents: &RawValue, manner: &Manner) -> Option<Vec<Message>> {
    let contents: Vec<&RawValue> = serde_json::from_str(contents.get()).ok()?;
    let contents: Vec<_> = contents.into_iter().map(Content::read).collect::<Option<_>>()?;
    let (mut messages, mut rest) = (Vec::new(), &contents[..]);
    while let Some(first) = rest.first() {
        if first.is_model() {
            let turn = rest.iter().take_while(|content| content.is_model()).count();
            let message = assistant(&rest[..turn], contents.len() - rest.len(), manner);
            rest = &rest[turn..];
            let results = results::read(&message, rest, manner);
            rest = &rest[results.contents..];
            messages.push(Message::Assistant(message));
            messages.extend(results.messages);
        } else {
            messages.push(spoken(first, manner));
            rest = &rest[1..];
        }
    }
    Some(messages)
}

/// What the model said; its first content stands at `at`, which names calls that have no id.
fn assistant(contents: &[Content<'_>], at: usize, manner: &Manner) -> AssistantMessage {
    let (mut fold, mut nobody) = (Fold::new(manner.origin.clone(), false), Vec::new());
    for content in contents {
        fold.cut(&mut nobody);
        content.items().iter().for_each(|part| fold.push(part, &at.to_string(), &mut nobody));
    }
    let mut blocks = fold.finish(&Rest::default(), &mut nobody);
    if blocks.is_empty() {
        blocks.push(Block::Other(raw("[]", &manner.origin))); // it said nothing, but it is there
    }
    let json: Vec<_> = contents.iter().map(|content| content.json).collect();
    let raw = match *json {
        [only] => raw(only.get(), &manner.origin),
        _ => {
            let mut list = b"[".to_vec();
            write_items(&json, &mut list);
            list.push(b']');
            raw(&String::from_utf8_lossy(&list), &manner.origin)
        }
    };
    AssistantMessage::from_provider(blocks, raw)
}

/// What somebody else than the model said. Whoever is not named is the user.
fn spoken(content: &Content<'_>, manner: &Manner) -> Message {
    let parts = content.items().iter().map(|part| user_part(part, &manner.origin)).collect();
    let raw = raw(content.json.get(), &manner.origin);
    match content.role.as_str() {
        "system" => Message::System(SystemMessage::new(parts).with_raw(raw)),
        _ => Message::User(UserMessage::new(parts).with_raw(raw)),
    }
}
