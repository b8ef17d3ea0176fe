//! Encoding of requests.

use std::borrow::Cow;

use agent_core::{AssistantMessage, Message, ModelRequest, SystemMessage, ToolChoice, message::Origin};
use bytes::Bytes;
use serde_json::{Map, Value, json};

use super::{BedrockCodec, messages::Converse, parts::parts_json, settings::TOOLS, tools::write_tools};
use crate::wire::{
    alternating_roles::write_messages,
    body::Draft,
    fields::Fields,
    json::{own, write, write_with},
};

/// Writes the request's body to `out`.
pub(super) fn encode(req: &ModelRequest, mut settings: Fields<'_>, codec: &BedrockCodec, out: &mut Draft) {
    let origin = &codec.origin;
    let of_tools = settings.take(TOOLS).unwrap_or_else(|| json!({}));
    let mut extra = Cow::Borrowed(&req.params.extra);
    let more_of_tools = if extra.contains_key(TOOLS) { extra.to_mut().remove(TOOLS) } else { None };
    write_with(&settings, &extra, out);
    out.pop(); // the closing brace
    if let Some(system) = req.system.as_ref().filter(|_| !extra.contains_key("system")) {
        write_system(origin, system, out);
    }
    write_tool_config(req, &of_tools, more_of_tools.as_ref(), codec, out);
    if !extra.contains_key("messages") {
        begin("messages", out);
        write_messages::<Converse>(&req.messages, origin, out);
    }
    out.push(b'}');
}

/// Begins a field of an object, possibly its first.
fn begin(field: &str, out: &mut Vec<u8>) {
    if out.last() != Some(&b'{') {
        out.push(b',');
    }
    write(&field, out);
    out.push(b':');
}

/// Writes the system prompt. An empty one is left out, because the API rejects empty texts.
fn write_system(origin: &Origin, system: &SystemMessage, out: &mut Vec<u8>) {
    if let Some(own) = own(origin, system.raw()) {
        begin("system", out);
        return out.extend_from_slice(own.get().as_bytes());
    }
    let blocks = parts_json(origin, 0, system.parts());
    if !blocks.is_empty() {
        begin("system", out);
        write(&blocks, out);
    }
}

fn write_tool_config(
    req: &ModelRequest,
    settings: &Value,
    extra: Option<&Value>,
    codec: &BedrockCodec,
    out: &mut Vec<u8>,
) {
    let none = Map::new();
    let extra = extra.and_then(Value::as_object).unwrap_or(&none);
    let tools = if is_barred(req) || extra.contains_key("tools") {
        Bytes::new()
    } else {
        req.tools.written(codec.key, |specs| write_tools(&codec.origin, &codec.rules, specs))
    };
    let has_tools = tools.len() > "[]".len(); // tools of other providers are omitted
    if !has_tools && extra.is_empty() {
        return;
    }
    begin(TOOLS, out);
    write_with(settings, extra, out);
    if has_tools {
        out.pop(); // the closing brace
        begin("tools", out);
        out.extend_from_slice(&tools);
        out.push(b'}');
    }
}

/// Returns true if no tool may be called. The API expresses that by the absence of tools, which it
/// rejects for a conversation with calls.
fn is_barred(req: &ModelRequest) -> bool {
    let has_calls = |message: &Message| message.as_assistant().is_some_and(AssistantMessage::has_calls);
    req.params.tool_choice == Some(ToolChoice::None) && !req.messages.iter().any(has_calls)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use agent_core::{
        AssistantMessage, Block, ErrorKind, History, Media, Part, ToolMessage, ToolSpec, message::Raw,
        testing::detached_run,
    };
    use serde_json::json;

    use super::*;
    use crate::{BedrockCodec, BedrockProfile, Codec};

    fn codec() -> BedrockCodec {
        let profile = BedrockProfile::compatible("acme", "http://acme.test");
        BedrockCodec::new("us.anthropic.claude-opus-4-6-v1", profile).expect("a codec")
    }

    fn request(history: History) -> ModelRequest {
        ModelRequest::new(detached_run(history).cx().clone())
    }

    #[test]
    fn where_all_tools_are_another_providers_there_is_no_word_of_tools() {
        let own = Raw::from_value(Origin::new("gemini", "gemini", "m"), &json!({"googleSearch": {}}));
        let mut req = request(History::from_messages([Message::user("hi")]).expect("paired"));
        req.tools = [ToolSpec::server_side("googleSearch", own)].into_iter().collect();
        let body = codec().encode(&req).expect("encodes").into_body();
        let body: Value = serde_json::from_slice(&body).expect("JSON");
        assert_eq!(body.get(TOOLS), None, "the API takes no empty list: {body}");
    }

    #[test]
    fn sound_in_a_result_is_refused_before_the_call() {
        let sound = Part::Document(Media::base64("AAAA", "audio/wav"));
        let of_user = History::from_messages([Message::User(agent_core::UserMessage::new(vec![sound.clone()]))]);
        codec().encode(&request(of_user.expect("paired"))).expect("a user may send it");
        let call = AssistantMessage::new(vec![Block::tool_call("c", "hear", "{}")]);
        let result = Message::Tool(ToolMessage::new("c", "hear", Arc::new(vec![sound]), false));
        let of_tool = History::from_messages([Message::user("hi"), Message::Assistant(call), result]).expect("paired");
        let error = codec().encode(&request(of_tool)).expect_err("no sound");
        assert_eq!(error.kind(), ErrorKind::InvalidRequest);
        assert!(error.message().contains("message of the user"), "{error}");
    }
}
