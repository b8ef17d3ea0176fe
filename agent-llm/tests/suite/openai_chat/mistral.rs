//! Mistral's dialect.

use std::sync::Arc;

use agent_core::{
    AssistantMessage, Block, History, Media, Message, ModelParams, ModelRequest, Part, ToolMessage, UserMessage,
    message::{MediaSource, Origin, Raw},
    testing::detached_run,
};
use agent_llm::{OpenAiChatCodec, Profile, RequestReader};
use serde_json::{Value, json};

use super::common::{ask, encoded, request};

fn mistral() -> OpenAiChatCodec {
    OpenAiChatCodec::new("m", Profile::named("mistral").expect("known")).expect("a codec")
}

fn with_parts(parts: Vec<Part>) -> ModelRequest {
    request([Message::User(UserMessage::new(parts))])
}

/// Returns the encoded ids of two calls, and those of their results.
fn ids(turn: AssistantMessage) -> [Vec<Value>; 2] {
    let results = turn.calls().map(|call| ToolMessage::text(call.id.clone(), "look", "there", false)).collect();
    let mut history = History::from_messages([Message::user("u")]).expect("paired");
    history.push_turn(turn, results).expect("a turn");
    let body = encoded(&mistral(), &ModelRequest::new(detached_run(history).cx().clone()));
    let calls = body["messages"][1]["tool_calls"].as_array().expect("calls");
    let calls = calls.iter().map(|call| call["id"].clone()).collect();
    [calls, [2, 3].map(|at| body["messages"][at]["tool_call_id"].clone()).to_vec()]
}

#[test]
fn ids_of_other_providers_become_such_as_it_takes_and_its_own_stay() {
    let calls = |a: &str, b: &str| vec![Block::tool_call(a, "look", "{}"), Block::tool_call(b, "look", "{}")];
    let [called, answered] = ids(AssistantMessage::new(calls("call_1", "toolu_01ABCDEFGHIJ")));
    assert_eq!(called, answered);
    assert!(
        called[0] != called[1]
            && called.iter().all(|id| {
                let id = id.as_str().expect("a text");
                id.len() == 9 && id.bytes().all(|byte| byte.is_ascii_alphanumeric())
            })
    );
    let [called, _] = ids(AssistantMessage::new(calls("D681PevKs", "abcdefghi")));
    assert_eq!(called, ["D681PevKs", "abcdefghi"], "they have the form");

    let json = json!({"role": "assistant", "content": "", "tool_calls": [
        {"id": "an-id-of-its-own", "type": "function", "function": {"name": "look", "arguments": "{}"}},
        {"id": "another", "type": "function", "function": {"name": "look", "arguments": "{}"}}]});
    let raw = Raw::from_value(Origin::new("openai-chat", "mistral", "m"), &json);
    let mut own = AssistantMessage::from_provider(calls("an-id-of-its-own", "another"), raw);
    for turn in [own.clone(), {
        own.blocks_mut();
        own
    }] {
        let [called, answered] = ids(turn);
        assert_eq!((&called, called[0].as_str()), (&answered, Some("an-id-of-its-own")));
    }
}

#[test]
fn a_document_is_an_address_or_an_id() {
    let pdf = Media::base64("aGk=", "application/pdf").with_name("a.pdf");
    let file = Media::new(MediaSource::File("f-1".into()));
    let url = Media::url("https://acme.test/a.pdf");
    let parts = [pdf, file, url].map(Part::Document).to_vec();
    let body = encoded(&mistral(), &with_parts(parts));
    let content = json!([
        {"type": "document_url", "document_url": "data:application/pdf;base64,aGk=", "document_name": "a.pdf"},
        {"type": "file", "file_id": "f-1"},
        {"type": "document_url", "document_url": "https://acme.test/a.pdf"},
    ]);
    assert_eq!(body["messages"][0]["content"], content);
    let read = mistral().decode_request(body.to_string().as_bytes()).expect("a request");
    let Some(Message::User(user)) = read.messages.get(0) else { panic!("a user's message") };
    let Part::Document(pdf) = &user.parts()[0] else { panic!("a document") };
    assert_eq!((&pdf.source, pdf.name.as_deref()), (&MediaSource::Base64("aGk=".into()), Some("a.pdf")));
    let again = encoded(&mistral(), &read.into_request(detached_run(History::default()).cx().clone()));
    assert_eq!(again, body);
}

#[test]
fn fields_of_the_profile_go_along_unless_the_request_says_otherwise() {
    let mut profile = Profile::named("mistral").expect("known");
    let fields = json!({"safe_prompt": true, "prediction": {"type": "content", "content": "x"}});
    profile.fields = fields.as_object().expect("an object").clone();
    let codec = OpenAiChatCodec::new("m", profile).expect("a codec");
    let mut req = ask();
    assert_eq!(encoded(&codec, &req)["safe_prompt"], json!(true));
    let mut params = ModelParams::default();
    params.extra.insert("safe_prompt".into(), json!(false));
    params.extra.insert("prediction".into(), json!({"content": "y"}));
    req.params = Arc::new(params);
    let body = encoded(&codec, &req);
    assert_eq!(
        (&body["safe_prompt"], &body["prediction"]),
        (&json!(false), &json!({"type": "content", "content": "y"}))
    );
}
