//! Encoding of requests.

use std::sync::Arc;

use agent_core::{
    AssistantMessage, Block, History, Media, Message, ModelParams, ModelRequest, OutputFormat, Part, SystemMessage,
    Text, ToolChoice, ToolMessage, ToolSpec, UserMessage,
    message::{Cache, MediaSource, Origin, Raw, Reasoning},
    model::Effort,
    testing::detached_run,
};
use agent_llm::{Codec, OpenAiChatCodec, Profile, SystemRole};
use serde_json::{Value, json};

use super::common::{ask, codec, encoded, request, sent_back};

fn messages(req: &ModelRequest) -> Value {
    encoded(&codec(), req)["messages"].clone()
}

fn origin() -> Origin {
    Origin::new("openai-chat", "acme", "another-model")
}

fn from_acme(blocks: Vec<Block>, json: &str) -> AssistantMessage {
    AssistantMessage::from_provider(blocks, Raw::parse(origin(), json).expect("valid JSON"))
}

fn named(profile: &str) -> OpenAiChatCodec {
    OpenAiChatCodec::new("m", Profile::named(profile).expect("known")).expect("a codec")
}

fn raw(json: &str) -> Raw {
    Raw::parse(origin(), json).expect("valid JSON")
}

fn sent(message: &AssistantMessage) -> Value {
    serde_json::from_str(&sent_back(&codec(), message)).expect("valid JSON")
}

fn turn(calls: &[&str], results: Vec<Vec<Part>>) -> History {
    let blocks = calls.iter().map(|id| Block::tool_call(*id, "look", "{}")).collect();
    let results = calls.iter().zip(results).map(|(id, parts)| ToolMessage::new(*id, "look", Arc::new(parts), false));
    let mut history = History::default();
    history.push_turn(AssistantMessage::new(blocks), results.collect()).expect("a turn");
    history
}

#[test]
fn the_roles_of_a_conversation() {
    let mut history = History::from_messages([Message::user("u"), Message::system("s")]).expect("paired");
    history.push(Message::assistant("a")).expect("pushes");
    let mut req = ModelRequest::new(detached_run(history).cx().clone());
    req.system = Some(SystemMessage::new(vec!["one".into(), "two".into()]));
    let roles = |system: &str| {
        json!([
            {"role": system, "content": "one\ntwo"},
            {"role": "user", "content": "u"},
            {"role": system, "content": "s"},
            {"role": "assistant", "content": "a"},
        ])
    };
    assert_eq!(messages(&req), roles("system"));
    let mut profile = Profile::openai();
    profile.system_role = SystemRole::Developer;
    let codec = OpenAiChatCodec::new("m", profile).expect("a codec");
    assert_eq!(encoded(&codec, &req)["messages"], roles("developer"));
}

