//! Variants of a recorded conversation.

use agent::{
    AssistantMessage, Block, Message, Part,
    core::{History, Media, ToolMessage, message::MediaSource},
    llm::{ParsedRequest, RequestReader},
};
use base64::{Engine, prelude::BASE64_STANDARD};

use super::listed::PNG;
use crate::recordings::{Exchange, Wire, response};

/// Recorded request with its response.
pub(super) struct Conversation {
    asked: ParsedRequest,
    answer: Option<AssistantMessage>,
}

impl Conversation {
    /// Returns `None` if the request was not recorded, was rejected by its provider, or belongs to
    /// another protocol.
    pub(super) fn of(exchange: &Exchange, wire: &dyn Wire, codec: &dyn RequestReader) -> Option<Self> {
        let sent = exchange.request.json.as_ref()?;
        if wire.foreign(exchange).is_some() || matches!(exchange.status().as_u16(), 400 | 422) {
            return None;
        }
        let asked = codec.decode_request(sent.to_string().as_bytes()).ok()?;
        let answer = exchange.status().is_success().then(|| response(codec, exchange).ok()).flatten();
        Some(Self { asked, answer: answer.map(|answer| answer.message).filter(AssistantMessage::has_content) })
    }

    /// Returns the request as decoded.
    pub(super) fn as_it_came(&self) -> ParsedRequest {
        self.asked.clone()
    }

    /// Returns the conversation with its response, results of the response's calls, and one more
    /// question. `None` without a response.
    pub(super) fn followed_up(&self) -> Option<ParsedRequest> {
        let answer = self.answer.clone()?;
        let results = answer.calls().map(|call| ToolMessage::text(call.id.clone(), call.name.clone(), "done", false));
        let results: Vec<_> = results.map(Message::Tool).collect();
        let before = self.asked.messages.iter().cloned();
        let after = [Message::Assistant(answer)].into_iter().chain(results).chain([Message::user("Go on.")]);
        let mut next = self.asked.clone();
        next.messages = History::import(before.chain(after)).0;
        Some(next)
    }
}

/// Changes every text of every message, so that no message can be sent back verbatim.
pub(super) fn edited(mut request: ParsedRequest) -> ParsedRequest {
    let messages = request.messages.iter().cloned().map(|mut message| {
        match &mut message {
            Message::System(message) => message.parts_mut().iter_mut().for_each(edit_part),
            Message::User(message) => message.parts_mut().iter_mut().for_each(edit_part),
            Message::Tool(message) => message.parts_mut().iter_mut().for_each(edit_part),
            Message::Assistant(message) => message.blocks_mut().iter_mut().for_each(edit_block),
        }
        message
    });
    request.messages = History::import(messages.collect::<Vec<_>>()).0;
    if let Some(system) = &mut request.system {
        system.parts_mut().iter_mut().for_each(edit_part);
    }
    request
}

fn edit_part(part: &mut Part) {
    match part {
        Part::Text(text) => text.text.push_str(" Edited."),
        Part::Image(media) | Part::Document(media) => fill(media),
        _ => {}
    }
}

fn edit_block(block: &mut Block) {
    match block {
        Block::Text(text) => text.text.push_str(" Edited."),
        Block::Image(media) | Block::Document(media) => fill(media),
        _ => {}
    }
}

/// Recordings truncate media: the rest is not valid base64, and no provider would accept it.
fn fill(media: &mut Media) {
    if let MediaSource::Base64(data) = &mut media.source
        && BASE64_STANDARD.decode(&*data).is_err()
    {
        PNG.clone_into(data);
    }
}

/// Returns the request for another provider: without provider-specific fields.
pub(super) fn elsewhere(mut request: ParsedRequest) -> ParsedRequest {
    request.params.extra.clear();
    let messages = request.messages.iter().cloned().map(|mut message| {
        let parts = match &mut message {
            Message::User(message) => message.parts_mut().as_mut_slice(),
            Message::Tool(message) => message.parts_mut().as_mut_slice(),
            Message::System(_) | Message::Assistant(_) => &mut [],
        };
        for part in parts {
            if let Part::Image(media) | Part::Document(media) = part {
                fill(media);
            }
        }
        message
    });
    request.messages = History::import(messages.collect::<Vec<_>>()).0;
    request
}
