//! [`CacheKey`]: SHA-256 over every part of the request that affects the answer.

use std::{borrow::Cow, collections::HashMap, fmt};

use agent_core::{
    AssistantMessage, Block, Media, Message, ModelInfo, ModelRequest, Part, Text, ToolMessage, ToolSpec,
    message::{MediaSource, Raw, Reasoning},
    tool::{RemoteMcp, ServerTool},
};
use sha2::{Digest, Sha256};

/// Version of the serialisation below. It changes with the serialisation, so that persistent stores
/// do not mix two formats.
const FORM: &str = "agent-llm response cache 4";

/// Identifies everything that affects a model's answer: the model, of the layer and of the request
/// ([`ModelRequest::model`]), the system prompt, the conversation, the tools and the parameters.
///
/// The caller does not affect the key: neither the run, the agent or the session, nor whether the
/// answer is streamed. Tool call ids do not either: calls are numbered in order. A message's cache
/// markers for the provider are ignored, too.
///
/// A key is a SHA-256 digest: distinct requests do not collide in practice, even if an attacker
/// tries.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CacheKey([u8; 32]);

impl CacheKey {
    /// Computes the key of a request to `model`.
    pub fn of(model: &ModelInfo, req: &ModelRequest) -> Self {
        let mut writer = Writer { hash: Sha256::new(), calls: HashMap::new(), next: 0 };
        writer.text(FORM);
        writer.model(model);
        writer.optional(req.model.as_deref(), Writer::model);
        writer.optional(req.system.as_ref(), |w, system| {
            w.parts(system.parts());
            w.raw(system.raw());
        });
        writer.list(&req.tools, Writer::tool);
        writer.number(req.messages.len() as u64);
        req.messages.iter().for_each(|message| writer.message(message));
        writer.text(&serde_json::to_string(&*req.params).unwrap_or_default());
        Self(writer.hash.finalize().into())
    }

    /// Returns the digest.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Display for CacheKey {
    /// Formats the digest as hexadecimal.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for CacheKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CacheKey({self})")
    }
}

/// Injective serialisation: no two contents produce the same bytes. Every text follows its length,
/// every list its count, and every variant starts with a number.
struct Writer<'a> {
    hash: Sha256,
    /// Number of the newest call of each id.
    calls: HashMap<&'a str, u64>,
    next: u64,
}

impl<'a> Writer<'a> {
    fn number(&mut self, number: u64) {
        self.hash.update(number.to_le_bytes());
    }

    fn text(&mut self, text: &str) {
        self.number(text.len() as u64);
        self.hash.update(text);
    }

    fn optional<T>(&mut self, value: Option<T>, write: impl FnOnce(&mut Self, T)) {
        self.number(value.is_some().into());
        if let Some(value) = value {
            write(self, value);
        }
    }