#[test]
fn media_of_a_user_message_are_parts() {
    let mut named = Media::base64("QUJD", "application/pdf");
    named.name = Some("a.pdf".into());
    let stored = Media::new(MediaSource::File("f1".into()));
    let req = request([Message::User(UserMessage::new(vec![
        Part::text("see"),
        Part::Image(Media::url("https://x/y.png")),
        Part::Image(Media::base64("QUJD", "image/jpeg")),
        Part::Document(named),
        Part::Document(stored),
        Part::Other(Raw::parse(origin(), r#"{"type":"input_audio","input_audio":{}}"#).expect("valid")),
        Part::Other(Raw::parse(Origin::new("other", "p", "m"), r#"{"type":"strange"}"#).expect("valid")),
    ]))]);
    assert_eq!(
        messages(&req)[0]["content"],
        json!([
            {"type": "text", "text": "see"},
            {"type": "image_url", "image_url": {"url": "https://x/y.png"}},
            {"type": "image_url", "image_url": {"url": "data:image/jpeg;base64,QUJD"}},
            {"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,QUJD"}},
            {"type": "file", "file": {"file_id": "f1"}},
            {"type": "input_audio", "input_audio": {}},
        ]),
        "another provider's own part means nothing here"
    );
}

#[test]
fn a_user_message_of_which_nothing_can_be_shown_is_no_empty_one() {
    let foreign = Raw::parse(Origin::new("another", "other", "m"), r#"{"type":"of_tomorrow"}"#).expect("valid JSON");
    let message = Message::User(UserMessage::new(vec![Part::Other(foreign)]));
    let req = request([message]);
    assert_eq!(messages(&req), json!([{"role": "user", "content": "[empty]"}]));
}

#[test]
fn images_of_results_follow_all_results_of_the_turn() {
    let image = |url: &str| Part::Image(Media::url(url));
    let results = vec![vec![Part::text("one"), image("u1")], vec![Part::text("two")], vec![image("u3")]];
    let mut history = turn(&["c1", "c2", "c3"], results);
    history.push(Message::user("and?")).expect("pushes");
    let req = ModelRequest::new(detached_run(history).cx().clone());
    let messages = messages(&req);
    let tool = |id: &str, content: &str| json!({"role": "tool", "tool_call_id": id, "content": content});
    let picture = |url: &str| json!({"type": "image_url", "image_url": {"url": url}});
    let label = |id: &str| json!({"type": "text", "text": format!("From the result of look (call {id}):")});
    assert_eq!(messages[1], tool("c1", "one"));
    assert_eq!(messages[2], tool("c2", "two"));
    assert_eq!(messages[3], tool("c3", "The result is shown below."));
    let shown = [label("c1"), picture("u1"), label("c3"), picture("u3")];
    assert_eq!(messages[4], json!({"role": "user", "content": shown}));
    assert_eq!(messages[5], json!({"role": "user", "content": "and?"}));
}

#[test]
fn what_is_written_of_a_message_is_kept_and_stays_right_as_the_history_grows() {
    let codec = codec();
    let mut history = History::default();
    for step in 0..100 {
        history.push(Message::user(format!("question {step}"))).expect("pushes");
        let results = vec![vec![Part::text("seen"), Part::Image(Media::url(format!("u{step}")))], vec![]];
        for message in turn(&["a", "b"], results).iter().collect::<Vec<_>>().chunks(3) {
            let results = message[1..].iter().map(|m| m.as_tool().expect("a result").clone()).collect();
            history.push_turn(message[0].as_assistant().expect("a call").clone(), results).expect("a turn");
        }
        let grown = encoded(&codec, &ModelRequest::new(detached_run(history.clone()).cx().clone()));
        if step % 9 == 0 {
            let fresh = History::from_messages(history.iter().cloned()).expect("paired");
            let fresh = encoded(&codec, &ModelRequest::new(detached_run(fresh).cx().clone()));
            assert_eq!(grown, fresh);
        }
        assert_eq!(grown["messages"].as_array().expect("messages").len(), (step + 1) * 5);
    }
}

#[test]
fn a_codec_of_another_manner_does_not_use_what_the_first_wrote() {
    let req = request([Message::user("u"), Message::system("s")]);
    let mut profile = Profile::openai();
    profile.system_role = SystemRole::Developer;
    let other = OpenAiChatCodec::new("m", profile).expect("a codec");
    assert_eq!(encoded(&codec(), &req)["messages"][1]["role"], "system");
    assert_eq!(encoded(&other, &req)["messages"][1]["role"], "developer");
    assert_eq!(encoded(&codec(), &req)["messages"][1]["role"], "system");
}

#[test]
fn an_unedited_message_goes_back_byte_for_byte() {
    let json = r#"{ "role":"assistant", "content" : "a\u00e9",  "annotations":[], "x":1.50, "refusal":null }"#;
    assert_eq!(sent_back(&codec(), &from_acme(vec![Block::text("aé")], json)), json);
}

#[test]
fn an_edited_message_keeps_what_the_blocks_do_not_speak_of() {
    let json = r#"{"role":"assistant","content":"secret","reasoning_content":"hm","vendor":{"k":1},
        "tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"},"extra_content":{"s":"t"}}]}"#;
    let call = r#"{"id":"c","type":"function","function":{"name":"f","arguments":"{}"},"extra_content":{"s":"t"}}"#;
    let mut message = from_acme(
        vec![
            Block::reasoning("hm"),
            Block::text("secret"),
            Block::ToolCall(agent_core::ToolCall {
                id: "c".into(),
                name: "f".into(),
                arguments: "{}".into(),
                raw: Some(Raw::parse(origin(), call).expect("valid")),
            }),
        ],
        json,
    );
    message.blocks_mut()[1] = Block::text("***");
    let expected = json!({
        "role": "assistant", "content": "***", "reasoning_content": "hm", "vendor": {"k": 1},
        "tool_calls": [serde_json::from_str::<Value>(call).expect("valid")],
    });
    assert_eq!(sent(&message), expected);

    let Block::ToolCall(edited) = &mut message.blocks_mut()[2] else { panic!("the call") };
    edited.arguments = r#"{"n":1}"#.into();
    let function = json!({"name": "f", "arguments": r#"{"n":1}"#});
    assert_eq!(sent(&message)["tool_calls"][0], json!({"id": "c", "type": "function", "function": function}));
}

#[test]
fn another_providers_message_is_told_in_its_blocks_without_the_reasoning() {
    let elsewhere = Raw::parse(Origin::new("openai-chat", "other", "m"), r#"{"vendor":1}"#).expect("valid");
    let message = AssistantMessage::from_provider(
        vec![
            Block::Reasoning(Reasoning { text: "hm".into(), signature: Some("s".into()), ..Reasoning::default() }),
            Block::text("look:"),
            Block::Image(Media::url("u")),
            Block::tool_call("c", "f", ""),
        ],
        elsewhere,
    );
    let function = json!({"name": "f", "arguments": "{}"});
    let call = json!({"id": "c", "type": "function", "function": function});
    assert_eq!(sent(&message), json!({"role": "assistant", "content": "look:\n[image]", "tool_calls": [call]}));
}

#[test]
fn a_message_without_text_has_a_content_all_the_same() {
    let calls = AssistantMessage::new(vec![Block::tool_call("c", "f", "{}")]);
    assert_eq!(sent(&calls)["content"], Value::Null);
    let thoughts = AssistantMessage::new(vec![Block::reasoning("hm")]);
    assert_eq!(sent(&thoughts), json!({"role": "assistant", "content": ""}));
}

#[test]
fn a_server_that_refuses_its_own_fields_gets_only_the_reasoning_back() {
    let codec = named("groq");
    let json = r#"{"role":"assistant","content":"a","reasoning":"hm","channel":"final","executed_tools":[1]}"#;
    let raw = Raw::parse(codec.origin().clone(), json).expect("valid");
    let message = AssistantMessage::from_provider(vec![Block::reasoning("hm"), Block::text("a")], raw);
    let back: Value = serde_json::from_str(&sent_back(&codec, &message)).expect("valid");
    assert_eq!(back, json!({"role": "assistant", "content": "a", "reasoning": "hm"}));
}

#[test]
fn parameters_have_the_names_that_the_server_knows() {
    let mut req = ask();
    let mut params = ModelParams::default().temperature(0.5).max_tokens(7).tool_choice(ToolChoice::Tool("f".into()));
    (params.top_p, params.seed, params.stop) = (Some(0.9), Some(3), vec!["x".into()]);
    params.parallel_tool_calls = Some(false);
    req.params = Arc::new(params);
    req.stream = true;
    let body = encoded(&codec(), &req);
    let settings = json!({
        "model": "m", "messages": [{"role": "user", "content": "hi"}], "temperature": 0.5, "top_p": 0.9, "seed": 3,
        "max_tokens": 7, "stop": ["x"], "stream": true, "stream_options": {"include_usage": true},
    });
    assert_eq!(body, settings, "nothing of tools without tools");
    let openai = encoded(&named("openai"), &req);
    assert_eq!((&openai["max_completion_tokens"], openai.get("max_tokens")), (&json!(7), None));
    let mistral = encoded(&named("mistral"), &req);
    assert_eq!((&mistral["stream"], mistral.get("stream_options")), (&json!(true), None));
    assert_eq!((&mistral["random_seed"], mistral.get("seed")), (&json!(3), None));

    req.tools = [ToolSpec::new("f", "does", json!({"type": "object"}))].into_iter().collect();
    let body = encoded(&codec(), &req);
    let function = json!({"name": "f", "description": "does", "parameters": {"type": "object"}});
    assert_eq!(body["tools"], json!([{"type": "function", "function": function}]));
    assert_eq!(body["tool_choice"], json!({"type": "function", "function": {"name": "f"}}));
    assert_eq!(body["parallel_tool_calls"], json!(false));
    assert_eq!(encoded(&named("cerebras"), &req).get("parallel_tool_calls"), None, "it refuses the field");
}

#[test]
fn an_effort_is_asked_for_in_the_words_of_the_server() {
    let mut req = ask();
    let mut asked = |profile: &str, effort| {
        req.params = Arc::new(ModelParams::default().effort(effort));
        let mut body = encoded(&named(profile), &req);
        let fields = body.as_object_mut().expect("an object");
        fields.retain(|name, _| !matches!(name.as_str(), "model" | "messages"));
        body
    };
    assert_eq!(asked("openai", Effort::Minimal), json!({"reasoning_effort": "minimal"}));
    assert_eq!(asked("openai", Effort::None), json!({"reasoning_effort": "none"}));
    assert_eq!(asked("deepseek", Effort::None), json!({"thinking": {"type": "disabled"}}));
    assert_eq!(asked("deepseek", Effort::High), json!({"reasoning_effort": "high"}));
    assert_eq!(asked("mistral", Effort::Low), json!({"reasoning_effort": "high"}), "it knows none and high");
}

#[test]
fn a_form_of_the_answer_is_enforced_as_far_as_the_server_can() {
    let schema = json!({"type": "object", "properties": {}});
    let mut req = ask();
    let mut asked = |profile: &str, output: OutputFormat| {
        req.params = Arc::new(ModelParams::default().output(output));
        encoded(&named(profile), &req)["response_format"].clone()
    };
    let form = OutputFormat::new("city", schema.clone()).with_description("a city").strict(true);
    let strict = json!({"name": "city", "description": "a city", "schema": schema, "strict": true});
    assert_eq!(asked("openai", form.clone()), json!({"type": "json_schema", "json_schema": strict}));
    let lax = json!({"name": "city", "schema": schema});
    assert_eq!(asked("openai", OutputFormat::new("city", schema)), json!({"type": "json_schema", "json_schema": lax}));
    assert_eq!(asked("openai", OutputFormat::json()), json!({"type": "json_object"}));
    assert_eq!(asked("deepseek", form), json!({"type": "json_object"}), "it takes no schema");
}

#[test]
fn marks_for_the_cache_go_where_the_server_takes_them() {
    let mut history = turn(&["c"], vec![vec![Text::new("r").with_cache(Cache::Short).into()]]);
    history
        .push(Message::User(UserMessage::new(vec![
            Text::new("u").with_cache(Cache::Long).into(),
            Part::Image(Media::url("i").with_cache(Cache::Short)),
        ])))
        .expect("pushes");
    let mut req = ModelRequest::new(detached_run(history).cx().clone());
    req.system = Some(SystemMessage::new(vec![Text::new("s").with_cache(Cache::Short).into()]));
    req.tools = [ToolSpec::new("f", "does", json!({})).with_cache(Cache::Short)].into_iter().collect();
    let (short, long) = (json!({"type": "ephemeral"}), json!({"type": "ephemeral", "ttl": "1h"}));
    let text = |text: &str, mark: &Value| json!({"type": "text", "text": text, "cache_control": mark});

    let marked = encoded(&named("openrouter"), &req);
    assert_eq!(marked["messages"][0]["content"], json!([text("s", &short)]));
    assert_eq!(marked["messages"][2]["content"], json!([text("r", &short)]));
    let image = json!({"type": "image_url", "image_url": {"url": "i"}, "cache_control": short});
    assert_eq!(marked["messages"][3]["content"], json!([text("u", &long), image]));
    assert_eq!(marked["tools"][0]["cache_control"], short);

    let plain = encoded(&named("openai"), &req);
    assert!(!plain.to_string().contains("cache_control"), "{plain}");
    assert_eq!(plain["messages"][0]["content"], "s");
    assert_eq!(encoded(&named("openrouter"), &req), marked, "what one wrote is not the other's");
}

#[test]
fn a_providers_own_json_of_any_message_and_tool_goes_back_to_it() {
    let system = r#"{"role":"system","content":"s","name":"house"}"#;
    let user = r#"{"role":"user","content":"u","name":"ann"}"#;
    let result = r#"{"role":"tool","tool_call_id":"c","content":[{"type":"image_url","image_url":{"url":"i"}}]}"#;
    let tool = r#"{"type":"function","function":{"name":"f","strict":true}}"#;
    let search = r#"{"type":"web_search"}"#;
    let mut history = History::default();
    history.push(Message::User(UserMessage::new(vec!["u".into()]).with_raw(raw(user)))).expect("pushes");
    let parts = Arc::new(vec![Part::Image(Media::url("i"))]);
    let answer = ToolMessage::new("c", "f", parts, false).with_raw(raw(result));
    history.push_turn(AssistantMessage::new(vec![Block::tool_call("c", "f", "{}")]), vec![answer]).expect("a turn");
    let mut req = ModelRequest::new(detached_run(history).cx().clone());
    req.system = Some(SystemMessage::new(vec!["s".into()]).with_raw(raw(system)));
    let schema = json!({"type": "object"});
    let specs = [ToolSpec::new("f", "", schema.clone()).with_raw(raw(tool)), ToolSpec::server_side("s", raw(search))];
    req.tools = specs.into_iter().collect();

    let read = |json: &str| serde_json::from_str::<Value>(json).expect("JSON");
    let own = encoded(&codec(), &req);
    let messages = own["messages"].as_array().expect("messages");
    assert_eq!((&messages[0], &messages[1], &messages[3]), (&read(system), &read(user), &read(result)));
    assert_eq!(messages.len(), 4, "the image is shown in the result, and not once more");
    assert_eq!(own["tools"], json!([read(tool), read(search)]));

    let elsewhere = encoded(&named("openai"), &req);
    assert_eq!(elsewhere["messages"][1], json!({"role": "user", "content": "u"}));
    assert_eq!(elsewhere["messages"].as_array().expect("messages").len(), 5);
    let complete = json!({"type": "object", "properties": {}});
    let function = json!({"name": "f", "description": "", "parameters": complete});
    assert_eq!(elsewhere["tools"], json!([{"type": "function", "function": function}]));
}

#[test]
fn without_a_tool_to_tell_of_nothing_is_said_of_tools() {
    let mut req = ask();
    let elsewhere = Raw::parse(Origin::new("other", "p", "m"), "{}").expect("valid");
    req.tools = [ToolSpec::server_side("search", elsewhere)].into_iter().collect();
    req.params = Arc::new(ModelParams::default().tool_choice(ToolChoice::Auto));
    assert_eq!(encoded(&codec(), &req), json!({"model": "m", "messages": [{"role": "user", "content": "hi"}]}));
}

#[test]
fn a_limit_in_the_extra_fields_is_the_only_one() {
    let mut req = ask();
    req.params = Arc::new(ModelParams::default().max_tokens(7).extra("max_completion_tokens", 9));
    let body = encoded(&codec(), &req);
    assert_eq!((body.get("max_tokens"), &body["max_completion_tokens"]), (None, &json!(9)));
}

#[test]
fn extra_fields_are_merged_last_and_deeply() {
    let mut req = ask();
    req.stream = true;
    req.params = Arc::new(
        ModelParams::default()
            .temperature(0.5)
            .extra("temperature", 1)
            .extra("stream_options", json!({"more": true}))
            .extra("tools", json!([{"type": "web_search"}])),
    );
    let body = encoded(&codec(), &req);
    assert_eq!(body["temperature"], 1);
    assert_eq!(body["stream_options"], json!({"include_usage": true, "more": true}));
    assert_eq!(body["tools"], json!([{"type": "web_search"}]));
    assert_eq!(body["messages"].as_array().expect("messages").len(), 1);
}

#[test]
fn an_address_may_have_a_query() {
    let profile = Profile::compatible("x", "https://x.test/deployments/d/?api-version=7");
    let request = OpenAiChatCodec::new("m", profile).expect("a codec").encode(&ask()).expect("encodes");
    assert_eq!(request.uri(), "https://x.test/deployments/d/chat/completions?api-version=7");
}

#[test]
fn what_of_a_result_cannot_be_shown_is_left_out() {
    let foreign = Part::Other(Raw::parse(Origin::new("other", "p", "m"), "{}").expect("valid"));
    let req = ModelRequest::new(detached_run(turn(&["c"], vec![vec![foreign]])).cx().clone());
    assert_eq!(messages(&req)[1], json!({"role": "tool", "tool_call_id": "c", "content": ""}));
    assert_eq!(messages(&req).as_array().expect("messages").len(), 2);
}

#[test]
fn an_address_that_is_none_is_refused_when_the_codec_is_made() {
    for url in ["", "api.example.com/v1", "ftp://x/v1", "http://"] {
        let error = OpenAiChatCodec::new("m", Profile::compatible("x", url)).expect_err(url);
        assert_eq!(error.kind(), agent_core::ErrorKind::Config, "{url}");
    }
    let error = OpenAiChatCodec::new("m", Profile::named("azure").expect("known")).expect_err("whose resource?");
    assert!(error.message().contains(r#"Profile::with("resource", ..)"#), "{error}");
}
