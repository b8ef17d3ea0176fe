//! Encoding of requests.

use std::sync::Arc;

use agent_core::{
    AssistantMessage, Block, ErrorKind, Media, Message, ModelParams, ModelRequest, OutputFormat, Part, SystemMessage,
    ToolCall, ToolChoice, ToolMessage, ToolSpec, UserMessage,
    message::{MediaSource, Origin, Raw},
    model::Effort,
};
use agent_llm::{Codec, Profile};
use serde_json::{Value, json};

use super::{
    WIRE, codec, codec_of,
    common::{ask, ask_to_stream, encoded, request},
    own,
};

fn with(params: ModelParams) -> ModelRequest {
    let mut req = ask();
    req.params = Arc::new(params);
    req
}

fn input(messages: impl IntoIterator<Item = Message>) -> Value {
    encoded(&codec(), &request(messages))["input"].clone()
}

#[test]
fn by_default_nothing_is_kept_at_the_server_and_reasoning_is_sealed() {
    let body = encoded(&codec_of("gpt-5", |_| {}), &ask());
    let expected = json!({
        "model": "gpt-5", "store": false, "include": ["reasoning.encrypted_content"],
        "input": [{"role": "user", "content": "hi"}],
    });
    assert_eq!(body, expected);
    let body = encoded(&codec_of("gpt-4o", |_| {}), &ask());
    assert_eq!((&body["store"], &body["include"]), (&json!(false), &Value::Null), "it has no reasoning to seal");
    let kept =
        encoded(&codec(), &with(ModelParams::default().extra("store", true).extra("previous_response_id", "r0")));
    assert_eq!((&kept["store"], &kept["previous_response_id"]), (&json!(true), &json!("r0")));
}

#[test]
fn parameters_have_their_fields() {
    let schema = json!({"type": "object"});
    let params = ModelParams::default()
        .temperature(0.5)
        .max_tokens(99)
        .effort(Effort::Low)
        .output(OutputFormat::new("a", schema.clone()).strict(true).with_description("d"))
        .extra("reasoning", json!({"context": "auto"}))
        .extra("text", json!({"verbosity": "low"}));
    let codec = codec_of("m", |profile| {
        profile.responses.stateless = false;
        profile.responses.reasoning_summary = Some("concise".into());
    });
    let mut req = with(params);
    req.system = Some(SystemMessage::new(vec![Part::text("Be brief."), Part::text("Be kind.")]));
    let format = json!({"type": "json_schema", "name": "a", "description": "d", "schema": schema, "strict": true});
    let expected = json!({
        "model": "m", "instructions": "Be brief.\nBe kind.", "temperature": 0.5, "max_output_tokens": 99,
        "reasoning": {"effort": "low", "summary": "concise", "context": "auto"},
        "text": {"format": format, "verbosity": "low"}, "input": [{"role": "user", "content": "hi"}],
    });
    assert_eq!(encoded(&codec, &req), expected);
    let any = encoded(&codec, &with(ModelParams::default().output(OutputFormat::json())));
    assert_eq!(any["text"]["format"], json!({"type": "json_object"}));
    assert_eq!(encoded(&codec, &ask_to_stream())["stream"], true);
}

#[test]
fn the_backend_of_chatgpt_is_asked_in_its_own_manner() {
    let codec = agent_llm::OpenAiResponsesCodec::new("gpt-5.4", Profile::named("chatgpt").expect("known"));
    let codec = codec.expect("a codec");
    let body = encoded(&codec, &with(ModelParams::default().temperature(0.5).max_tokens(7)));
    let expected = json!({
        "model": "gpt-5.4", "instructions": "", "store": false, "include": ["reasoning.encrypted_content"],
        "stream": true, "input": [{"role": "user", "content": "hi"}],
    });
    assert_eq!(body, expected);
    let uri = codec.encode(&ask()).expect("encodes").uri().to_string();
    assert_eq!(uri, "https://chatgpt.com/backend-api/codex/responses");
}

