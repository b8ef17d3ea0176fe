//! Round trip of requests: decoding and encoding.

use agent_core::{
    Block, ErrorKind, History, Message, Part, ToolChoice,
    message::{Cache, MediaSource},
    model::Effort,
    testing::detached_run,
};
use agent_llm::{OpenAiChatCodec, ParsedRequest, Profile, RequestReader};
use serde_json::{Value, json};

use super::common::{codec, encoded};

fn read(codec: &OpenAiChatCodec, body: &Value) -> ParsedRequest {
    codec.decode_request(body.to_string().as_bytes()).expect("a request")
}

/// Decodes and encodes the request of these messages.
fn again(codec: &OpenAiChatCodec, body: &Value) -> Value {
    encoded(codec, &read(codec, body).into_request(detached_run(History::default()).cx().clone()))
}

fn goes_through(body: &Value) -> ParsedRequest {
    assert_eq!(&again(&codec(), body), body);
    read(&codec(), body)
}

#[expect(clippy::needless_pass_by_value, reason = "it is given a literal")]
fn asked(messages: Value) -> Value {
    json!({"model": "m", "messages": messages})
}

/// A question with this additional field.
fn with(field: &str, value: Value) -> Value {
    let mut body = asked(json!([{"role": "user", "content": "hi"}]));
    body[field] = value;
    body
}

fn named(profile: &str) -> OpenAiChatCodec {
    OpenAiChatCodec::new("m", Profile::named(profile).expect("known")).expect("a codec")
}

#[test]
fn messages_of_every_role_are_understood_and_go_back_as_they_came() {
    let call = json!({"id": "c", "type": "function", "function": {"name": "look", "arguments": "{ \"x\": 1 }"}});
    let parsed = goes_through(&asked(json!([
        {"role": "developer", "content": "Be brief."},
        {"role": "system", "content": [{"type": "text", "text": "Be kind."}], "name": "house"},
        {"role": "user", "content": "u", "name": "ann"},
        {"role": "assistant", "content": "", "reasoning_content": "hm", "tool_calls": [call], "prefix": false},
        {"role": "tool", "tool_call_id": "c", "content": "seen"},
        {"role": "assistant", "content": null, "function_call": {"name": "look", "arguments": "{}"}},
        {"role": "function", "name": "look", "content": "seen, too"},
        {"role": "critic", "content": "meh"},
    ])));
    let roles: Vec<_> = parsed.messages.iter().map(Message::role).collect();
    assert_eq!(roles, ["system", "system", "user", "assistant", "tool", "assistant", "user", "user"]);
    let texts: Vec<_> = parsed.messages.iter().map(Message::text).collect();
    assert_eq!(texts, ["Be brief.", "Be kind.", "u", "", "seen", "", "seen, too", "meh"]);
    assert_eq!(parsed.messages.get(4).and_then(Message::as_tool).expect("a result").name(), "look");
    assert!(parsed.system.is_none() && parsed.params.extra.is_empty());
    assert_eq!(parsed.model, "m");
}

#[test]
fn what_is_written_the_same_without_it_keeps_no_json_of_its_own() {
    let parsed = goes_through(&asked(json!([
        {"role": "system", "content": "s"},
        {"role": "user", "content": "u"},
        {"role": "user", "content": [
            {"type": "text", "text": "see"},
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,QUJD"}},
            {"type": "file", "file": {"file_data": "data:application/pdf;base64,QUJD", "filename": "a.pdf"}},
        ]},
    ])));
    for message in parsed.messages.iter() {
        let (parts, raw) = match message {
            Message::System(m) => (m.parts(), m.raw()),
            Message::User(m) => (m.parts(), m.raw()),
            other => panic!("{other:?}"),
        };
        assert_eq!(raw, None);
        let has_raw = |part: &Part| match part {
            Part::Text(text) => text.raw.is_some(),
            Part::Image(media) | Part::Document(media) => media.raw.is_some(),
            _ => true,
        };
        assert!(!parts.iter().any(has_raw), "{parts:?}");
    }
}

#[test]
fn parts_are_understood_and_keep_what_is_not() {
    let parsed = goes_through(&asked(json!([{"role": "user", "content": [
        {"type": "text", "text": "see", "cache_control": {"type": "ephemeral", "ttl": "1h"}},
        {"type": "image_url", "image_url": {"url": "https://x/y.png", "detail": "low"}},
        {"type": "file", "file": {"file_id": "f1"}},
        {"type": "input_audio", "input_audio": {"data": "", "format": "wav"}},
        {"type": "text", "text": "both", "image_url": {"url": "https://x/z.png"}},
        "a bare text",
    ]}])));
    let Some(Message::User(message)) = parsed.messages.get(0) else { panic!("a user message") };
    let [Part::Text(text), Part::Image(image), Part::Document(file), Part::Other(_), Part::Other(_), Part::Text(bare)] =
        message.parts()
    else {
        panic!("{:?}", message.parts())
    };
    assert_eq!((text.text.as_str(), text.cache), ("see", Some(Cache::Long)));
    assert_eq!(image.source, MediaSource::Url("https://x/y.png".into()));
    assert_eq!(file.source, MediaSource::File("f1".into()));
    assert_eq!(bare.text, "a bare text");
}

