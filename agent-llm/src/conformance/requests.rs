//! What is sent to providers.

use std::sync::Arc;

use agent_core::{
    AssistantMessage, Block, Effort, ErrorKind, History, Media, Message, ModelParams, ModelRequest, Origin,
    OutputFormat, Part, Raw, Reasoning, SystemMessage, ToolChoice, ToolMessage, ToolSpec, UserMessage,
    testing::detached_run,
};
use http::{Method, header};
use serde_json::json;

use super::{
    Samples,
    drive::{complaints, encoded, parsed, request},
    json::not_kept,
};
use crate::Codec;

/// Texts by which pieces of the suite's own conversation are found in a body, in the order in which they must stand. Calls
/// come before all results, and results in the order of their calls.
const PIECES: [&str; 7] = ["question-1", "saying-1", "asking-1", "asking-2", "result-1", "result-2", "question-2"];

/// What is another provider's own, and means nothing to this one.
const FOREIGN: &str = "foreign-4711";

pub(super) fn are_paired(codec: &Arc<dyn Codec>, _: &Samples) -> Vec<String> {
    let codec = &**codec;
    let own = [
        ("a conversation", conversation()),
        ("a request with everything", with_everything()),
        ("a question", question()),
    ];
    own.iter().flat_map(|(name, request)| complaints(is_sound(codec, request), name)).collect()
}

fn is_sound(codec: &dyn Codec, request: &ModelRequest) -> Result<Vec<String>, String> {
    let sent = match codec.encode(request) {
        Ok(sent) => sent,
        // Not every wire has a word for every parameter; it must not leave one out in silence.
        Err(error) if matches!(error.kind(), ErrorKind::InvalidRequest | ErrorKind::Config) => return Ok(Vec::new()),
        Err(error) => return Err(format!("not encoded: {error:?}")),
    };
    let mut out = Vec::new();
    if sent.method() != Method::POST || sent.uri().scheme().is_none() || sent.uri().authority().is_none() {
        out.push(format!("it is sent as {} {}", sent.method(), sent.uri()));
    }
    if sent.headers().get(header::CONTENT_TYPE).is_none_or(|kind| kind != "application/json") {
        out.push(format!("its content type is {:?}", sent.headers().get(header::CONTENT_TYPE)));
    }
    if let Some(name) =
        sent.headers().keys().find(|name| name.as_str().contains("key") || *name == header::AUTHORIZATION)
    {
        out.push(format!("it holds a key in '{name}': that is the model's business"));
    }
    let body = String::from_utf8(sent.into_body().to_vec()).map_err(|error| error.to_string())?;
    parsed(&body)?;
    if body.contains(FOREIGN) {
        out.push(format!("it holds what is another provider's own: {body}"));
    }
    if request.messages.len() > 1 {
        let places: Vec<_> =
            PIECES.iter().map(|piece| (piece, body.matches(piece).count(), body.find(piece))).collect();
        let missing = places.iter().filter(|(_, count, _)| *count != 1);
        out.extend(missing.map(|(piece, count, _)| format!("'{piece}' stands {count} times in it: {body}")));
        if !places.is_sorted_by_key(|(_, _, place)| *place) {
            out.push(format!("its pieces stand in another order: {body}"));
        }
    }
    Ok(out)
}

pub(super) fn grow(codec: &Arc<dyn Codec>, _: &Samples) -> Vec<String> {
    complaints(grows(&**codec), "a conversation")
}

/// Encodes a history after each of its turns, and beside it one that was always so long.
fn grows(codec: &dyn Codec) -> Result<Vec<String>, String> {
    let all: Vec<Message> = conversation().messages.iter().cloned().collect();
    let (mut growing, mut out) = (History::default(), Vec::new());
    while growing.len() < all.len() {
        let rest = &all[growing.len()..];
        append(&mut growing, rest);
        let fresh = request(all[..growing.len()].iter().cloned());
        let grown = ModelRequest::new(detached_run(growing.clone()).cx().clone());
        let (grown, fresh) = (encoded(codec, &grown)?, encoded(codec, &fresh)?);
        if grown != fresh {
            out.push(format!("after {} messages: {grown}\nand at once: {fresh}", growing.len()));
        }
    }
    Ok(out)
}

