//! Encoding of the model's turns.

use agent_core::{
    AssistantMessage, Block, History, Media, Message, ToolMessage,
    message::{Citation, Origin, Raw, Reasoning},
};
use agent_llm::Codec;
use serde_json::{Value, json};

use super::{answer, codec, messages, origin, sent_back};

fn read(content: &Value) -> AssistantMessage {
    codec().decode(answer(content, "end_turn").as_bytes()).expect("an answer").message
}

fn everything() -> Value {
    json!([
        {"type": "thinking", "thinking": "hm", "signature": "s1"},
        {"type": "redacted_thinking", "data": "d1"},
        {"type": "text", "text": "a ", "citations": [{"type": "web_search_result_location", "url": "https://x", "cited_text": "q"}]},
        {"type": "server_tool_use", "id": "srv", "name": "web_search", "input": {"q": 1}},
        {"type": "web_search_tool_result", "tool_use_id": "srv", "content": [{"encrypted_content": "e"}]},
        {"type": "text", "text": "\n\n"},
        {"type": "tool_use", "id": "c1", "name": "f", "input": {"x": 1.50, "y": [null]}, "caller": {"type": "direct"}},
        {"type": "tool_use", "id": "c2", "name": "g", "input": {}},
        {"type": "of_tomorrow", "x": 1},
    ])
}

#[test]
fn an_unedited_message_goes_back_as_it_came() {
    let message = read(&everything());
    assert_eq!(sent_back(&codec(), &message), json!({"role": "assistant", "content": everything()}));
}

#[test]
fn an_edited_message_goes_back_block_by_block() {
    let mut message = read(&everything());
    message.blocks_mut();
    assert_eq!(sent_back(&codec(), &message)["content"], everything(), "an edit that changes nothing");

    let Block::Text(text) = &mut message.blocks_mut()[2] else { panic!("the text") };
    text.text = "b".into();
    let Block::ToolCall(call) = &mut message.blocks_mut()[6] else { panic!("the call") };
    call.arguments = r#"{"x":2}"#.into();
    let mut wanted = everything();
    wanted[2] = json!({"type": "text", "text": "b"});
    wanted[6] = json!({"type": "tool_use", "id": "c1", "name": "f", "input": {"x": 2}});
    assert_eq!(sent_back(&codec(), &message)["content"], wanted, "what cited the old words is gone with them");
}

#[test]
fn thinking_that_was_edited_is_not_sent() {
    let mut message = read(&json!([
        {"type": "thinking", "thinking": "a secret", "signature": "s"},
        {"type": "redacted_thinking", "data": "d"},
        {"type": "text", "text": "a"},
    ]));
    let Block::Reasoning(reasoning) = &mut message.blocks_mut()[0] else { panic!("the thinking") };
    reasoning.text = "***".into();
    let rest = json!([{"type": "redacted_thinking", "data": "d"}, {"type": "text", "text": "a"}]);
    assert_eq!(sent_back(&codec(), &message)["content"], rest);
}

#[test]
fn thinking_without_a_signature_is_not_sent() {
    for unsigned in
        [json!({"type": "thinking", "thinking": "hm"}), json!({"type": "thinking", "thinking": "hm", "signature": ""})]
    {
        let message = read(&json!([unsigned, {"type": "text", "text": "a"}]));
        let Block::Reasoning(reasoning) = &message.blocks()[0] else { panic!("thinking") };
        assert_eq!((reasoning.text.as_str(), &reasoning.signature), ("hm", &None));
        assert_eq!(sent_back(&codec(), &message)["content"], json!([{"type": "text", "text": "a"}]));
        let alone = read(&json!([unsigned]));
        assert_eq!(sent_back(&codec(), &alone)["content"], json!([{"type": "text", "text": "[empty]"}]));
    }
}

#[test]
fn empty_texts_are_not_sent_back() {
    let message =
        read(&json!([{"type": "text", "text": ""}, {"type": "tool_use", "id": "c", "name": "f", "input": {}}]));
    assert!(!message.is_edited() && message.blocks().len() == 1);
    let call = json!({"type": "tool_use", "id": "c", "name": "f", "input": {}});
    assert_eq!(sent_back(&codec(), &message)["content"], json!([call]));
}