#[test]
fn an_edited_part_is_told_as_it_is_now_and_the_others_as_they_came() {
    let marked = |text: &str| json!({"type": "text", "text": text, "cache_control": {"type": "ephemeral"}});
    let mut parsed =
        read(&codec(), &asked(json!([{"role": "user", "content": [marked("a"), marked("b")], "name": "ann"}])));
    let mut edited: Vec<_> = parsed.messages.iter().cloned().collect();
    let Message::User(message) = &mut edited[0] else { panic!("a user message") };
    let Part::Text(text) = &mut message.parts_mut()[0] else { panic!("a text") };
    text.text = "***".into();
    parsed.messages = History::from_messages(edited).expect("paired");
    let req = parsed.into_request(detached_run(History::default()).cx().clone());
    let content = json!([{"type": "text", "text": "***"}, marked("b")]);
    assert_eq!(encoded(&codec(), &req)["messages"], json!([{"role": "user", "content": content}]));
    let marks = encoded(&named("openrouter"), &req)["messages"][0]["content"].clone();
    assert_eq!(marks, json!([marked("***"), marked("b")]), "a server that takes marks is told of the mark itself");
}

#[test]
fn tools_of_every_kind_are_understood_and_go_back_as_they_came() {
    let schema = json!({"type": "object", "properties": {"x": {"type": "integer"}}});
    let mut body = with(
        "tools",
        json!([
            {"type": "function", "function": {"name": "f", "description": "does", "parameters": schema}},
            {"type": "function", "function": {"name": "g", "description": "does", "parameters": schema, "strict": true}},
            {"type": "function", "function": {"name": "h"}, "cache_control": {"type": "ephemeral"}},
            {"type": "custom", "custom": {"name": "i", "description": "takes words", "format": {"type": "text"}}},
            {"type": "openrouter:web_search", "parameters": {"engine": "native"}},
        ]),
    );
    body["tool_choice"] = json!("auto");
    let tools = goes_through(&body).tools;
    let names: Vec<_> = tools.iter().map(|tool| (tool.name.as_str(), tool.raw.is_some())).collect();
    assert_eq!(names, [("f", false), ("g", true), ("h", true), ("i", true), ("openrouter:web_search", true)]);
    assert_eq!((&tools[1].parameters, tools[2].cache), (&schema, Some(Cache::Short)));
    assert_eq!(tools.iter().filter(|tool| tool.is_server_side()).count(), 1);
}

#[test]
fn parameters_are_understood_in_the_words_of_the_server() {
    let mut body = with("temperature", json!(0.5));
    body["tools"] = json!([{"type": "function", "function": {"name": "f", "description": "", "parameters": {}}}]);
    body["tool_choice"] = json!({"type": "function", "function": {"name": "f"}});
    for (name, value) in [
        ("top_p", json!(0.9)),
        ("max_tokens", json!(7)),
        ("stop", json!(["x", "y"])),
        ("seed", json!(-3)),
        ("parallel_tool_calls", json!(false)),
        ("reasoning_effort", json!("low")),
    ] {
        body[name] = value;
    }
    let params = goes_through(&body).params;
    assert_eq!((params.temperature, params.top_p, params.seed), (Some(0.5), Some(0.9), Some(-3)));
    assert_eq!((params.max_tokens, params.stop.len(), params.effort), (Some(7), 2, Some(Effort::Low)));
    assert_eq!(params.tool_choice, Some(ToolChoice::Tool("f".into())));
    assert_eq!(params.parallel_tool_calls, Some(false));
    assert!(params.extra.is_empty(), "{:?}", params.extra);

    let mistral = read(&named("mistral"), &with("random_seed", json!(3)));
    assert_eq!((mistral.params.seed, mistral.params.extra.len()), (Some(3), 0));
    let deepseek = read(&named("deepseek"), &with("thinking", json!({"type": "disabled"})));
    assert_eq!((deepseek.params.effort, deepseek.params.extra.len()), (Some(Effort::None), 0));
}

