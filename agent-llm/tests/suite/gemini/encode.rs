//! Encoding of contents.

use std::sync::Arc;

use agent_core::{
    AssistantMessage, Block, History, Media, Message, ModelRequest, Part, SystemMessage, Text, ToolMessage,
    UserMessage,
    message::{MediaSource, Origin, Raw, Reasoning},
    testing::detached_run,
};
use agent_llm::Codec;
use serde_json::{Value, json};

use super::{
    common::{encoded, request},
    support::{call, codec, contents, newer, own, read, response, sent_back, signed, text, thought, turn},
};

fn answered(message: AssistantMessage, results: Vec<(Vec<Part>, bool)>) -> History {
    let results = message.calls().zip(results).map(|(call, (parts, is_error))| {
        ToolMessage::new(call.id.clone(), call.name.clone(), Arc::new(parts), is_error)
    });
    let results = results.collect();
    let mut history = History::from_messages([Message::user("u")]).expect("paired");
    history.push_turn(message, results).expect("a turn");
    history
}

fn calls(names: &[&str]) -> AssistantMessage {
    let blocks = names.iter().enumerate().map(|(at, name)| Block::tool_call(format!("made-up-{at}"), *name, "{}"));
    AssistantMessage::new(blocks.collect())
}

fn user(parts: Value) -> Value {
    json!({"role": "user", "parts": parts})
}

fn model(parts: Value) -> Value {
    json!({"role": "model", "parts": parts})
}

fn result(name: &str, response: Value) -> Value {
    json!({"functionResponse": {"name": name, "response": response}})
}

#[test]
fn the_address_says_whether_to_stream() {
    let mut req = request([Message::user("u")]);
    let uri = |req: &ModelRequest| codec().encode(req).expect("encodes").uri().to_string();
    assert_eq!(uri(&req), "http://acme.test/v1beta/models/gemini-2.5-flash:generateContent");
    req.stream = true;
    assert_eq!(uri(&req), "http://acme.test/v1beta/models/gemini-2.5-flash:streamGenerateContent?alt=sse");
}

#[test]
fn the_roles_of_a_conversation() {
    let mut history = History::from_messages([Message::user("u"), Message::system("s")]).expect("paired");
    history.push(Message::assistant("a")).expect("pushes");
    let mut req = ModelRequest::new(detached_run(history).cx().clone());
    req.system = Some(SystemMessage::new(vec!["one".into(), "two".into()]));
    let body = encoded(&codec(), &req);
    assert_eq!(body["systemInstruction"], json!({"parts": [{"text": "one"}, {"text": "two"}]}));
    let said = [user(json!([text("u")])), user(json!([text("s")])), model(json!([text("a")]))];
    assert_eq!(body["contents"], json!(said));
}

#[test]
fn a_system_prompt_in_the_providers_words_goes_as_it_is() {
    let mut req = request([Message::user("u")]);
    let words = json!({"role": "user", "parts": [{"text": "s", "x": 1}]});
    for (raw, name) in
        [(words.clone(), "systemInstruction"), (json!({"system_instruction": words}), "system_instruction")]
    {
        req.system = Some(SystemMessage::new(vec!["s".into()]).with_raw(own(&raw)));
        assert_eq!(encoded(&codec(), &req)[name], words);
    }
    req.system = Some(SystemMessage::new(vec![]));
    assert_eq!(encoded(&codec(), &req).as_object().expect("a body").len(), 1);
}

