//! `/v1` over real sockets.

use serde_json::{Value, json};

use super::served::Served;

fn pick_color() -> Value {
    json!({"type": "function", "function": {"name": "pick_color", "parameters": {"type": "object"}}})
}

fn user(text: &str) -> Value {
    json!({"role": "user", "content": text})
}

/// Returns the text of a stream of chunks.
fn streamed(frames: &[Value]) -> String {
    frames.iter().filter_map(|chunk| chunk.pointer("/choices/0/delta/content")?.as_str()).collect()
}

#[tokio::test]
async fn a_chat_completion_is_the_same_whole_and_in_chunks() {
    let served = Served::start().await;
    for scene in ["hello", "tool", "agents", "reasoning", "again"] {
        let body = |stream: bool| json!({"model": "actor", "messages": [user(scene)], "stream": stream, "stream_options": {"include_usage": true}});
        let whole = served.post("/v1/chat/completions", &body(false)).await.json();
        let in_chunks = served.post("/v1/chat/completions", &body(true)).await;
        assert!(in_chunks.body.ends_with("data: [DONE]\n\n"), "{}", in_chunks.body);
        let frames = in_chunks.frames();
        let text = whole["choices"][0]["message"]["content"].as_str().expect("a text");
        match scene {
            "again" => assert_eq!(text, "You said: again.", "what was taken back is not said"),
            _ => assert_eq!(streamed(&frames), text),
        }
        assert_eq!(whole["choices"][0]["finish_reason"], "stop");
        assert_eq!(frames.last().expect("usage")["usage"], whole["usage"]);
    }
}

