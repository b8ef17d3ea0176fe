//! `POST /ui/{agent}` over real sockets.

use serde_json::{Value, json};

use super::served::Served;

fn user(id: &str, text: &str) -> Value {
    json!({"id": id, "role": "user", "parts": [{"type": "text", "text": text}]})
}

fn of<'a>(parts: &'a [Value], kind: &str) -> Vec<&'a Value> {
    parts.iter().filter(|part| part["type"] == *kind).collect()
}

async fn run(served: &Served, messages: Value) -> Vec<Value> {
    let body = json!({"id": "chat", "messages": messages, "trigger": "submit-message",
        "tools": {"pick_color": {"description": "", "parameters": {"type": "object"}}}});
    let answer = served.post("/ui/actor", &body).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    assert!(answer.head.contains("x-vercel-ai-ui-message-stream: v1"), "{}", answer.head);
    assert!(answer.body.ends_with("data: [DONE]\n\n"), "{}", answer.body);
    answer.frames()
}

#[tokio::test]
async fn an_approval_is_asked_of_its_call_and_answered_in_the_message() {
    let served = Served::start().await;
    let parts = run(&served, json!([user("1", "ask")])).await;
    let request = of(&parts, "tool-approval-request")[0];
    assert_eq!(request["toolCallId"], "c1");
    let call = json!({"type": "dynamic-tool", "toolName": "refund", "toolCallId": "c1", "state": "approval-responded",
        "input": {}, "approval": {"id": request["approvalId"], "approved": true}});
    let answered = json!([user("1", "ask"), {"id": "2", "role": "assistant", "parts": [call]}]);
    let parts = run(&served, answered).await;
    assert_eq!(of(&parts, "tool-output-available")[0]["output"], "refunded \"A-17\"");
    assert!(parts[0].get("messageId").is_none(), "it goes on in the message that there is");
    assert_eq!(parts.last().expect("an end")["finishReason"], "stop");
}

#[tokio::test]
async fn a_call_of_the_clients_tool_is_open_until_its_output_comes() {
    let served = Served::start().await;
    let parts = run(&served, json!([user("1", "color")])).await;
    let call = of(&parts, "tool-input-available")[0].clone();
    assert_eq!((&call["toolName"], call.get("providerExecuted")), (&json!("pick_color"), None));
    assert_eq!(parts.last().expect("an end")["finishReason"], "tool-calls");
    let call = json!({"type": "dynamic-tool", "toolName": "pick_color", "toolCallId": "c1", "state": "output-available",
        "input": call["input"], "output": "red"});
    let parts = run(&served, json!([user("1", "color"), {"id": "2", "role": "assistant", "parts": [call]}])).await;
    let text: String = of(&parts, "text-delta").iter().filter_map(|part| part["delta"].as_str()).collect();
    assert_eq!(text, "So it is: red.");
}

#[tokio::test]
async fn sub_agents_are_parts_that_change_and_everything_that_begins_ends() {
    let served = Served::start().await;
    let parts = run(&served, json!([user("1", "agents")])).await;
    let mut agents = std::collections::BTreeMap::new();
    for part in of(&parts, "data-agent") {
        agents.insert(part["id"].to_string(), part["data"].clone());
    }
    assert_eq!(agents.len(), 4);
    assert!(agents.values().all(|agent| agent["status"] == "finished" && agent["text"] != ""), "{agents:#?}");
    for (begins, ends) in
        [("text-start", "text-end"), ("start-step", "finish-step"), ("tool-input-start", "tool-output-available")]
    {
        assert_eq!(of(&parts, begins).len(), of(&parts, ends).len(), "{begins}");
    }
    let failed = run(&served, json!([user("2", "fail")])).await;
    assert_eq!(of(&failed, "error")[0]["errorText"], "the model fell silent");
    assert_eq!(of(&run(&served, json!([user("3", "cancel")])).await, "abort").len(), 1);
}
