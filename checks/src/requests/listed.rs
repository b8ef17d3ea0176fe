//! Requests with all parameters of a call, and all kinds of content.

use std::sync::Arc;

use agent::{
    AssistantMessage, Block, Message, Part,
    core::{
        History, Media, ModelParams, SystemMessage, ToolMessage, ToolSpec, UserMessage,
        message::{Cache, MediaSource, Origin, Raw, Reasoning, ServerCall, Text},
        model::{Effort, OutputFormat, ToolChoice},
    },
    llm::ParsedRequest,
};
use serde_json::{Value, json};

type Listed = Vec<(String, ParsedRequest)>;

/// Image of one pixel.
pub(super) const PNG: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

/// Media type of a word processor document.
const DOCX: &str = "application/vnd.openxmlformats-officedocument.wordprocessingml.document";

/// Returns named requests: one per parameter, and one per kind of content in each place where it is
/// allowed.
pub(super) fn requests() -> Listed {
    let mut all = parameters();
    all.extend(contents());
    all.extend(turns());
    all.extend(tools());
    all
}

fn request(messages: impl IntoIterator<Item = Message>) -> ParsedRequest {
    let mut request = ParsedRequest::default();
    request.messages = History::import(messages).0;
    request.tools = [tool("look")].into_iter().collect();
    request
}

fn tool(name: &str) -> ToolSpec {
    let parameters = json!({"type": "object", "properties": {"at": {"type": "string"}}, "required": ["at"]});
    ToolSpec::new(name, "Looks at something.", parameters)
}

fn asked() -> Message {
    Message::user("What is there?")
}

fn parameters() -> Listed {
    let set = |name: &str, set: &dyn Fn(&mut ModelParams)| {
        let mut request = request([asked()]);
        set(&mut request.params);
        (name.to_owned(), request)
    };
    let mut all = vec![
        set("nothing", &|_| {}),
        set("temperature", &|p| p.temperature = Some(0.5)),
        set("top_p", &|p| p.top_p = Some(0.9)),
        set("max_tokens", &|p| p.max_tokens = Some(8_000)),
        set("stop", &|p| p.stop = vec!["END".into(), "STOP".into()]),
        set("seed", &|p| p.seed = Some(7)),
        set("calls one at a time", &|p| p.parallel_tool_calls = Some(false)),
        set("calls at once", &|p| p.parallel_tool_calls = Some(true)),
    ];
    let choices = [ToolChoice::Auto, ToolChoice::None, ToolChoice::Required, ToolChoice::Tool("look".into())];
    for choice in choices {
        for at_once in [None, Some(false)] {
            all.push(set(&format!("tool choice {choice:?}, at once: {at_once:?}"), &|p| {
                p.tool_choice = Some(choice.clone());
                p.parallel_tool_calls = at_once;
            }));
        }
    }
    for effort in [Effort::None, Effort::Minimal, Effort::Low, Effort::Medium, Effort::High, Effort::XHigh, Effort::Max]
    {
        all.push(set(&format!("effort {effort:?}"), &|p| p.effort = Some(effort)));
        all.push(set(&format!("effort {effort:?} of 8,000 tokens"), &|p| {
            (p.effort, p.max_tokens) = (Some(effort), Some(8_000));
        }));
        all.push(set(&format!("effort {effort:?} and a tool"), &|p| {
            (p.effort, p.tool_choice) = (Some(effort), Some(ToolChoice::Required));
        }));
    }
    for (name, format) in formats() {
        all.push(set(name, &|p| p.output = Some(Arc::new(format.clone()))));
        let mut alone = set(&format!("{name} without tools"), &|p| p.output = Some(Arc::new(format.clone())));
        alone.1.tools = [].into_iter().collect();
        all.push(alone);
    }
    for has_tools in [true, false] {
        let (name, mut streamed) = set(&format!("streamed, tools: {has_tools}"), &|_| {});
        streamed.stream = true;
        if !has_tools {
            streamed.tools = [].into_iter().collect();
        }
        all.push((name, streamed));
    }
    all
}

