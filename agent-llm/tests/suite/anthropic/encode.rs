//! Encoding of requests.

use std::sync::{Arc, Mutex};

use agent_core::{
    AssistantMessage, Block, ErrorKind, Event, EventKind, History, Media, Message, ModelParams, OutputFormat, Part,
    SystemMessage, Text, ToolChoice, ToolMessage, ToolSpec, UserMessage,
    message::{Cache, MediaSource, Origin, Raw},
    model::Effort,
};
use agent_llm::{AnthropicCodec, AnthropicProfile, ClaudeThinking, Codec, RequestReader};
use serde_json::{Value, json};

use super::{
    codec, codec_of,
    common::{ask, encoded},
    messages, origin, req_of,
};

fn turn(calls: &[&str], results: Vec<ToolMessage>) -> History {
    let blocks = calls.iter().map(|id| Block::tool_call(*id, "look", "{}")).collect();
    let mut history = History::default();
    history.push_turn(AssistantMessage::new(blocks), results).expect("a turn");
    history
}

fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

fn with_params(codec: &AnthropicCodec, params: ModelParams) -> Value {
    let mut req = ask();
    req.params = Arc::new(params);
    encoded(codec, &req)
}

#[test]
fn results_of_a_turn_and_the_words_after_them_are_one_message() {
    let results = vec![ToolMessage::text("c1", "look", "one", false), ToolMessage::text("c2", "look", "two", true)];
    let mut history = turn(&["c1", "c2"], results);
    history.push(Message::user("and?")).expect("pushes");
    history.push(Message::system("be brief")).expect("pushes");
    history.push(Message::assistant("done")).expect("pushes");
    history.push(Message::user("thanks")).expect("pushes");
    let result = |id: &str, content: &str| json!({"type": "tool_result", "tool_use_id": id, "content": content});
    let mut failed = result("c2", "two");
    failed["is_error"] = true.into();
    let call = |id: &str| json!({"type": "tool_use", "id": id, "name": "look", "input": {}});
    let words = [text("and?"), text("<system>\nbe brief\n</system>")];
    assert_eq!(
        messages(history),
        json!([
            {"role": "assistant", "content": [call("c1"), call("c2")]},
            {"role": "user", "content": [result("c1", "one"), failed, words[0], words[1]]},
            {"role": "assistant", "content": [text("done")]},
            {"role": "user", "content": [text("thanks")]},
        ])
    );
}