#[test]
fn content_of_all_kinds_has_its_form() {
    let file = |media: Media| Part::Document(media.with_name("a.pdf"));
    let parts = vec![
        Part::text("look"),
        Part::Image(Media::base64("aGk=", "image/jpeg")),
        Part::Image(Media::url("https://a.test/i.png")),
        Part::Image(Media::new(MediaSource::File("file_1".into()))),
        file(Media::base64("aGk=", "application/pdf")),
        file(Media::url("https://a.test/d.pdf")),
        file(Media::new(MediaSource::File("file_2".into()))),
        Part::Other(Raw::from_value(Origin::new("another", "p", "m"), &json!({"type": "x"}))),
    ];
    let content = json!([
        {"type": "input_text", "text": "look"},
        {"type": "input_image", "detail": "auto", "image_url": "data:image/jpeg;base64,aGk="},
        {"type": "input_image", "detail": "auto", "image_url": "https://a.test/i.png"},
        {"type": "input_image", "detail": "auto", "file_id": "file_1"},
        {"type": "input_file", "filename": "a.pdf", "file_data": "data:application/pdf;base64,aGk="},
        {"type": "input_file", "file_url": "https://a.test/d.pdf"},
        {"type": "input_file", "file_id": "file_2"},
    ]);
    let call = AssistantMessage::new(vec![Block::tool_call("c", "look", "")]);
    let result = ToolMessage::new("c", "look", Arc::new(parts.clone()), false);
    let messages = [Message::User(UserMessage::new(parts)), Message::Assistant(call), Message::Tool(result)];
    let expected = json!([
        {"role": "user", "content": content},
        {"type": "function_call", "call_id": "c", "name": "look", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c", "output": content},
    ]);
    assert_eq!(input(messages), expected);
}

#[test]
fn items_of_the_users_own_stand_beside_the_message() {
    let approval = json!({"type": "mcp_approval_response", "approval_request_id": "a", "approve": true});
    let parts = vec![Part::text("yes"), Part::Other(own(&approval)), Part::text("go on")];
    let expected = json!([
        {"role": "user", "content": [{"type": "input_text", "text": "yes"}]},
        approval,
        {"role": "user", "content": [{"type": "input_text", "text": "go on"}]},
    ]);
    assert_eq!(input([Message::User(UserMessage::new(parts))]), expected);
}

#[test]
fn tools_and_the_choice_among_them() {
    let schema = json!({"type": "object", "properties": {}});
    let search = json!({"type": "web_search", "search_context_size": "low"});
    let shell = json!({"type": "custom", "name": "sh", "description": "Runs."});
    let foreign = Raw::from_value(Origin::new("another", "p", "m"), &json!({"type": "google_search"}));
    let specs = [
        ToolSpec::new("look", "Looks.", schema.clone()),
        ToolSpec::server_side("search", own(&search)),
        ToolSpec::new("sh", "Runs.", schema.clone()).with_raw(own(&shell)),
        ToolSpec::server_side("elsewhere", foreign),
    ];
    let ask = |choice: ToolChoice| {
        let mut req = with(ModelParams::default().tool_choice(choice));
        req.tools = specs.iter().cloned().collect();
        req
    };
    let look = |strict: bool| json!({"type": "function", "name": "look", "description": "Looks.", "parameters": schema, "strict": strict});
    let body = encoded(&codec(), &ask(ToolChoice::Required));
    assert_eq!(body["tools"], json!([look(false), search, shell]), "left out, `strict` would be true");
    let strict = codec_of("m", |profile| profile.responses.strict_tools = true);
    assert_eq!(encoded(&strict, &ask(ToolChoice::Auto))["tools"][0], look(true));
    for (choice, expected) in [
        (ToolChoice::Auto, json!("auto")),
        (ToolChoice::None, json!("none")),
        (ToolChoice::Required, json!("required")),
        (ToolChoice::Tool("look".into()), json!({"type": "function", "name": "look"})),
        (ToolChoice::Tool("sh".into()), json!({"type": "custom", "name": "sh"})),
        (ToolChoice::Tool("search".into()), json!({"type": "web_search"})),
    ] {
        assert_eq!(encoded(&codec(), &ask(choice))["tool_choice"], expected);
    }
    let without = encoded(&codec(), &with(ModelParams::default().tool_choice(ToolChoice::Auto)));
    assert_eq!(without["tool_choice"], Value::Null, "there are no tools");
}

#[test]
fn a_tool_that_takes_a_text_is_answered_as_such() {
    let item = json!({"type": "custom_tool_call", "id": "ctc_1", "call_id": "c1", "name": "sh", "input": "ls"});
    let call = ToolCall { id: "c1".into(), name: "sh".into(), arguments: "ls".into(), raw: Some(own(&item)) };
    let said = AssistantMessage::new(vec![Block::ToolCall(call)]);
    let messages = [Message::Assistant(said), Message::Tool(ToolMessage::text("c1", "sh", "a b", false))];
    let mut sent = item;
    sent.as_object_mut().expect("an object").remove("id");
    assert_eq!(input(messages), json!([sent, {"type": "custom_tool_call_output", "call_id": "c1", "output": "a b"}]));
}

#[test]
fn what_another_provider_said_goes_as_its_words_and_calls() {
    let foreign = |json: Value| Raw::from_value(Origin::new("another", "p", "m"), &json);
    let thinking = agent_core::message::Reasoning { raw: Some(foreign(json!({}))), ..Default::default() };
    let said = vec![
        Block::Reasoning(thinking),
        Block::text("one"),
        Block::text("two"),
        Block::Image(Media::base64("aGk=", "image/png").with_raw(foreign(json!({})))),
        Block::Other(foreign(json!({"type": "refusal"}))),
        Block::tool_call("c", "look", r#"{"a":1}"#),
    ];
    let messages = [
        Message::Assistant(AssistantMessage::from_provider(said, foreign(json!([])))),
        Message::Tool(ToolMessage::text("c", "look", "there", true)),
        Message::system("Be kind."),
    ];
    let expected = json!([
        {"role": "assistant", "content": "one\ntwo\n[image]"},
        {"type": "function_call", "call_id": "c", "name": "look", "arguments": r#"{"a":1}"#},
        {"type": "function_call_output", "call_id": "c", "output": "there"},
        {"role": "system", "content": "Be kind."},
    ]);
    assert_eq!(input(messages), expected);
    assert_eq!(codec().origin().wire(), WIRE);
}

#[test]
fn stop_sequences_are_an_error_that_says_where_they_go() {
    let mut req = ask();
    Arc::make_mut(&mut req.params).stop = vec!["END".into()];
    let error = codec().encode(&req).expect_err("the API has no such field");
    assert_eq!((error.kind(), error.is_retryable()), (ErrorKind::InvalidRequest, false));
    assert!(error.message().contains("`extra`"), "{error}");
}
