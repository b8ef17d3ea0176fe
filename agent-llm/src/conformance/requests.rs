//! Checks of encoded requests.

use std::sync::Arc;

use agent_core::{
    AssistantMessage, Block, ErrorKind, History, Media, Message, ModelParams, ModelRequest, OutputFormat, Part,
    SystemMessage, ToolChoice, ToolMessage, ToolSpec, UserMessage,
    message::{Origin, Raw, Reasoning},
    model::Effort,
    testing::detached_run,
};
use http::{Method, header};
use serde_json::{Value, json};

use super::{
    Samples,
    drive::{complaints, encoded, parsed, request},
    json::not_kept,
};
use crate::{Codec, RequestReader};

/// Texts that locate the pieces of the suite's own conversation in a body, in their required order.
/// Calls come before all results, and results in the order of their calls.
const PIECES: [&str; 7] = ["question-1", "saying-1", "asking-1", "asking-2", "result-1", "result-2", "question-2"];

/// Text of content that belongs to another provider and means nothing to this one.
const FOREIGN: &str = "foreign-4711";

pub(super) fn are_paired(codec: &Arc<dyn RequestReader>, _: &Samples) -> Vec<String> {
    let codec = &**codec;
    let check = |request: Result<ModelRequest, String>| request.and_then(|request| is_sound(codec, &request));
    own(codec).into_iter().flat_map(|(name, request)| complaints(check(request), name)).collect()
}

fn is_sound(codec: &dyn Codec, request: &ModelRequest) -> Result<Vec<String>, String> {
    let sent = codec.encode(request).map_err(|error| format!("not encoded: {error:?}"))?;
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

pub(super) fn grow(codec: &Arc<dyn RequestReader>, _: &Samples) -> Vec<String> {
    complaints(grows(&**codec), "a conversation")
}

/// Encodes a growing history after each of its turns, at once and again at the end, and compares
/// both with a history built at full length.
fn grows(codec: &dyn Codec) -> Result<Vec<String>, String> {
    let all: Vec<Message> = conversation().messages.iter().cloned().collect();
    let (mut history, mut turns) = (History::default(), Vec::new());
    while history.len() < all.len() {
        let rest = &all[history.len()..];
        append(&mut history, rest);
        let grown = ModelRequest::new(detached_run(history.clone()).cx().clone());
        turns.push((history.len(), encoded(codec, &grown)?, grown));
    }
    let mut out = Vec::new();
    for (len, alone, grown) in turns {
        let fresh = encoded(codec, &request(all[..len].iter().cloned()))?;
        for grown in [alone, encoded(codec, &grown)?] {
            if grown != fresh {
                out.push(format!("after {len} messages: {grown}\nand at once: {fresh}"));
            }
        }
    }
    Ok(out)
}

/// Appends the next message; a message with calls along with their results.
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

pub(super) fn survive(codec: &Arc<dyn RequestReader>, samples: &Samples) -> Vec<String> {
    let codec = &**codec;
    let own = own(codec).into_iter().flat_map(|(name, request)| {
        let sent = request.and_then(|request| encoded(codec, &request));
        complaints(sent.and_then(|sent| survives(codec, &sent)), name)
    });
    let given = samples.requests.iter().enumerate();
    own.chain(given.flat_map(|(at, sent)| complaints(survives(codec, sent), &format!("request {at}")))).collect()
}

fn survives(codec: &dyn RequestReader, sent: &str) -> Result<Vec<String>, String> {
    let read = codec.decode_request(sent.as_bytes()).map_err(|error| format!("not read: {error:?}"))?;
    let back = encoded(codec, &read.into_request(detached_run(History::default()).cx().clone()))?;
    Ok(not_kept(&parsed(sent)?, &parsed(&back)?))
}

/// Returns the suite's own requests.
fn own(codec: &dyn Codec) -> [(&'static str, Result<ModelRequest, String>); 3] {
    [
        ("a question", Ok(request([Message::user("question-1")]))),
        ("a conversation", Ok(conversation())),
        ("a request with everything", with_everything(codec)),
    ]
}

/// Builds a conversation with calls and results, an image, and another provider's content.
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

/// Every setting of a request besides its conversation.
const SETTINGS: [fn(&mut ModelRequest); 13] = [
    |req| req.system = Some(SystemMessage::new(vec![Part::text("Be brief."), Part::text("Be kind.")])),
    |req| req.tools = [ToolSpec::new("look", "Looks.", schema()), elsewhere()].into_iter().collect(),
    |req| set(req, |params| params.tool_choice = Some(ToolChoice::Auto)),
    |req| set(req, |params| params.parallel_tool_calls = Some(false)),
    |req| set(req, |params| params.max_tokens = Some(4_711)),
    |req| set(req, |params| params.effort = Some(Effort::Low)),
    |req| set(req, |params| params.temperature = Some(0.5)),
    |req| set(req, |params| params.top_p = Some(0.25)),
    |req| set(req, |params| params.stop = vec!["END".into()]),
    |req| set(req, |params| params.seed = Some(7)),
    |req| set(req, |params| params.output = Some(Arc::new(OutputFormat::new("answer", schema()).strict(true)))),
    |req| set(req, |params| drop(params.extra.insert("x_vendor".into(), json!({"a": [1, 2.5, null]})))),
    |req| req.stream = true,
];

fn set(req: &mut ModelRequest, setting: impl FnOnce(&mut ModelParams)) {
    setting(Arc::make_mut(&mut req.params));
}

fn schema() -> Value {
    let answer = json!({"for": {"type": "string"}});
    json!({"type": "object", "properties": answer, "required": ["for"], "additionalProperties": false})
}

/// Returns a tool that another provider runs.
fn elsewhere() -> ToolSpec {
    let raw = Raw::from_value(Origin::new("another-wire", "another", "m"), &json!({"type": FOREIGN}));
    ToolSpec::server_side("search", raw)
}

/// Builds a conversation with every setting that the wire supports. An unsupported setting must
/// cause an error; dropping it silently is wrong.
fn with_everything(codec: &dyn Codec) -> Result<ModelRequest, String> {
    let mut request = conversation();
    for setting in SETTINGS {
        let mut with_it = request.clone();
        setting(&mut with_it);
        match codec.encode(&with_it) {
            Ok(_) => request = with_it,
            Err(error) if matches!(error.kind(), ErrorKind::InvalidRequest | ErrorKind::Config) => {}
            Err(error) => return Err(format!("not encoded: {error:?}")),
        }
    }
    Ok(request)
}
