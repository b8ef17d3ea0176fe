//! Writing requests: the system prompt, the conversation and the tools.

use std::borrow::Cow;

use agent_core::{
    Block, Message, ModelRequest, SystemMessage, Text, ToolCall, ToolMessage, ToolSpec,
    message::{Origin, Reasoning},
};
use serde::Serialize;
use serde_json::{Value, json, value::RawValue};

use super::{
    AnthropicCodec,
    parts::{BlockJson, Content, marked, parts_json, plain, text_json},
    read, server_tools,
};
use crate::wire::{
    body::Draft,
    cache_control::CacheControl,
    claude::Claude,
    content::{EMPTY, Input},
    fields::Fields,
    ids::plain_id,
    json::{own, write, write_with},
    two_roles::{self, TwoRoles, Words, write_messages},
};

/// Writes the request's body to `out`.
pub(super) fn encode(req: &ModelRequest, settings: &Fields<'_>, codec: &AnthropicCodec, out: &mut Draft) {
    let (extra, origin) = (&req.params.extra, &codec.origin);
    write_with(settings, extra, out);
    out.pop(); // the closing brace
    if let Some(system) = req.system.as_ref().filter(|_| !extra.contains_key("system")) {
        write_system(origin, system, out);
    }
    if !extra.contains_key("messages") {
        out.extend_from_slice(b",\"messages\":");
        write_messages(&req.messages, &Messages(origin), out);
    }
    if !req.tools.is_empty() && !extra.contains_key("tools") {
        out.extend_from_slice(b",\"tools\":");
        out.extend_from_slice(&req.tools.written(codec.key, |specs| write_tools(origin, &codec.claude, specs)));
    }
    out.push(b'}');
}

/// A system prompt that says nothing is left out: the API takes no empty text.
fn write_system(origin: &Origin, system: &SystemMessage, out: &mut Vec<u8>) {
    let content = match own(origin, system.raw()) {
        Some(own) => Some(Content::Raw(own)),
        None => Content::of(parts_json(origin, system.parts())),
    };
    let Some(content) = content else { return };
    out.extend_from_slice(b",\"system\":");
    write(&content, out);
}

/// How messages are written to this provider.
struct Messages<'a>(&'a Origin);

impl TwoRoles for Messages<'_> {
    type Block<'b> = BlockJson<'b>;

    fn origin(&self) -> &Origin {
        self.0
    }

    fn blocks<'b>(&self, _: usize, message: &'b Message, keeps_ids: bool) -> Vec<BlockJson<'b>> {
        match message {
            Message::Tool(result) => vec![self.result(result, keeps_ids)],
            Message::User(message) => parts_json(self.0, message.parts()).collect(),
            Message::System(message) => {
                let cache_control = two_roles::mark(message).map(CacheControl::from);
                vec![BlockJson::Text { text: two_roles::instructions(message).into(), cache_control }]
            }
            Message::Assistant(_) => Vec::new(),
        }
    }

    fn read_turn(json: &str, origin: &Origin) -> serde_json::Result<Vec<Block>> {
        read::turn(json, origin)
    }

    fn read(json: &str, origin: &Origin) -> Block {
        read::block(json, origin)
    }

    fn own(json: &RawValue) -> BlockJson<'_> {
        BlockJson::Raw(json)
    }

    fn plain(text: &str) -> BlockJson<'_> {
        plain(text)
    }

    fn text<'b>(&self, text: &'b Text) -> Option<BlockJson<'b>> {
        text_json(self.0, text)
    }

    fn reasoning(reasoning: &Reasoning) -> BlockJson<'_> {
        match &reasoning.encrypted {
            Some(data) => BlockJson::RedactedThinking { data },
            None => BlockJson::Thinking {
                thinking: &reasoning.text,
                signature: reasoning.signature.as_deref().unwrap_or_default(),
            },
        }
    }

    /// Reasoning without a signature is sent to nobody.
    fn is_sendable(block: &Block) -> bool {
        !matches!(block, Block::Reasoning(r) if r.signature.is_none() && r.encrypted.is_none())
    }

    fn call<'b>(id: Cow<'b, str>, call: &'b ToolCall) -> BlockJson<'b> {
        BlockJson::ToolUse { id, name: &call.name, input: Input::new(&call.arguments) }
    }

    fn id(id: &str) -> Cow<'_, str> {
        plain_id(id)
    }
}

impl<'a> Words<'a> for BlockJson<'a> {
    fn words(&mut self) -> Option<&mut Cow<'a, str>> {
        match self {
            BlockJson::Text { text, .. } => Some(text),
            _ => None,
        }
    }
}

impl Messages<'_> {
    fn result<'b>(&self, result: &'b ToolMessage, keeps_ids: bool) -> BlockJson<'b> {
        if let Some(own) = own(self.0, result.raw()) {
            return BlockJson::Raw(own);
        }
        // The API takes no failure without a word.
        let content = Content::of(parts_json(self.0, result.parts()))
            .or_else(|| result.is_error().then(|| Content::Text(EMPTY.into())));
        let id = result.call_id();
        let tool_use_id = if keeps_ids { Cow::Borrowed(id) } else { plain_id(id) };
        BlockJson::ToolResult { tool_use_id, content, is_error: result.is_error() }
    }
}

/// A tool on offer.
#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum ToolJson<'a> {
    Raw(&'a RawValue),
    Function(Fields<'static>),
    /// The provider's own JSON with a cache mark, or of a tool that it has itself.
    Marked(Value),
}

/// Writes the tools as a JSON list.
fn write_tools(origin: &Origin, claude: &Claude, specs: &[ToolSpec]) -> Vec<u8> {
    let mut out = Vec::new();
    write(&specs.iter().filter_map(|spec| tool_json(origin, claude, spec)).collect::<Vec<_>>(), &mut out);
    out
}

/// The tool in this API's form; none if another provider runs it.
fn tool_json<'a>(origin: &Origin, claude: &Claude, spec: &'a ToolSpec) -> Option<ToolJson<'a>> {
    match own(origin, spec.raw.as_ref()) {
        Some(raw) if spec.cache.is_some() && spec.cache != read::cache(raw) => {
            return Some(ToolJson::Marked(marked(raw, spec.cache)));
        }
        Some(raw) => return Some(ToolJson::Raw(raw)),
        None => {}
    }
    match spec.server.as_ref().and_then(|own| server_tools::tool(own, claude).ok()) {
        Some(mut own) => {
            if let Some(mark) = spec.cache.map(CacheControl::from) {
                own["cache_control"] = json!(mark);
            }
            Some(ToolJson::Marked(own))
        }
        None => (!spec.is_server_side()).then(|| function(spec)),
    }
}

/// A tool of the caller's.
pub(super) fn function(spec: &ToolSpec) -> ToolJson<'_> {
    let mut fields = Fields::default();
    fields.say("name", Some(&spec.name));
    fields.say("description", Some(&spec.description).filter(|text| !text.is_empty()));
    fields.say("input_schema", Some(input_schema(&spec.parameters)));
    fields.say("cache_control", spec.cache.map(CacheControl::from));
    ToolJson::Function(fields)
}

/// The API insists on hearing that arguments are an object.
pub(crate) fn input_schema(parameters: &Value) -> Cow<'_, Value> {
    match parameters {
        Value::Object(fields) if !fields.contains_key("type") => {
            let mut fields = fields.clone();
            fields.insert("type".into(), "object".into());
            Cow::Owned(Value::Object(fields))
        }
        said => Cow::Borrowed(said),
    }
}