#[test]
fn forms_of_answers_are_understood() {
    let schema = json!({"type": "object", "properties": {}});
    let form = json!({"name": "city", "description": "a city", "schema": schema, "strict": true});
    let output =
        goes_through(&with("response_format", json!({"type": "json_schema", "json_schema": form}))).params.output;
    let output = output.expect("a form");
    assert_eq!((output.name.as_str(), output.strict, &output.schema), ("city", true, &schema));
    assert_eq!(output.description.as_deref(), Some("a city"));
    let any = goes_through(&with("response_format", json!({"type": "json_object"}))).params.output.expect("a form");
    assert!(any.schema.is_null());
}

#[test]
fn what_the_parameters_do_not_say_exactly_is_kept_word_for_word() {
    let schema = json!({"type": "json_schema", "json_schema": {"schema": {"type": "object"}}});
    for (field, value, understood) in [
        ("stop", json!("x"), true),
        ("stop", json!(null), false),
        ("tool_choice", json!("any"), true),
        ("tool_choice", json!({"function": {"name": "f"}}), false),
        ("tool_choice", json!({"type": "allowed_tools", "allowed_tools": {"mode": "auto"}}), false),
        ("max_completion_tokens", json!(9), true),
        ("reasoning_effort", json!("xhigh"), false),
        ("response_format", json!({"type": "text"}), false),
        ("response_format", schema, false),
        ("temperature", json!("0.7"), false),
        ("stream", json!(false), false),
        ("tools", json!([]), false),
        ("tools", json!(null), false),
        ("functions", json!([{"name": "f"}]), false),
        ("provider", json!({"only": ["xai"]}), false),
        ("n", json!(2), false),
    ] {
        let mut body = with("tools", json!([{"type": "odd"}]));
        body[field] = value.clone();
        let params = goes_through(&body).params;
        assert_eq!(params.extra.get(field), Some(&value));
        let mut known = params;
        known.extra.clear();
        assert_eq!(known != agent_core::ModelParams::default(), understood, "{field}: {value}");
    }
    let with_false = json!({"type": "json_schema", "json_schema": {"name": "n", "schema": {}, "strict": false}});
    let params = goes_through(&with("response_format", with_false)).params;
    assert!(params.output.is_some() && params.extra.contains_key("response_format"));
    let mut both = with("max_tokens", json!(7));
    both["max_completion_tokens"] = json!(9);
    assert_eq!(goes_through(&both).params.max_tokens, Some(7));
}

#[test]
fn nothing_is_added_to_how_a_request_asks_for_a_stream() {
    for options in [json!(null), json!({"include_usage": true}), json!({"include_usage": false}), json!({"x": 1})] {
        let mut body = with("stream", json!(true));
        if !options.is_null() {
            body["stream_options"] = options;
        }
        assert!(goes_through(&body).stream);
        assert_eq!(again(&named("mistral"), &body), body);
    }
}

#[test]
fn numbers_are_equal_by_value() {
    let parsed = read(&codec(), &with("temperature", json!(1)));
    assert_eq!((parsed.params.temperature, parsed.params.extra.len()), (Some(1.0), 0));
}

#[test]
fn what_no_provider_would_take_is_repaired() {
    let call = json!({"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}});
    let parsed = read(
        &codec(),
        &asked(json!([
            {"role": "tool", "tool_call_id": "lost", "content": "?"},
            {"role": "assistant", "content": null, "tool_calls": [call]},
            {"role": "user", "content": "and?"},
        ])),
    );
    let roles: Vec<_> = parsed.messages.iter().map(Message::role).collect();
    assert_eq!(roles, ["assistant", "tool", "user"]);
}

#[test]
fn a_message_in_which_nothing_was_said_is_kept() {
    let parsed = goes_through(&asked(json!([
        {"role": "user", "content": "u"},
        {"role": "assistant", "content": "", "prefix": true},
    ])));
    let said = parsed.messages.get(1).and_then(Message::as_assistant).expect("a message");
    assert!(matches!(said.blocks(), [Block::Other(_)]));
}

#[test]
fn what_is_no_request_is_refused_and_the_error_says_where() {
    for (body, place) in [
        ("", "JSON object"),
        ("[]", "JSON object"),
        ("{}", "'messages'"),
        (r#"{"messages": "hi"}"#, "item 0"),
        (r#"{"messages": [{"role": "user", "content": "u"}, 7]}"#, "item 1"),
        (r#"{"messages": [{"role": "user", "content": 7}]}"#, "item 0"),
    ] {
        let error = codec().decode_request(body.as_bytes()).expect_err(body);
        assert_eq!((error.kind(), error.is_retryable()), (ErrorKind::InvalidRequest, false));
        assert!(error.message().contains(place), "{error}");
    }
}