#[tokio::test]
async fn a_call_of_the_clients_tool_is_answered_in_the_next_request() {
    let served = Served::start().await;
    let mut messages = vec![user("both")];
    let body = |messages: &[Value]| json!({"model": "actor", "messages": messages, "tools": [pick_color()]});
    let first = served.post("/v1/chat/completions", &body(&messages)).await.json();
    let choice = &first["choices"][0];
    assert_eq!(choice["finish_reason"], "tool_calls");
    let call = &choice["message"]["tool_calls"][0];
    assert_eq!(call["function"], json!({"name": "pick_color", "arguments": r#"{"from":["red"]}"#}));
    messages.push(choice["message"].clone());
    messages.push(json!({"role": "tool", "tool_call_id": call["id"], "content": "red"}));
    let second = served.post("/v1/chat/completions", &body(&messages)).await.json();
    assert_eq!(second["choices"][0]["message"]["content"], "So it is: 17 degrees in Bern, red.", "{second}");

    // If the run is unknown, the messages are the history.
    messages[1]["tool_calls"][0]["id"] = "c9@nobody".into();
    messages[2]["tool_call_id"] = "c9@nobody".into();
    let elsewhere = served.post("/v1/chat/completions", &body(&messages)).await.json();
    assert_eq!(elsewhere["choices"][0]["message"]["content"], "So it is: red.", "{elsewhere}");
}

#[tokio::test]
async fn a_conversation_is_in_the_messages_or_in_the_session() {
    let served = Served::start().await;
    let history = json!([user("hi"), {"role": "assistant", "content": "hello"}, user("and now")]);
    let body = json!({"model": "actor", "messages": history});
    let answer = served.post("/v1/chat/completions", &body).await.json();
    assert_eq!(answer["choices"][0]["message"]["content"], "You said: and now.");

    let headers = "content-type: application/json\r\nagent-session: garden\r\n";
    for text in ["one", "two"] {
        let body = json!({"model": "actor", "messages": [user(text)]}).to_string();
        assert_eq!(served.send("POST", "/v1/chat/completions", headers, &body).await.status, 200);
    }
    let again = json!({"model": "actor", "messages": []}).to_string();
    let refused = served.send("POST", "/v1/chat/completions", headers, &again).await;
    assert_eq!((refused.status, &refused.json()["error"]["type"]), (400, &json!("invalid_request_error")));
}

#[tokio::test]
async fn a_response_has_the_items_of_its_stream() {
    let served = Served::start().await;
    for scene in ["hello", "tool", "reasoning", "again", "agents"] {
        let body = |stream: bool| json!({"model": "actor", "input": scene, "stream": stream});
        let whole = served.post("/v1/responses", &body(false)).await.json();
        assert_eq!(whole["status"], "completed", "{whole}");
        let frames = served.post("/v1/responses", &body(true)).await.frames();
        let numbers: Vec<_> = frames.iter().filter_map(|frame| frame["sequence_number"].as_u64()).collect();
        assert!(numbers.iter().copied().eq(0..numbers.len() as u64), "{numbers:?}");
        let last = frames.last().expect("an end");
        assert_eq!(last["type"], "response.completed");
        let kinds = |response: &Value| -> Vec<Value> {
            response["output"].as_array().expect("items").iter().map(|item| item["type"].clone()).collect()
        };
        assert_eq!(kinds(&last["response"]), kinds(&whole));
        let expected = match scene {
            "tool" => vec!["message", "mcp_call", "message"],
            "reasoning" => vec!["reasoning", "message"],
            "agents" => vec!["mcp_call", "mcp_call", "message"],
            _ => vec!["message"],
        };
        assert_eq!(kinds(&whole), expected);
    }
}

#[tokio::test]
async fn a_response_is_gone_on_with_by_its_id_and_by_the_results_of_its_calls() {
    let served = Served::start().await;
    let tool = json!({"type": "function", "name": "pick_color", "parameters": {"type": "object"}, "strict": false});
    let ask = json!({"model": "actor", "input": "color", "tools": [tool]});
    let first = served.post("/v1/responses", &ask).await.json();
    let call = &first["output"][0];
    assert_eq!(
        (&call["type"], &call["name"], &first["status"]),
        (&json!("function_call"), &json!("pick_color"), &json!("completed"))
    );
    let output = json!({"type": "function_call_output", "call_id": call["call_id"], "output": "blue"});
    let go_on = json!({"model": "actor", "input": [output], "previous_response_id": first["id"], "tools": [tool]});
    let second = served.post("/v1/responses", &go_on).await.json();
    assert_eq!(second["output"][0]["content"][0]["text"], "So it is: blue.", "{second}");

    let next = json!({"model": "actor", "input": "hello", "previous_response_id": second["id"]});
    let third = served.post("/v1/responses", &next).await.json();
    assert_eq!(third["output"][0]["content"][0]["text"], "You said: hello.", "{third}");
    let late = served.post("/v1/responses", &next).await;
    assert_eq!((late.status, &late.json()["error"]["code"]), (409, &json!("stale")));
}

#[tokio::test]
async fn no_client_is_told_to_repeat_a_run_that_began() {
    let served = Served::start().await;
    for (scene, status) in [("ask", 409), ("fail", 500), ("cancel", 409)] {
        let told = served.post("/v1/chat/completions", &json!({"model": "actor", "messages": [user(scene)]})).await;
        assert_eq!(told.status, status, "{told:?}");
        assert!(told.head.contains("x-should-retry: false"), "{scene}: {}", told.head);
        let told = served.post("/v1/responses", &json!({"model": "actor", "input": scene})).await;
        assert!(told.status >= 400 && told.head.contains("x-should-retry: false"), "{scene}: {}", told.head);
    }
    let unknown = served.post("/v1/chat/completions", &json!({"model": "nobody", "messages": [user("hi")]})).await;
    assert!(!unknown.head.contains("x-should-retry"), "nothing began: {}", unknown.head);
}

#[tokio::test]
async fn an_idempotency_key_makes_a_completion_safe_to_send_again() {
    let served = Served::start().await;
    let headers = "content-type: application/json\r\nidempotency-key: 7f3c\r\n";
    let body = json!({"model": "actor", "messages": [user("hello")]}).to_string();
    let first = served.send("POST", "/v1/chat/completions", headers, &body).await.json();
    let again = served.send("POST", "/v1/chat/completions", headers, &body).await.json();
    assert_eq!((&first["id"], &first["choices"]), (&again["id"], &again["choices"]));
    let other = json!({"model": "actor", "messages": [user("tool")]}).to_string();
    let refused = served.send("POST", "/v1/chat/completions", headers, &other).await;
    assert_eq!((refused.status, &refused.json()["error"]["code"]), (422, &json!("idempotency_mismatch")));
}

#[tokio::test]
async fn a_response_and_what_follows_a_call_of_the_clients_are_given_again_for_their_keys() {
    let served = Served::start().await;
    let send = async |path: &str, key: &str, body: &Value| {
        let headers = format!("content-type: application/json\r\nidempotency-key: {key}\r\n");
        served.send("POST", path, &headers, &body.to_string()).await
    };
    let hello = json!({"model": "actor", "input": "hello"});
    let first = send("/v1/responses", "k1", &hello).await.json();
    assert_eq!(first["output"][0]["content"][0]["text"], "You said: hello.");
    assert_eq!(send("/v1/responses", "k1", &hello).await.json(), first);

    let mut messages = vec![user("color")];
    let body = |messages: &[Value]| json!({"model": "actor", "messages": messages, "tools": [pick_color()]});
    let asked = send("/v1/chat/completions", "k2", &body(&messages)).await.json();
    assert_eq!(send("/v1/chat/completions", "k2", &body(&messages)).await.json(), asked);
    let said = &asked["choices"][0]["message"];
    messages.push(said.clone());
    messages.push(json!({"role": "tool", "tool_call_id": said["tool_calls"][0]["id"], "content": "blue"}));
    let answer = send("/v1/chat/completions", "k3", &body(&messages)).await.json();
    assert_eq!(answer["choices"][0]["message"]["content"], "So it is: blue.");
    assert_eq!(send("/v1/chat/completions", "k3", &body(&messages)).await.json(), answer);
    messages[2]["content"] = "red".into();
    assert_eq!(send("/v1/chat/completions", "k3", &body(&messages)).await.status, 422);
}

#[tokio::test]
async fn errors_have_the_protocols_form() {
    let served = Served::start().await;
    let unknown = served.post("/v1/chat/completions", &json!({"model": "nobody", "messages": [user("hi")]})).await;
    assert_eq!((unknown.status, &unknown.json()["error"]["code"]), (404, &json!("not_found")));
    let waits = json!({"model": "actor", "messages": [user("ask")]});
    let waits = served.post("/v1/chat/completions", &waits).await;
    assert_eq!((waits.status, &waits.json()["error"]["code"]), (409, &json!("not_finished")));
    assert!(waits.body.contains("waits for answers (approval)"), "{}", waits.body);
    let fails = json!({"model": "actor", "messages": [user("fail")], "stream": true});
    let frames = served.post("/v1/chat/completions", &fails).await.frames();
    assert_eq!(frames.last().expect("an end")["error"]["code"], "provider");
    let fails = json!({"model": "actor", "input": "fail", "stream": true});
    let frames = served.post("/v1/responses", &fails).await.frames();
    assert_eq!(frames.last().expect("an end")["type"], "response.failed");
    let hosted = json!({"model": "actor", "input": "hi", "tools": [{"type": "web_search"}]});
    assert_eq!(served.post("/v1/responses", &hosted).await.status, 400);
    let many = json!({"model": "actor", "messages": [user("hi")], "n": 2});
    assert_eq!(served.post("/v1/chat/completions", &many).await.status, 400);
    let models = served.get("/v1/models").await.json();
    assert_eq!(models["data"][0]["id"], "actor");
    assert_eq!(served.get("/v1/models/actor").await.json()["object"], "model");
    assert_eq!(served.get("/v1/models/nobody").await.status, 404);
}