#[test]
fn another_providers_message_is_told_in_its_blocks_without_the_reasoning() {
    let elsewhere = Origin::new("openai-responses", "other", "m");
    let raw = |json: &str| Raw::parse(elsewhere.clone(), json).expect("valid");
    let message = AssistantMessage::from_provider(
        vec![
            Block::Reasoning(Reasoning {
                text: "hm".into(),
                signature: Some("s".into()),
                encrypted: Some("e".into()),
                raw: Some(raw("{}")),
            }),
            Block::Text(agent_core::Text::new("look:").with_raw(raw(r#"{"annotations":[]}"#))),
            Block::Image(Media::url("u")),
            Block::Other(raw(r#"{"type":"web_search_call"}"#)),
            Block::tool_call("call|1.b", "f", ""),
            Block::text("  "),
            Block::text("then \n"),
        ],
        raw("{}"),
    );
    let call = json!({"type": "tool_use", "id": "id_call_7c1_2eb", "name": "f", "input": {}});
    let text = |text: &str| json!({"type": "text", "text": text});
    let wanted = json!([text("look:"), text("[image]"), call, text("then")]);
    assert_eq!(sent_back(&codec(), &message)["content"], wanted);
}

#[test]
fn a_message_of_nobodys_is_not_sent_with_reasoning() {
    let reasoning = Reasoning { text: "hm".into(), signature: Some("s".into()), ..Reasoning::default() };
    let message = AssistantMessage::new(vec![Block::Reasoning(reasoning)]);
    assert_eq!(sent_back(&codec(), &message)["content"], json!([{"type": "text", "text": "[empty]"}]));
}

#[test]
fn ids_that_the_api_refuses_are_mapped_in_calls_and_results_alike() {
    let ids = ["functions.f:0", "functions.f:1", "plain-1_a", "é"];
    let calls = ids.iter().map(|id| Block::tool_call(*id, "f", "{}")).collect();
    let results: Vec<_> = ids.iter().map(|id| ToolMessage::text(*id, "f", "v", false)).collect();
    let mut history = History::default();
    history.push_turn(AssistantMessage::new(calls), results.clone()).expect("a turn");
    let sent = messages(history);
    let seen = |blocks: &Value, name: &str| -> Vec<String> {
        let blocks = blocks.as_array().expect("blocks").iter();
        blocks.map(|block| block[name].as_str().expect("an id").to_owned()).collect()
    };
    let mapped = seen(&sent[0]["content"], "id");
    assert_eq!(mapped, ["id_functions_2ef_3a0", "id_functions_2ef_3a1", "plain-1_a", "id__c3_a9"]);
    assert_eq!(seen(&sent[1]["content"], "tool_use_id"), mapped);

    // A server's own ids are unrestricted.
    let content = json!([{"type": "tool_use", "id": "functions.f:0", "name": "f", "input": {}}]);
    let mut history = History::default();
    history.push_turn(read(&content), results[..1].to_vec()).expect("a turn");
    let sent = messages(history);
    assert_eq!(sent[0]["content"], content);
    assert_eq!(sent[1]["content"][0]["tool_use_id"], "functions.f:0");
}

#[test]
fn arguments_that_are_no_object_are_sent_in_one() {
    let input = |arguments: &str| {
        let message = AssistantMessage::new(vec![Block::tool_call("c", "f", arguments)]);
        sent_back(&codec(), &message)["content"][0]["input"].clone()
    };
    assert_eq!(input(r#" {"a": 1} "#), json!({"a": 1}));
    assert_eq!(input(""), json!({}));
    assert_eq!(input(r#"{"a": "#), json!({"INVALID_JSON": r#"{"a": "#}));
    assert_eq!(input("[1]"), json!({"INVALID_JSON": "[1]"}));
}

#[test]
fn another_provider_of_the_same_wire_gets_no_thinking() {
    let elsewhere = Origin::new("anthropic-messages", "other", "claude-opus-4-6");
    let json = r#"{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"s"}]}"#;
    let blocks = vec![
        Block::Reasoning(Reasoning { text: "hm".into(), signature: Some("s".into()), ..Reasoning::default() }),
        Block::text("a"),
    ];
    let message = AssistantMessage::from_provider(blocks, Raw::parse(elsewhere, json).expect("valid"));
    assert_eq!(sent_back(&codec(), &message)["content"], json!([{"type": "text", "text": "a"}]));
}

#[test]
fn a_raw_message_of_the_users_is_a_message_of_its_own() {
    let own = |text: &str| {
        let raw = Raw::parse(origin(), format!(r#"{{"role":"user","content":"{text}"}}"#)).expect("valid");
        Message::User(agent_core::UserMessage::new(vec![text.into()]).with_raw(raw))
    };
    let history = History::from_messages([own("a"), Message::user("b"), Message::user("c"), own("d")]).expect("paired");
    let text = |text: &str| json!({"type": "text", "text": text});
    let joined = json!({"role": "user", "content": [text("b"), text("c")]});
    let apart = |text: &str| json!({"role": "user", "content": text});
    assert_eq!(messages(history), json!([apart("a"), joined, apart("d")]));
}

#[test]
fn citations_are_typed_and_kept() {
    let message = read(&everything());
    let Block::Text(text) = &message.blocks()[2] else { panic!("the text") };
    let mut wanted = Citation::default();
    (wanted.url, wanted.quote) = (Some("https://x".into()), Some("q".into()));
    assert_eq!(text.citations, [wanted]);
    assert!(text.raw.is_some());
}