    fn list<T>(&mut self, items: &'a [T], write: impl Fn(&mut Self, &'a T)) {
        self.number(items.len() as u64);
        items.iter().for_each(|item| write(self, item));
    }

    fn json(&mut self, value: &impl serde::Serialize) {
        self.text(&serde_json::to_string(value).unwrap_or_default());
    }

    fn raw(&mut self, raw: Option<&Raw>) {
        self.raw_with(raw, &[]);
    }

    /// Writes a provider's JSON, with the ids of these calls replaced by their numbers.
    fn raw_with(&mut self, raw: Option<&Raw>, calls: &[&str]) {
        self.optional(raw, |w, raw| {
            w.text(raw.origin().wire());
            w.text(raw.origin().provider());
            let mut json = Cow::Borrowed(raw.json());
            for id in calls {
                let (quoted, number) = (format!("\"{id}\""), w.calls.get(id).copied().unwrap_or_default());
                if json.contains(&quoted) {
                    json = json.replace(&quoted, &format!("#{number}")).into();
                }
            }
            w.text(&json);
        });
    }

    fn model(&mut self, model: &ModelInfo) {
        self.text(&model.provider);
        self.text(&model.name);
    }

    fn tool(&mut self, tool: &ToolSpec) {
        self.text(&tool.name);
        self.text(&tool.description);
        self.json(&tool.parameters);
        self.raw(tool.raw.as_ref());
        self.json(&tool.server);
        if let Some(ServerTool::Mcp(server)) = &tool.server {
            self.secrets(server);
        }
    }

    /// Writes the secrets for a server, which are absent from its JSON: two tokens may see
    /// different data.
    fn secrets(&mut self, server: &RemoteMcp) {
        self.optional(server.authorization.as_ref(), |w, token| w.text(token.expose()));
        self.number(server.headers.len() as u64);
        for (name, value) in &server.headers {
            self.text(name);
            self.text(value.expose());
        }
    }

    fn message(&mut self, message: &'a Message) {
        match message {
            Message::System(m) => {
                self.number(0);
                self.parts(m.parts());
                self.raw(m.raw());
            }
            Message::User(m) => {
                self.number(1);
                self.parts(m.parts());
                self.raw(m.raw());
            }
            Message::Assistant(m) => {
                self.number(2);
                self.assistant(m);
            }
            Message::Tool(m) => {
                self.number(3);
                self.result(m);
            }
        }
    }

    fn assistant(&mut self, message: &'a AssistantMessage) {
        for call in message.calls() {
            self.next += 1;
            self.calls.insert(&call.id, self.next);
        }
        self.list(message.blocks(), Self::block);
        self.number(message.is_edited().into());
        let ids: Vec<_> = message.calls().map(|call| &*call.id).collect();
        self.raw_with(message.raw(), &ids);
    }

    fn result(&mut self, message: &'a ToolMessage) {
        self.call(message.call_id());
        self.text(message.name());
        self.number(message.is_error().into());
        self.parts(message.parts());
        self.raw_with(message.raw(), &[message.call_id()]);
    }

    fn call(&mut self, id: &str) {
        self.number(self.calls.get(id).copied().unwrap_or_default());
    }

    fn block(&mut self, block: &Block) {
        match block {
            Block::Text(text) => {
                self.number(0);
                self.text_piece(text);
            }
            Block::Reasoning(reasoning) => {
                self.number(1);
                self.reasoning(reasoning);
            }
            Block::ToolCall(call) => {
                self.number(2);
                self.call(&call.id);
                self.text(&call.name);
                self.text(&call.arguments);
                self.raw_with(call.raw.as_ref(), &[&call.id]);
            }
            Block::Image(media) => {
                self.number(3);
                self.media(media);
            }
            Block::Document(media) => {
                self.number(4);
                self.media(media);
            }
            Block::Other(raw) => {
                self.number(5);
                self.raw(Some(raw));
            }
            newer => {
                self.number(u64::MAX);
                self.json(newer);
            }
        }
    }

    fn parts(&mut self, parts: &[Part]) {
        self.number(parts.len() as u64);
        for part in parts {
            match part {
                Part::Text(text) => {
                    self.number(0);
                    self.text_piece(text);
                }
                Part::Image(media) => {
                    self.number(1);
                    self.media(media);
                }
                Part::Document(media) => {
                    self.number(2);
                    self.media(media);
                }
                Part::Other(raw) => {
                    self.number(3);
                    self.raw(Some(raw));
                }
                newer => {
                    self.number(u64::MAX);
                    self.json(newer);
                }
            }
        }
    }

    fn text_piece(&mut self, text: &Text) {
        self.text(&text.text);
        self.json(&text.citations);
        self.raw(text.raw.as_ref());
    }

    fn reasoning(&mut self, reasoning: &Reasoning) {
        self.text(&reasoning.text);
        self.optional(reasoning.signature.as_ref(), |w, signature| w.text(signature));
        self.optional(reasoning.encrypted.as_ref(), |w, encrypted| w.text(encrypted));
        self.raw(reasoning.raw.as_ref());
    }

    fn media(&mut self, media: &Media) {
        match &media.source {
            MediaSource::Url(url) => {
                self.number(0);
                self.text(url);
            }
            MediaSource::Base64(data) => {
                self.number(1);
                self.text(data);
            }
            MediaSource::File(id) => {
                self.number(2);
                self.text(id);
            }
            newer => {
                self.number(u64::MAX);
                self.json(newer);
            }
        }
        self.optional(media.mime.as_ref(), |w, mime| w.text(mime));
        self.optional(media.name.as_ref(), |w, name| w.text(name));
        self.raw(media.raw.as_ref());
    }
}
