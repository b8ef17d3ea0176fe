//! Claims about the protocols.

use agent::{
    Agent,
    testing::{ScriptedModel, Turn},
    tools::mcp::{Client as McpClient, Http},
};
use serde_json::{Value, json};

use super::{Stage, Way, claims};
use crate::protocols::scenes::acting;

claims! {
    open_ai_chat_answers
    open_ai_clients_run_their_own_tools
    ag_ui_streams_a_run
    a2a_answers_a_message
    mcp_calls_the_agent_and_asks_the_clients_user
}

async fn chat(stage: &Stage, messages: &[Value], tools: Value) -> Value {
    let body = json!({"model": "actor", "messages": messages, "tools": tools});
    let answer = stage.client().post("/v1/chat/completions", &body).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    answer.json()["choices"][0].clone()
}

async fn open_ai_chat_answers(way: Way) {
    let stage = way.serve(acting).await;
    let choice = chat(&stage, &[json!({"role": "user", "content": "tool"})], json!([])).await;
    let text = choice["message"]["content"].as_str().unwrap_or_default();
    assert!(text.contains("So it is: 17 degrees in Bern."), "{choice}");
}

async fn open_ai_clients_run_their_own_tools(way: Way) {
    let stage = way.serve(acting).await;
    let tools = json!([{"type": "function", "function": {"name": "pick_color", "parameters": {"type": "object",
        "properties": {"from": {"type": "array", "items": {"type": "string"}}}}}}]);
    let mut messages = vec![json!({"role": "user", "content": "color"})];
    let choice = chat(&stage, &messages, tools.clone()).await;
    assert_eq!(choice["finish_reason"], "tool_calls", "{choice}");
    let call = choice["message"]["tool_calls"][0]["id"].clone();
    messages.push(choice["message"].clone());
    messages.push(json!({"role": "tool", "tool_call_id": call, "content": "blue"}));
    let choice = chat(&stage, &messages, tools).await;
    assert_eq!(choice["message"]["content"], "So it is: blue.", "{choice}");
}

async fn ag_ui_streams_a_run(way: Way) {
    let stage = way.serve(acting).await;
    let input = json!({"threadId": "t", "runId": "r", "protocolVersion": "1.0", "tools": [], "context": [], "state": {},
        "messages": [{"id": "u1", "role": "user", "content": "hello"}], "forwardedProps": {}});
    let answer = stage.client().post("/ag-ui/actor", &input).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    assert!(answer.text.contains("You said: hello.") && answer.text.contains("RUN_FINISHED"), "{}", answer.text);
}

async fn a2a_answers_a_message(way: Way) {
    let stage = way.serve(acting).await;
    let message =
        json!({"messageId": "m1", "role": "user", "kind": "message", "parts": [{"kind": "text", "text": "tool"}]});
    let request = json!({"jsonrpc": "2.0", "id": 1, "method": "message/send", "params": {"message": message}});
    let task = stage.client().post("/a2a/actor", &request).await.json()["result"].clone();
    assert_eq!(task["status"]["state"], "completed", "{task}");
    assert!(task.to_string().contains("So it is: 17 degrees in Bern."), "{task}");
}

async fn mcp_calls_the_agent_and_asks_the_clients_user(way: Way) {
    let stage = way.serve(acting).await;
    let client = McpClient::builder("elsewhere", Http::new(format!("http://{}/mcp/actor", stage.serving.address)));
    let approve = async |_| Ok(Some(json!({"answer": r#"{"decision": "approve"}"#})));
    let client = client.elicitation_by(approve).build().expect("builds");
    let model = ScriptedModel::new([Turn::call("c1", "elsewhere_actor", json!({"task": "ask"})), Turn::text("Done.")]);
    let caller = Agent::builder("caller", model).toolset(client).build().expect("builds");
    let end = caller.run("Go.").await.expect("runs").finished().expect("it finishes");
    let results: Vec<_> = end
        .history
        .iter()
        .filter(|message| matches!(message, agent::Message::Tool(_)))
        .map(agent::Message::text)
        .collect();
    assert_eq!(results, ["So it is: refunded \"A-17\"."]);
}