#[test]
fn what_is_written_of_a_message_is_kept_and_stays_right_as_the_history_grows() {
    let codec = codec();
    let own = Raw::parse(origin(), r#"{"role":"user","content":"own words"}"#).expect("valid");
    let mut history = History::default();
    for step in 0..100 {
        match step % 5 {
            0 => history.push(Message::user(format!("question {step}"))).expect("pushes"),
            1 => history.push(Message::User(UserMessage::new(vec![" ".into()]))).expect("pushes"),
            2 => history.push(Message::User(UserMessage::new(vec![]).with_raw(own.clone()))).expect("pushes"),
            3 => history.push(Message::system("s")).expect("pushes"),
            _ => {
                let call = AssistantMessage::new(vec![Block::tool_call("c", "look", "{}")]);
                history.push_turn(call, vec![ToolMessage::text("c", "look", "v", false)]).expect("a turn");
            }
        }
        let grown = encoded(&codec, &req_of(history.clone()));
        if step % 9 == 0 {
            let fresh = History::from_messages(history.iter().cloned()).expect("paired");
            assert_eq!(grown, encoded(&codec, &req_of(fresh)));
        }
        let last = grown["messages"].as_array().expect("messages").last().expect("one");
        assert!(last["content"].as_array().is_none_or(|blocks| !blocks.is_empty()), "{last}");
    }
}

#[test]
fn a_message_that_says_nothing_is_left_out_of_another_and_filled_if_it_is_alone() {
    let nothing = || Message::User(UserMessage::new(vec!["".into(), "\n".into()]));
    let alone = History::from_messages([nothing()]).expect("paired");
    assert_eq!(messages(alone), json!([{"role": "user", "content": [text("[empty]")]}]));
    let mut history = turn(&["c"], vec![ToolMessage::text("c", "look", "v", false)]);
    [nothing(), Message::user("go on")].into_iter().for_each(|message| history.push(message).expect("pushes"));
    let result = json!({"type": "tool_result", "tool_use_id": "c", "content": "v"});
    assert_eq!(messages(history)[1], json!({"role": "user", "content": [result, text("go on")]}));
}

#[test]
fn another_servers_codec_does_not_use_what_the_first_wrote() {
    let own = Raw::parse(origin(), r#"{"role":"user","content":"own words"}"#).expect("valid");
    let message = UserMessage::new(vec!["words".into()]).with_raw(own);
    let req = req_of(History::from_messages([Message::User(message)]).expect("paired"));
    let other = AnthropicCodec::new("m", AnthropicProfile::anthropic()).expect("a codec");
    for _ in 0..2 {
        assert_eq!(encoded(&codec(), &req)["messages"][0]["content"], "own words");
        assert_eq!(encoded(&other, &req)["messages"][0]["content"], json!([text("words")]));
    }
}

#[test]
fn the_system_prompt_is_a_text_or_a_list_with_cache_marks() {
    let mut req = ask();
    let mut system = |parts| {
        req.system = Some(SystemMessage::new(parts));
        encoded(&codec(), &req).get("system").cloned()
    };
    assert_eq!(system(vec!["be brief".into()]), Some("be brief".into()));
    assert_eq!(system(vec![" ".into()]), None, "the API takes no empty text");
    let marked = vec![
        Text::new("long").with_cache(Cache::Long).into(),
        Text::new("short").with_cache(Cache::Short).into(),
        "tail".into(),
    ];
    let wanted = json!([
        {"type": "text", "text": "long", "cache_control": {"type": "ephemeral", "ttl": "1h"}},
        {"type": "text", "text": "short", "cache_control": {"type": "ephemeral"}},
        {"type": "text", "text": "tail"},
    ]);
    assert_eq!(system(marked), Some(wanted));
}

#[test]
fn media_of_a_user_message_are_blocks() {
    let foreign = Origin::new("other", "p", "m");
    let parts = vec![
        Part::text("see"),
        Part::Image(Media::url("https://x/y.png").with_cache(Cache::Short)),
        Part::Image(Media::base64("QUJD", "image/jpeg")),
        Part::Document(Media::base64("QUJD", "application/pdf").with_name("a.pdf")),
        Part::Document(Media::new(MediaSource::File("file_1".into()))),
        Part::Other(Raw::parse(origin(), r#"{"type":"container_upload","file_id":"f"}"#).expect("valid")),
        Part::Other(Raw::parse(foreign, r#"{"type":"strange"}"#).expect("valid")),
    ];
    let history = History::from_messages([Message::User(UserMessage::new(parts))]).expect("paired");
    let inline = |mime: &str| json!({"type": "base64", "media_type": mime, "data": "QUJD"});
    let page = json!({"type": "url", "url": "https://x/y.png"});
    assert_eq!(
        messages(history)[0]["content"],
        json!([
            text("see"),
            {"type": "image", "source": page, "cache_control": {"type": "ephemeral"}},
            {"type": "image", "source": inline("image/jpeg")},
            {"type": "document", "source": inline("application/pdf"), "title": "a.pdf"},
            {"type": "document", "source": {"type": "file", "file_id": "file_1"}},
            {"type": "container_upload", "file_id": "f"},
        ]),
        "another provider's own part means nothing here"
    );
}

#[test]
fn a_result_holds_text_images_or_nothing() {
    let result = |parts: Vec<Part>, is_error| {
        let history = turn(&["c"], vec![ToolMessage::new("c", "look", parts.into(), is_error)]);
        messages(history)[1]["content"][0].clone()
    };
    let image = json!({"type": "image", "source": {"type": "url", "url": "u"}});
    assert_eq!(result(vec!["one".into(), "two".into()], false)["content"], json!([text("one"), text("two")]));
    assert_eq!(result(vec!["".into(), Part::Image(Media::url("u"))], false)["content"], json!([image]));
    assert_eq!(result(vec![], false), json!({"type": "tool_result", "tool_use_id": "c"}));
    assert_eq!(result(vec![], true)["content"], "[empty]", "the API takes no failure without a word");
    let cached = Text::new("one").with_cache(Cache::Short).into();
    assert_eq!(result(vec![cached], false)["content"][0]["cache_control"], json!({"type": "ephemeral"}));
}

#[test]
fn parts_of_the_providers_own_keep_their_json_and_take_another_cache_mark() {
    let json = r#"{"type":"text","text":"a","citations":[{"cited_text":"q"}],"x":1}"#;
    let read = |cache: Option<Cache>| {
        let codec = codec();
        let body = format!(r#"{{"messages":[{{"role":"user","content":[{json}]}}]}}"#);
        let parsed = codec.decode_request(body.as_bytes()).expect("a request");
        let Some(Message::User(message)) = parsed.messages.get(0) else { panic!("a user's message") };
        let mut message = message.clone();
        let Part::Text(text) = &mut message.parts_mut()[0] else { panic!("a text") };
        text.cache = cache;
        messages(History::from_messages([Message::User(message)]).expect("paired"))[0]["content"][0].clone()
    };
    let mut wanted: Value = serde_json::from_str(json).expect("valid");
    assert_eq!(read(None), wanted);
    wanted["cache_control"] = json!({"type": "ephemeral", "ttl": "1h"});
    assert_eq!(read(Some(Cache::Long)), wanted);
}

#[test]
fn parameters_have_the_names_that_the_api_knows() {
    let mut params = ModelParams::default().temperature(0.5).max_tokens(7).tool_choice(ToolChoice::Required);
    (params.top_p, params.seed, params.stop) = (Some(0.9), Some(3), vec!["x".into()]);
    params.parallel_tool_calls = Some(false);
    let mut req = ask();
    (req.params, req.stream) = (Arc::new(params), true);
    let wanted = json!({
        "model": "claude-opus-4-6", "max_tokens": 7, "messages": [{"role": "user", "content": [text("hi")]}],
        "temperature": 0.5, "top_p": 0.9, "stop_sequences": ["x"], "stream": true,
    });
    assert_eq!(encoded(&codec(), &req), wanted, "nothing of tools without tools, and there is no seed");
    assert_eq!(with_params(&codec(), ModelParams::default())["max_tokens"], 32_000);
    assert_eq!(with_params(&codec_of("claude-3-haiku-20240307"), ModelParams::default())["max_tokens"], 4_096);
    assert_eq!(with_params(&codec().with_max_tokens(99), ModelParams::default())["max_tokens"], 99);
}

#[test]
fn the_choice_of_a_tool_says_whether_calls_may_be_parallel() {
    let choice = |choice: Option<ToolChoice>, parallel: Option<bool>| {
        let mut params = ModelParams::default();
        (params.tool_choice, params.parallel_tool_calls) = (choice, parallel);
        let mut req = ask();
        req.params = Arc::new(params);
        req.tools = [ToolSpec::new("f", "does", json!({"type": "object"}))].into_iter().collect();
        encoded(&codec(), &req).get("tool_choice").cloned()
    };
    assert_eq!(choice(None, None), None);
    assert_eq!(choice(None, Some(true)), None);
    assert_eq!(choice(None, Some(false)), Some(json!({"type": "auto", "disable_parallel_tool_use": true})));
    assert_eq!(choice(Some(ToolChoice::Auto), None), Some(json!({"type": "auto"})));
    assert_eq!(choice(Some(ToolChoice::None), Some(false)), Some(json!({"type": "none"})));
    assert_eq!(choice(Some(ToolChoice::Required), Some(true)), Some(json!({"type": "any"})));
    let named = json!({"type": "tool", "name": "f", "disable_parallel_tool_use": true});
    assert_eq!(choice(Some(ToolChoice::Tool("f".into())), Some(false)), Some(named));
}

#[test]
fn effort_is_said_as_the_model_understands_it() {
    let said = |model: &str, effort, max_tokens| {
        let body = with_params(&codec_of(model), ModelParams::default().effort(effort).max_tokens(max_tokens));
        (body["thinking"].clone(), body["output_config"]["effort"].clone())
    };
    let budget = |tokens: u64| (json!({"type": "enabled", "budget_tokens": tokens}), Value::Null);
    let adaptive = |word: &str| (json!({"type": "adaptive"}), word.into());
    assert_eq!(said("claude-opus-4-6", Effort::High, 9_000), adaptive("high"));
    assert_eq!(said("claude-opus-4-6", Effort::Minimal, 9_000), adaptive("low"));
    assert_eq!(said("claude-opus-4-6", Effort::None, 9_000), (Value::Null, Value::Null));
    assert_eq!(said("claude-opus-5", Effort::None, 9_000), (json!({"type": "disabled"}), Value::Null));
    assert_eq!(said("claude-opus-5-5", Effort::None, 9_000), (Value::Null, "low".into()), "it always thinks");
    assert_eq!(said("claude-haiku-4-5", Effort::High, 9_000), budget(4_500));
    assert_eq!(said("claude-haiku-4-5", Effort::Low, 9_000), budget(1_125));
    assert_eq!(said("claude-haiku-4-5", Effort::Minimal, 9_000), budget(1_024));
    assert_eq!(said("claude-haiku-4-5", Effort::High, 2_048), budget(1_024));
    assert_eq!(said("claude-haiku-4-5", Effort::High, 2_047), (Value::Null, Value::Null), "the answer needs its room");
    let mut profile = AnthropicProfile::compatible("acme", "http://acme.test");
    profile.thinking = Some(ClaudeThinking::Budget);
    let told = AnthropicCodec::new("an-alias", profile).expect("a codec");
    let body = with_params(&told, ModelParams::default().effort(Effort::Medium));
    assert_eq!(body["thinking"]["budget_tokens"], 8_000);
}

#[test]
fn a_model_that_thinks_takes_no_temperature_of_ones_own() {
    let encode = |params: ModelParams| {
        let mut req = ask();
        req.params = Arc::new(params);
        codec().encode(&req)
    };
    let mut narrow = ModelParams::default().effort(Effort::Low);
    narrow.top_p = Some(0.5);
    for refused in [ModelParams::default().effort(Effort::Low).temperature(0.5), narrow] {
        let error = encode(refused).expect_err("the provider would refuse it");
        assert_eq!((error.kind(), error.is_retryable()), (ErrorKind::InvalidRequest, false));
    }
    assert!(encode(ModelParams::default().effort(Effort::Low).temperature(1.0)).is_ok());
    assert!(encode(ModelParams::default().effort(Effort::None).temperature(0.5)).is_ok(), "it does not think");
}

#[test]
fn a_model_does_not_think_where_a_tool_is_forced_on_it() {
    let told = Arc::new(Mutex::new(0));
    let thinking = |choice: ToolChoice| {
        let (mut req, told) = (ask(), told.clone());
        let hears = move |event: &Event| {
            let is_it = matches!(&event.kind, EventKind::Warning { message } if message.contains("does not think"));
            *told.lock().expect("free") += usize::from(is_it);
        };
        req.cx.attach(Arc::new(hears));
        req.params = Arc::new(ModelParams::default().effort(Effort::High).tool_choice(choice));
        req.tools = [ToolSpec::new("f", "does", json!({"type": "object"}))].into_iter().collect();
        encoded(&codec(), &req)["thinking"].clone()
    };
    assert_eq!(thinking(ToolChoice::Tool("f".into())), Value::Null);
    assert_eq!(thinking(ToolChoice::Required), Value::Null);
    assert_eq!(*told.lock().expect("free"), 2, "whoever hears the run is told each time");
    assert_eq!(thinking(ToolChoice::Auto), json!({"type": "adaptive"}));
    assert_eq!(*told.lock().expect("free"), 2);
}

#[test]
fn documents_of_text_go_as_text() {
    let parts = ["text/plain", "text/csv"].map(|mime| Part::Document(Media::base64("YSxi", mime).with_name("a")));
    let history = History::from_messages([Message::User(UserMessage::new(parts.to_vec()))]).expect("paired");
    let source = json!({"type": "text", "media_type": "text/plain", "data": "a,b"});
    let document = json!({"type": "document", "source": source, "title": "a"});
    assert_eq!(messages(history)[0]["content"], json!([document, document]));
}

#[test]
fn media_that_no_model_takes_are_refused_before_the_call() {
    let refused = |part: Part| {
        let history = History::from_messages([Message::User(UserMessage::new(vec![part]))]).expect("paired");
        codec().encode(&req_of(history))
    };
    for mime in ["audio/mpeg", "video/mp4", "image/heic", "image/heif", "image/bmp", "image/tiff", "application/json"] {
        let media = || Media::base64("QUJD", mime);
        for part in [Part::Document(media()), Part::Image(media())] {
            let error = refused(part).expect_err(mime);
            assert_eq!((error.kind(), error.is_retryable()), (ErrorKind::InvalidRequest, false));
            assert!(error.message().contains(mime) && error.message().contains("PDF"), "{error}");
        }
    }
    assert!(refused(Part::Image(Media::base64("QUJD", "image/webp"))).is_ok());
    // The provider checks the type of media at a URL, but no URL makes it accept video.
    let at = |mime| refused(Part::Document(Media::url("https://example.org/a").with_mime(mime)));
    assert!(at("application/json").is_ok() && at("video/mp4").is_err());
}

#[test]
fn the_form_of_the_answer_is_a_schema_with_closed_objects() {
    let schema = json!({"type": "object", "properties": {"a": {"type": "string"}}});
    let params = ModelParams::default().output(OutputFormat::new("form", schema.clone())).effort(Effort::Low);
    let mut closed = schema;
    closed["additionalProperties"] = false.into();
    let wanted = json!({"effort": "low", "format": {"type": "json_schema", "schema": closed}});
    assert_eq!(with_params(&codec(), params)["output_config"], wanted);
    let any = ModelParams::default().output(OutputFormat::json());
    assert_eq!(with_params(&codec(), any).get("output_config"), None);
}

#[test]
fn tools_have_a_schema_or_run_at_the_provider() {
    let server = |origin: Origin| {
        ToolSpec::server_side(
            "web_search",
            Raw::parse(origin, r#"{"type":"web_search_1","name":"web_search"}"#).expect("valid"),
        )
    };
    let mut req = ask();
    req.tools = [
        ToolSpec::new("f", "does", json!({"type": "object"})).with_cache(Cache::Short),
        ToolSpec::new("g", "", json!({})),
        server(origin()),
        server(origin()).with_cache(Cache::Long),
        server(Origin::new("openai-chat", "acme", "m")),
    ]
    .into_iter()
    .collect();
    let search = json!({"type": "web_search_1", "name": "web_search"});
    let mut marked = search.clone();
    marked["cache_control"] = json!({"type": "ephemeral", "ttl": "1h"});
    let object = json!({"type": "object"});
    let wanted = json!([
        {"name": "f", "description": "does", "input_schema": object, "cache_control": {"type": "ephemeral"}},
        {"name": "g", "input_schema": object},
        search,
        marked,
    ]);
    assert_eq!(encoded(&codec(), &req)["tools"], wanted);
}

#[test]
fn extra_fields_are_merged_last_and_deeply() {
    let params = ModelParams::default()
        .effort(Effort::High)
        .extra("output_config", json!({"effort": "max"}))
        .extra("thinking", json!({"display": "summarized"}))
        .extra("metadata", json!({"user_id": "7"}))
        .extra("system", "another")
        .extra("tools", json!([{"type": "web_search_1"}]));
    let body = with_params(&codec(), params);
    assert_eq!(body["output_config"], json!({"effort": "max"}));
    assert_eq!(body["thinking"], json!({"type": "adaptive", "display": "summarized"}));
    assert_eq!((&body["metadata"]["user_id"], &body["system"]), (&"7".into(), &"another".into()));
    assert_eq!(body["tools"], json!([{"type": "web_search_1"}]));
}

#[test]
fn the_version_and_the_betas_are_headers() {
    let mut profile = AnthropicProfile::anthropic();
    profile.betas = vec!["a-1".into(), "b-2".into()];
    let request = AnthropicCodec::new("m", profile).expect("a codec").encode(&ask()).expect("encodes");
    assert_eq!(request.uri(), "https://api.anthropic.com/v1/messages");
    assert_eq!(request.headers()["anthropic-version"], "2023-06-01");
    assert_eq!(request.headers()["anthropic-beta"], "a-1,b-2");
    let profile = AnthropicProfile::compatible("x", "https://x.test/anthropic/v1/");
    let request = AnthropicCodec::new("m", profile).expect("a codec").encode(&ask()).expect("encodes");
    assert_eq!(request.uri(), "https://x.test/anthropic/v1/messages");
    assert!(request.headers().get("anthropic-beta").is_none());
}

#[test]
fn a_profile_that_cannot_work_is_refused_when_the_codec_is_made() {
    let mut profile = AnthropicProfile::compatible("x", "https://x.test");
    profile.version = "a\nb".into();
    for profile in [profile, AnthropicProfile::compatible("x", "nonsense")] {
        let error = AnthropicCodec::new("m", profile).expect_err("refused");
        assert_eq!(error.kind(), agent_core::ErrorKind::Config);
    }
}
