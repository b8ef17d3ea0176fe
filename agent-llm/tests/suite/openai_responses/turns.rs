//! Encoding of the provider's turns.

use agent_core::{AssistantMessage, Block};
use serde_json::{Value, json};

use super::{
    call, codec,
    common::{encoded, request},
    message, read, reasoning,
};

/// Returns the encoded items of `said`.
fn back(said: &AssistantMessage) -> Value {
    let results =
        said.calls().map(|call| agent_core::ToolMessage::text(call.id.clone(), call.name.clone(), "done", false));
    let messages =
        [agent_core::Message::Assistant(said.clone())].into_iter().chain(results.map(agent_core::Message::Tool));
    let mut items = encoded(&codec(), &request(messages))["input"].take();
    items.as_array_mut().expect("a list").retain(|item| item["output"] != "done");
    items
}

fn without_id(item: &Value) -> Value {
    let mut item = item.clone();
    item.as_object_mut().expect("an object").remove("id");
    item
}

fn turn() -> [Value; 4] {
    let mut commentary = message("msg_1", "Let me look.");
    commentary["phase"] = "commentary".into();
    [reasoning("rs_1", &["Hm."]), commentary, call("a", "look", "{}"), call("b", "look", r#"{"n":1}"#)]
}

#[test]
fn an_unedited_turn_goes_back_item_for_item() {
    let turn = json!(turn());
    let said = read(&turn).message;
    assert_eq!(back(&said), turn);
    let mut touched = said;
    touched.blocks_mut();
    assert_eq!(back(&touched), turn, "nothing was changed");
}

#[test]
fn sources_without_an_address_are_not_sent_back() {
    let search = |sources: Value| {
        let action = json!({"type": "search", "query": "tides", "sources": sources});
        json!({"type": "web_search_call", "id": "ws_1", "status": "completed", "action": action})
    };
    let page = json!({"type": "url", "url": "https://a.test"});
    let mut said = read(&json!([search(json!([{"type": "api", "name": "oai-weather"}, page]))])).message;
    assert!(said.raw().expect("its JSON").json().contains("oai-weather"), "the history keeps them");
    assert_eq!(back(&said), json!([search(json!([page]))]));
    said.blocks_mut().push(Block::text("So."));
    assert_eq!(back(&said)[0], without_id(&search(json!([page]))), "nor of an edited turn");
}

#[test]
fn log_probabilities_that_are_none_are_not_sent_back() {
    let mut sent = message("msg_1", "Yes.");
    sent["content"][0]["logprobs"] = json!([]);
    assert_eq!(back(&read(&json!([sent])).message), json!([sent]), "an empty list is one");
    sent["content"][0]["logprobs"] = Value::Null;
    let said = read(&json!([sent])).message;
    sent["content"][0].as_object_mut().expect("an object").remove("logprobs");
    assert_eq!(back(&said), json!([sent]));
}

#[test]
fn a_changed_text_changes_its_item_alone_and_ids_go() {
    let turn = turn();
    let mut said = read(&json!(turn)).message;
    said.blocks_mut()[1] = Block::text("I look.");
    let mut changed = without_id(&turn[1]);
    changed["content"] = json!([{"type": "output_text", "text": "I look.", "annotations": []}]);
    assert_eq!(back(&said), json!([without_id(&turn[0]), changed, without_id(&turn[2]), without_id(&turn[3])]));
}

#[test]
fn what_is_left_of_a_turn_goes_back_without_ids() {
    let turn = turn();
    let mut said = read(&json!(turn)).message;
    said.blocks_mut().drain(..2);
    assert_eq!(back(&said), json!([without_id(&turn[2]), without_id(&turn[3])]));
    let Some(Block::ToolCall(call)) = said.blocks_mut().first_mut() else { panic!("a call") };
    call.arguments = r#"{"m":2}"#.into();
    let changed = json!({"type": "function_call", "call_id": "call_a", "name": "look", "arguments": r#"{"m":2}"#});
    assert_eq!(back(&said), json!([changed, without_id(&turn[3])]));
}

#[test]
fn reasoning_that_only_its_id_names_cannot_go_back_without() {
    let mut unsealed = reasoning("rs_1", &["Hm."]);
    unsealed.as_object_mut().expect("an object").remove("encrypted_content");
    let turn = [unsealed, message("msg_1", "Yes.")];
    let mut said = read(&json!(turn)).message;
    assert_eq!(back(&said), json!(turn), "unedited, the provider may still have it");
    said.blocks_mut().push(Block::text("No."));
    let added = json!({"role": "assistant", "content": "No."});
    assert_eq!(back(&said), json!([without_id(&turn[1]), added]));
}

#[test]
fn what_is_not_understood_stays_in_its_place_after_an_edit() {
    let search = json!({"id": "ws_1", "type": "web_search_call", "status": "completed", "action": {"type": "search"}});
    let refusal = json!({"type": "refusal", "refusal": "I cannot."});
    let said =
        json!({"id": "msg_1", "type": "message", "status": "completed", "content": [refusal], "role": "assistant"});
    let image = json!({"id": "ig_1", "type": "image_generation_call", "result": "aGk=", "status": "completed"});
    let turn = json!([search, said, image, message("msg_2", "Here.")]);
    let mut edited = read(&turn).message;
    *edited.blocks_mut().last_mut().expect("a block") = Block::text("There.");
    let items = back(&edited);
    assert_eq!(items[0], without_id(&search));
    assert_eq!(items[1], without_id(&said));
    assert_eq!(items[2], image, "an image is found by its id");
    assert_eq!(items[3]["content"][0]["text"], "There.");
}

#[test]
fn a_call_without_an_id_is_given_one_and_goes_back_with_it() {
    let nameless = json!({"type": "function_call", "name": "look", "arguments": "{}"});
    let said = read(&json!([nameless, call("b", "look", "{}")])).message;
    let ids: Vec<_> = said.calls().map(|call| call.id.to_string()).collect();
    assert_eq!(ids, ["call_r1_0", "call_b"]);
    assert_eq!(
        back(&said)[0],
        json!({"type": "function_call", "call_id": "call_r1_0", "name": "look", "arguments": "{}"})
    );
}