fn formats() -> [(&'static str, OutputFormat); 4] {
    let place = json!({"type": "object", "properties": {"x": {"type": "integer"}, "name": {"type": ["string", "null"]}},
        "required": ["x", "name"], "additionalProperties": false});
    [
        ("any JSON", OutputFormat::json()),
        ("a schema", OutputFormat::new("place", place.clone())),
        ("a strict schema", OutputFormat::new("place", place.clone()).strict(true)),
        ("a schema with words", OutputFormat::new("place", place).with_description("Where it is.").strict(true)),
    ]
}

/// Returns kinds of content with their names.
fn parts() -> Vec<(String, Part)> {
    let text = |cache| Part::Text(Text::new("Here.").with_cache(cache));
    let mut all = vec![
        ("text".to_owned(), Part::text("Here.")),
        ("text for a cache".into(), text(Cache::Short)),
        ("text for a long cache".into(), text(Cache::Long)),
        ("nothing".into(), Part::text("")),
        ("another provider's own".into(), Part::Other(foreign(&json!({"type": "other", "x": 1})))),
        ("an image by its address".into(), Part::Image(Media::url("https://example.org/cat.png"))),
        ("an image by its place".into(), Part::Image(Media::url("s3://ours/cat.png").with_mime("image/png"))),
        ("an image by its id".into(), Part::Image(Media::new(MediaSource::File("file-1".into())))),
        ("an image for a cache".into(), Part::Image(Media::base64(PNG, "image/png").with_cache(Cache::Short))),
        ("a document by its address".into(), Part::Document(Media::url("https://example.org/a.pdf"))),
        ("a document by its id".into(), Part::Document(Media::new(MediaSource::File("file-1".into())))),
        (
            "a document with a name".into(),
            Part::Document(Media::base64("JVBERi0=", "application/pdf").with_name("a_b.pdf")),
        ),
        (
            "a document for a cache".into(),
            Part::Document(Media::base64("JVBERi0=", "application/pdf").with_cache(Cache::Long)),
        ),
    ];
    for mime in ["image/png", "image/jpeg", "image/gif", "image/webp", "image/heic", "image/bmp", "image/tiff"] {
        all.push((format!("an image in {mime}"), Part::Image(Media::base64(PNG, mime))));
    }
    let documents = ["application/pdf", "text/plain", "text/csv", "text/html", "application/json", DOCX];
    for mime in documents.into_iter().chain(["audio/wav", "audio/mpeg", "video/mp4"]) {
        all.push((format!("a document in {mime}"), Part::Document(Media::base64("SGVsbG8=", mime))));
    }
    all
}

fn foreign(json: &Value) -> Raw {
    Raw::from_value(Origin::new("elsewhere", "nobody", "none"), json)
}

fn contents() -> Listed {
    let mut all = Vec::new();
    for (name, part) in parts() {
        let user = Message::User(UserMessage::new(vec![Part::text("Look:"), part.clone()]));
        all.push((format!("{name} of a user"), request([user])));
        let alone = Message::User(UserMessage::new(vec![part.clone()]));
        all.push((format!("{name} of a user, and nothing else"), request([alone])));
        for is_error in [false, true] {
            let result = ToolMessage::new("c1", "look", Arc::new(vec![part.clone()]), is_error);
            all.push((format!("{name} of a tool, failed: {is_error}"), request(called([result]))));
        }
        if let Part::Text(_) = part {
            let mut instructed = request([asked()]);
            instructed.system = Some(SystemMessage::new(vec![part.clone(), Part::text("And so on.")]));
            all.push((format!("{name} of the system"), instructed));
            let within =
                [asked(), Message::assistant("Yes."), Message::System(SystemMessage::new(vec![part])), asked()];
            all.push((format!("{name} of the system, within"), request(within)));
        }
    }
    all.push(("no content of a tool".into(), request(called([ToolMessage::new("c1", "look", Arc::default(), false)]))));
    all
}

/// Returns a call, its results, and a question.
fn called(results: impl IntoIterator<Item = ToolMessage>) -> Vec<Message> {
    let results: Vec<_> = results.into_iter().collect();
    let calls = results.iter().map(|result| Block::tool_call(result.call_id(), result.name(), r#"{"at":"x"}"#));
    let turn = Message::Assistant(AssistantMessage::new(calls.collect()));
    let results = results.iter().cloned().map(Message::Tool);
    [asked(), turn].into_iter().chain(results).chain([asked()]).collect()
}

/// Returns a server-side tool use of a provider.
fn searched(raw: &Raw) -> Block {
    let mut call = ServerCall::new("s", "web_search", raw.clone());
    (call.input, call.output) = (Some(r#"{"query":"news"}"#.into()), Some("Nothing new.".into()));
    Block::Server(call)
}

fn turns() -> Listed {
    let text = || Block::text("Nothing.");
    let thought = |signature: Option<&str>, encrypted: Option<&str>| {
        Block::Reasoning(Reasoning {
            text: if encrypted.is_some() { String::new() } else { "Let me see.".into() },
            signature: signature.map(Into::into),
            encrypted: encrypted.map(Into::into),
            raw: None,
        })
    };
    let call = |arguments: &str| Block::tool_call("c1", "look", arguments);
    let turns = [
        ("text", vec![text()]),
        ("two texts", vec![text(), text()]),
        ("a thought", vec![thought(None, None), text()]),
        ("a signed thought", vec![thought(Some("c2ln"), None), text()]),
        ("a hidden thought", vec![thought(None, Some("aGlkZGVu")), text()]),
        ("a thought and nothing else", vec![thought(Some("c2ln"), None)]),
        ("a call", vec![call(r#"{"at":"x"}"#)]),
        ("a call without arguments", vec![call("")]),
        ("a call of no object", vec![call("[1]")]),
        ("a call that is no JSON", vec![call(r#"{"at":"#)]),
        ("thought, text and call", vec![thought(Some("c2ln"), None), text(), call("{}")]),
        ("an image", vec![text(), Block::Image(Media::base64(PNG, "image/png"))]),
        ("a document", vec![text(), Block::Document(Media::base64("JVBERi0=", "application/pdf"))]),
        ("another provider's own", vec![text(), Block::Other(foreign(&json!({"type": "search", "id": "s"})))]),
        ("another provider's search", vec![text(), searched(&foreign(&json!({"type": "search", "id": "s"})))]),
        ("nothing but another provider's own", vec![Block::Other(foreign(&json!({"type": "search"})))]),
    ];
    let mut all = Vec::new();
    for (name, blocks) in turns {
        let turn = AssistantMessage::new(blocks);
        let results: Vec<_> =
            turn.calls().map(|call| ToolMessage::text(call.id.clone(), "look", "done", false)).collect();
        let results = results.into_iter().map(Message::Tool);
        let messages = [asked(), Message::Assistant(turn)].into_iter().chain(results);
        all.push((format!("a turn: {name}"), request(messages.clone().chain([asked()]))));
        all.push((format!("a turn at the end: {name}"), request(messages)));
    }
    let two = ["c1", "c2"].map(|id| ToolMessage::text(id, "look", "done", id == "c2"));
    all.push(("a turn: two calls".into(), request(called(two))));
    all.push(("two users".into(), request([asked(), asked()])));
    all.push(("nothing but instructions".into(), request([Message::system("Be brief."), asked()])));
    all
}

fn tools() -> Listed {
    let schemas = [
        ("no arguments", json!({"type": "object", "properties": {}})),
        ("an empty schema", json!({})),
        (
            "a closed schema",
            json!({"type": "object", "properties": {"at": {"type": "string"}}, "additionalProperties": false}),
        ),
        (
            "references",
            json!({"type": "object", "properties": {"at": {"$ref": "#/$defs/place"}},
            "$defs": {"place": {"type": "object", "properties": {"x": {"type": "number"}}}}}),
        ),
        (
            "choices",
            json!({"type": "object", "properties": {"at": {"anyOf": [{"type": "string"}, {"type": "null"}]},
            "kind": {"enum": ["a", "b"]}, "many": {"type": "array", "items": {"type": "integer", "minimum": 1}}}}),
        ),
    ];
    let schemas = schemas.map(|(name, schema)| (name.to_owned(), ToolSpec::new("look", "Looks.", schema)));
    let others = [
        ("a cache".to_owned(), tool("look").with_cache(Cache::Long)),
        ("no description".into(), ToolSpec::new("look", "", json!({"type": "object"}))),
        ("another server's".into(), ToolSpec::server_side("search", foreign(&json!({"type": "search"})))),
    ];
    let specs = schemas.into_iter().chain(others);
    specs
        .map(|(name, spec)| {
            let mut request = request([asked()]);
            request.tools = [tool("first"), spec].into_iter().collect();
            (format!("a tool with {name}"), request)
        })
        .collect()
}