#[test]
fn media_are_parts() {
    let stored = Media::new(MediaSource::File("https://files.test/f1".into())).with_mime("application/pdf");
    let req = request([Message::User(UserMessage::new(vec![
        Part::text("see"),
        Part::Image(Media::url("https://x/y.png").with_mime("image/png")),
        Part::Image(Media::base64("QUJD", "image/jpeg")),
        Part::Image(Media::url("data:image/gif;base64,QUJD")),
        Part::Document(stored),
        Part::text(""),
        Part::Other(own(&json!({"fileData": {"fileUri": "gs://v"}, "videoMetadata": {"fps": 1}}))),
        Part::Other(Raw::parse(Origin::new("other", "p", "m"), r#"{"type":"strange"}"#).expect("valid")),
    ]))]);
    let parts = json!([
        {"text": "see"},
        {"fileData": {"mimeType": "image/png", "fileUri": "https://x/y.png"}},
        {"inlineData": {"mimeType": "image/jpeg", "data": "QUJD"}},
        {"inlineData": {"mimeType": "image/gif", "data": "QUJD"}},
        {"fileData": {"mimeType": "application/pdf", "fileUri": "https://files.test/f1"}},
        {"fileData": {"fileUri": "gs://v"}, "videoMetadata": {"fps": 1}},
    ]);
    assert_eq!(encoded(&codec(), &req)["contents"], json!([user(parts)]));
}

#[test]
fn the_results_of_a_turn_are_one_content_in_call_order() {
    let results = vec![
        (vec![Part::text("plain")], false),
        (vec![Part::text(r#"{"n": 1}"#)], false),
        (vec![Part::text(r#"{"code": 7}"#)], true),
        (vec![Part::text("one"), Part::text("two")], false),
    ];
    let mut history = answered(calls(&["a", "b", "c", "d"]), results);
    history.push(Message::user("and?")).expect("pushes");
    let results = json!([
        result("a", json!({"result": "plain"})),
        result("b", json!({"n": 1})),
        result("c", json!({"error": r#"{"code": 7}"#})),
        result("d", json!({"result": "one\ntwo"})),
    ]);
    let contents = contents(&codec(), history);
    assert_eq!(contents[2], user(results));
    assert_eq!(contents[3], user(json!([text("and?")])));
}

#[test]
fn ids_go_back_where_the_provider_gave_them_and_made_up_ones_do_not() {
    let mut given = call("f", json!({}));
    given["functionCall"]["id"] = "given".into();
    let message = read(&response(&[given.clone(), call("g", json!({}))], Some("STOP"))).message;
    let ids: Vec<_> = message.calls().map(|call| &*call.id).collect();
    assert_eq!(ids, ["given", "call_r1_1"]);
    for is_edited in [false, true] {
        let mut message = message.clone();
        if is_edited {
            message.blocks_mut();
        }
        let contents = contents(&codec(), turn(&message));
        assert_eq!(contents[1], model(json!([given, call("g", json!({}))])));
        let mut first = result("f", json!({"result": "done"}));
        first["functionResponse"]["id"] = "given".into();
        assert_eq!(contents[2], user(json!([first, result("g", json!({"result": "done"}))])));
    }
}

#[test]
fn media_of_results_follow_the_turn_or_are_in_it_as_the_model_can_take_them() {
    let image = Part::Image(Media::base64("QUJD", "image/png"));
    let results = vec![(vec![Part::text("one"), image.clone()], false), (vec![Part::text("two")], false)];
    let mut history = answered(calls(&["a", "b"]), results);
    history.push(Message::user("and?")).expect("pushes");
    let picture = json!({"inlineData": {"mimeType": "image/png", "data": "QUJD"}});
    let older = contents(&codec(), history.clone());
    assert_eq!(older[2]["parts"][0], result("a", json!({"result": "one"})));
    assert_eq!(older[3], user(json!([text("From the result of a:"), picture])));
    assert_eq!(older[4], user(json!([text("and?")])));

    let newer = contents(&newer(), history);
    let mut shown = result("a", json!({"result": "one"}));
    shown["functionResponse"]["parts"] = json!([picture]);
    assert_eq!(newer[2]["parts"][0], shown);
    assert_eq!(newer[3], user(json!([text("and?")])));

    let last = contents(&codec(), answered(calls(&["a"]), vec![(vec![image], false)]));
    assert_eq!(last[2]["parts"][0], result("a", json!({"result": "The result is shown below."})));
    assert_eq!(last[3]["parts"][1], picture);
}

#[test]
fn what_is_written_of_a_message_is_kept_and_stays_right_as_the_history_grows() {
    let codec = codec();
    let mut history = History::default();
    for step in 0..100 {
        history.push(Message::user(format!("question {step}"))).expect("pushes");
        let image = Part::Image(Media::base64(format!("{step}"), "image/png"));
        let results = vec![(vec![Part::text("seen"), image], false), (vec![], false)];
        let turn: Vec<_> = answered(calls(&["a", "b"]), results).iter().skip(1).cloned().collect();
        let results = turn[1..].iter().map(|m| m.as_tool().expect("a result").clone()).collect();
        history.push_turn(turn[0].as_assistant().expect("a call").clone(), results).expect("a turn");
        let grown = contents(&codec, history.clone());
        if step % 9 == 0 {
            let fresh = History::from_messages(history.iter().cloned()).expect("paired");
            assert_eq!(grown, contents(&codec, fresh));
        }
        assert_eq!(grown.as_array().expect("contents").len(), (step + 1) * 4);
    }
}

#[test]
fn a_codec_of_another_generation_does_not_use_what_the_first_wrote() {
    let message = calls(&["f"]);
    let history = turn(&message);
    let part = |codec: &agent_llm::GeminiCodec| contents(codec, history.clone())[1]["parts"][0].clone();
    assert_eq!(part(&codec()), call("f", json!({})));
    assert_eq!(part(&newer())["thoughtSignature"], "skip_thought_signature_validator");
    assert_eq!(part(&codec()), call("f", json!({})));
}

#[test]
fn an_unedited_turn_goes_back_as_it_came() {
    let content = r#"{ "role":"model", "parts" : [ {"text":"a\u00e9", "thoughtSignature" : "s\u003d", "x":1.50} ] }"#;
    let body = format!(r#"{{"candidates":[{{"content":{content},"finishReason":"STOP"}}]}}"#);
    let message = codec().decode(body.as_bytes()).expect("an answer").message;
    let req = ModelRequest::new(detached_run(turn(&message)).cx().clone());
    let sent = String::from_utf8(codec().encode(&req).expect("encodes").body().to_vec()).expect("UTF-8");
    assert!(sent.contains(content), "{sent}");
}

#[test]
fn an_edited_turn_keeps_the_words_of_what_was_not_edited() {
    let parts = [
        signed(thought("hm")),
        text("secret"),
        signed(call("f", json!({"x": 1}))),
        json!({"executableCode": {"code": "1", "language": "PYTHON"}}),
        signed(text("a")),
        text("b"),
        signed(text("")),
    ];
    let message = read(&response(&parts, Some("STOP"))).message;
    assert_eq!(sent_back(&codec(), &message), json!({"parts": parts, "role": "model"}), "unedited");

    let mut edited = message.clone();
    edited.blocks_mut();
    assert_eq!(sent_back(&codec(), &edited), model(json!(parts)), "marked as edited, and nothing changed");

    let Block::ToolCall(changed) = &mut edited.blocks_mut()[2] else { panic!("the call") };
    changed.arguments = r#"{"x":2}"#.into();
    let Block::Text(changed) = &mut edited.blocks_mut()[4] else { panic!("the text") };
    changed.text = "c".into();
    let mut expected = parts.to_vec();
    expected[2] = signed(call("f", json!({"x": 2})));
    expected.splice(4..6, [text("c")]);
    assert_eq!(sent_back(&codec(), &edited), model(json!(expected)), "a call is refused without its signature");
}

#[test]
fn another_providers_turn_is_told_in_its_blocks_without_the_reasoning() {
    let elsewhere = Raw::parse(Origin::new("gemini-generate", "other", "m"), r#"{"parts":[]}"#).expect("valid");
    let own_words = Raw::parse(Origin::new("gemini-generate", "other", "m"), r#"{"x":1}"#).expect("valid");
    let blocks = vec![
        Block::Reasoning(Reasoning { text: "hm".into(), signature: Some("s".into()), ..Reasoning::default() }),
        Block::Text(Text::new("look:").with_raw(own_words.clone())),
        Block::Image(Media::base64("QUJD", "image/png")),
        Block::Other(own_words),
        Block::tool_call("c1", "f", ""),
        Block::tool_call("c2", "g", "not JSON"),
    ];
    let message = AssistantMessage::from_provider(blocks, elsewhere);
    let parts = |first: Value| {
        let image = json!({"inlineData": {"mimeType": "image/png", "data": "QUJD"}});
        model(json!([text("look:"), image, first, call("g", json!({"arguments": "not JSON"}))]))
    };
    assert_eq!(sent_back(&codec(), &message), parts(call("f", json!({}))));
    let mut unsigned = call("f", json!({}));
    unsigned["thoughtSignature"] = "skip_thought_signature_validator".into();
    assert_eq!(sent_back(&newer(), &message), parts(unsigned), "only the first call must be signed");
}

#[test]
fn a_message_of_which_nothing_can_be_said_is_left_out() {
    let thoughts = AssistantMessage::new(vec![Block::reasoning("hm")]);
    let foreign = Part::Other(Raw::parse(Origin::new("other", "p", "m"), "{}").expect("valid"));
    let history = [Message::Assistant(thoughts), Message::User(UserMessage::new(vec![foreign])), Message::user("u")];
    let history = History::from_messages(history).expect("paired");
    assert_eq!(contents(&codec(), history), json!([user(json!([text("u")]))]));
    assert_eq!(contents(&codec(), History::default()), json!([]));
}