/// Appends the next message; one with calls, with their results.
fn append(history: &mut History, rest: &[Message]) {
    let appended = match &rest[0] {
        Message::Assistant(message) if message.has_calls() => {
            let results = rest[1..].iter().map_while(|message| message.as_tool().cloned()).collect();
            history.push_turn(message.clone(), results)
        }
        message => history.push(message.clone()),
    };
    appended.expect("the suite's conversation is paired");
}

pub(super) fn survive(codec: &Arc<dyn Codec>, samples: &Samples) -> Vec<String> {
    let codec = &**codec;
    let own = [("a conversation", conversation()), ("a request with everything", with_everything())];
    let own = own.iter().flat_map(|(name, request)| {
        let sent = encoded(codec, request);
        complaints(sent.and_then(|sent| survives(codec, &sent)), name)
    });
    let given = samples.requests.iter().enumerate();
    own.chain(given.flat_map(|(at, sent)| complaints(survives(codec, sent), &format!("request {at}")))).collect()
}

fn survives(codec: &dyn Codec, sent: &str) -> Result<Vec<String>, String> {
    let read = codec.decode_request(sent.as_bytes()).map_err(|error| format!("not read: {error:?}"))?;
    let back = encoded(codec, &read.into_request(detached_run(History::default()).cx().clone()))?;
    Ok(not_kept(&parsed(sent)?, &parsed(&back)?))
}

fn question() -> ModelRequest {
    request([Message::user("question-1")])
}

/// Calls with results, an edited message, pictures, and what is another provider's own.
fn conversation() -> ModelRequest {
    let foreign = || Raw::from_value(Origin::new("another-wire", "another", "m"), &json!({"type": "x", "x": FOREIGN}));
    let reasoning = Reasoning { text: "thinking-1".into(), raw: Some(foreign()), ..Reasoning::default() };
    let said = vec![
        Block::Reasoning(reasoning),
        Block::text("saying-1"),
        Block::Other(foreign()),
        Block::tool_call("call_1", "look", r#"{"for":"asking-1"}"#),
        Block::tool_call("call_2", "look", r#"{"for":"asking-2"}"#),
    ];
    let picture = Part::Image(Media::base64("aGk=", "image/png"));
    let results = [
        ToolMessage::new("call_1", "look", Arc::new(vec![Part::text("result-1")]), false),
        ToolMessage::new("call_2", "look", Arc::new(vec![Part::text("result-2")]), true),
    ];
    let start = UserMessage::new(vec![Part::text("question-1"), picture]);
    let turn = [Message::User(start), Message::Assistant(AssistantMessage::from_provider(said, foreign()))];
    request(turn.into_iter().chain(results.map(Message::Tool)).chain([Message::user("question-2")]))
}

/// A conversation with every parameter, tools, and a system prompt.
fn with_everything() -> ModelRequest {
    let mut req = conversation();
    req.system = Some(SystemMessage::new(vec![Part::text("Be brief."), Part::text("Be kind.")]));
    let schema = json!({"type": "object", "properties": {"for": {"type": "string"}}, "required": ["for"]});
    let elsewhere = Raw::from_value(Origin::new("another-wire", "another", "m"), &json!({"type": FOREIGN}));
    let tools = [ToolSpec::new("look", "Looks.", schema.clone()), ToolSpec::server_side("search", elsewhere)];
    req.tools = tools.into_iter().collect();
    let mut params = ModelParams::default()
        .temperature(0.5)
        .max_tokens(77)
        .effort(Effort::Low)
        .tool_choice(ToolChoice::Auto)
        .output(OutputFormat::new("answer", schema).strict(true))
        .extra("x_vendor", json!({"a": [1, 2.5, null]}));
    params.top_p = Some(0.25);
    params.stop = vec!["END".into()];
    params.seed = Some(7);
    params.parallel_tool_calls = Some(false);
    req.params = Arc::new(params);
    req.stream = true;
    req
}
