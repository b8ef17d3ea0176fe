//! Selection of recorded prompts whose counts can be compared with the reported usage.

use std::io;

use agent::{
    ModelRequest, Usage,
    core::{Block, History, Media, Message, Part, message::MediaSource},
    testing::detached_run,
};
use base64::{Engine, prelude::BASE64_STANDARD};

use crate::recordings::{Exchange, WIRES, response};

/// Recorded prompt.
pub(super) enum Counted {
    /// Whole prompt, with the usage that its provider reported.
    Comparable { request: Box<ModelRequest>, usage: Usage, has_media: bool },
    /// A part of the prompt is known to its provider only.
    LeftOut(&'static str),
    /// There is no response, or it reports no prompt tokens.
    Nothing,
}

impl Counted {
    /// # Errors
    /// If there is no codec for the exchange.
    pub(super) fn of(exchange: &Exchange) -> io::Result<Self> {
        let Some(wire) = WIRES.iter().find(|wire| wire.api() == exchange.api) else { return Ok(Self::Nothing) };
        let Some(sent) = exchange.request.json.as_ref().filter(|_| exchange.status().is_success()) else {
            return Ok(Self::Nothing);
        };
        let codec = wire.codec(exchange).map_err(io::Error::other)?;
        let parsed = codec.decode_request(sent.to_string().as_bytes());
        let (Ok(parsed), Ok(answer)) = (parsed, response(&*codec, exchange)) else { return Ok(Self::Nothing) };
        if answer.usage.prompt() == 0 {
            return Ok(Self::Nothing);
        }
        let elsewhere = ["previous_response_id", "conversation", "cachedContent", "prompt", "documents"];
        if elsewhere.iter().any(|key| !sent[key].is_null()) {
            return Ok(Self::LeftOut("a part of the prompt is kept by its provider"));
        }
        let has_own = parsed.tools.iter().any(agent::core::ToolSpec::is_server_side)
            || sent["tools"].as_array().is_some_and(|tools| tools.len() > parsed.tools.len())
            || answer.message.blocks().iter().any(|block| matches!(block, Block::Server(_) | Block::Other(_)))
            || parsed.messages.iter().any(|message| holds(message, &|kind| kind == Kind::Other));
        if has_own {
            return Ok(Self::LeftOut("the provider's own tools and content"));
        }
        if parsed.messages.iter().any(|message| holds(message, &|kind| kind == Kind::Cut)) {
            return Ok(Self::LeftOut("images and documents that the recording cut"));
        }
        let has_media = parsed.messages.iter().any(|message| holds(message, &|kind| kind == Kind::Media));
        let request = Box::new(parsed.into_request(detached_run(History::default()).cx().clone()));
        Ok(Self::Comparable { request, usage: answer.usage, has_media })
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Text,
    Media,
    /// Media that the recording truncates.
    Cut,
    Other,
}

impl Kind {
    fn of(media: &Media) -> Self {
        match &media.source {
            MediaSource::Base64(data) if BASE64_STANDARD.decode(data).is_err() => Self::Cut,
            _ => Self::Media,
        }
    }
}

/// Returns true if any content of the message is of this kind.
fn holds(message: &Message, is: &dyn Fn(Kind) -> bool) -> bool {
    let parts = |parts: &[Part]| {
        parts.iter().any(|part| {
            is(match part {
                Part::Text(_) => Kind::Text,
                Part::Image(media) | Part::Document(media) => Kind::of(media),
                _ => Kind::Other,
            })
        })
    };
    match message {
        Message::System(m) => parts(m.parts()),
        Message::User(m) => parts(m.parts()),
        Message::Tool(m) => parts(m.parts()),
        Message::Assistant(m) => m.blocks().iter().any(|block| {
            is(match block {
                Block::Text(_) | Block::Reasoning(_) | Block::ToolCall(_) => Kind::Text,
                Block::Image(media) | Block::Document(media) => Kind::of(media),
                _ => Kind::Other,
            })
        }),
    }
}
