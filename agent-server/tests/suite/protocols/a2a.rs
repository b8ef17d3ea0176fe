//! Agent2Agent over real sockets, including the framework's own client.

use agent::{Agent, RunEnd, RunRequest, tools::peers::A2aAgent};
use serde_json::{Value, json};

use super::served::Served;

fn said(text: &str, id: &str) -> Value {
    json!({"kind": "message", "messageId": id, "role": "user", "parts": [{"kind": "text", "text": text}]})
}

async fn call(served: &Served, method: &str, params: Value) -> Value {
    let request = json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params});
    let answer = served.post("/a2a/actor", &request).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let reply = answer.json();
    assert_eq!(reply["id"], 7);
    reply
}

fn text(task: &Value) -> &str {
    task["artifacts"][0]["parts"][0]["text"].as_str().unwrap_or_default()
}

#[tokio::test]
async fn a_message_is_a_task_once_however_often_it_comes() {
    let served = Served::start().await;
    let card = served.get("/.well-known/agent-card.json").await.json();
    assert_eq!(card, served.get("/a2a/actor/.well-known/agent-card.json").await.json());
    assert!(card["url"].as_str().is_some_and(|url| url.ends_with("/a2a/actor")), "{card}");
    let mut message = said("tool", "m1");
    message["contextId"] = "garden".into();
    let first = call(&served, "message/send", json!({"message": message})).await["result"].clone();
    assert_eq!((&first["status"]["state"], text(&first)), (&json!("completed"), "So it is: 17 degrees in Bern."));
    let again = call(&served, "message/send", json!({"message": message})).await["result"].clone();
    assert_eq!((&again["id"], &again["contextId"]), (&first["id"], &json!("garden")));
    let got = call(&served, "tasks/get", json!({"id": first["id"]})).await["result"].clone();
    assert_eq!(got, first);
}

#[tokio::test]
async fn a_stream_tells_the_answer_and_then_how_the_task_stands() {
    let served = Served::start().await;
    for (scene, state, answer) in [
        ("tool", "completed", "So it is: 17 degrees in Bern."),
        ("again", "completed", "You said: again."),
        ("fail", "failed", ""),
    ] {
        let request =
            json!({"jsonrpc": "2.0", "id": 1, "method": "message/stream", "params": {"message": said(scene, scene)}});
        let frames = served.post("/a2a/actor", &request).await.frames();
        let told: Vec<_> = frames.iter().map(|frame| &frame["result"]).collect();
        assert_eq!(told[0]["kind"], "task");
        let mut shown = String::new();
        for update in told.iter().filter(|told| told["kind"] == "artifact-update") {
            if update["append"] != true {
                shown.clear();
            }
            shown += update["artifact"]["parts"][0]["text"].as_str().expect("a text");
        }
        let last = told.last().expect("an end");
        assert_eq!((&last["status"]["state"], &last["final"]), (&json!(state), &json!(true)));
        if state == "completed" {
            assert_eq!(shown, answer);
        }
    }
}

#[tokio::test]
async fn what_the_run_asks_a_message_of_the_task_answers() {
    let served = Served::start().await;
    let asked = call(&served, "message/send", json!({"message": said("ask", "m1")})).await["result"].clone();
    assert_eq!(asked["status"]["state"], "input-required");
    let question = &asked["status"]["message"]["parts"][1]["data"]["questions"][0];
    assert_eq!(question["kind"], "approval");
    let mut answer = said("no", "m2");
    answer["taskId"] = asked["id"].clone();
    let done = call(&served, "message/send", json!({"message": answer})).await["result"].clone();
    assert_eq!((&done["id"], &done["status"]["state"]), (&asked["id"], &json!("completed")));
    assert!(!text(&done).contains("refunded"), "{done}");
    let late = call(&served, "message/send", json!({"message": answer})).await;
    assert_eq!(late["error"]["code"], -32004, "{late}");
}

#[tokio::test]
async fn errors_have_the_protocols_codes() {
    let served = Served::start().await;
    for (method, params, code) in [
        ("tasks/get", json!({"id": "nobody"}), -32001),
        ("tasks/cancel", json!({}), -32602),
        ("message/send", json!({"message": {"messageId": "m", "role": "user", "parts": []}}), -32602),
        ("tasks/pushNotificationConfig/set", json!({}), -32003),
        ("tasks/fly", json!({}), -32601),
    ] {
        assert_eq!(call(&served, method, params).await["error"]["code"], code, "{method}");
    }
    let done = call(&served, "message/send", json!({"message": said("hello", "m1")})).await["result"]["id"].clone();
    assert_eq!(call(&served, "tasks/cancel", json!({"id": done})).await["error"]["code"], -32002);
}

#[tokio::test]
async fn the_frameworks_own_client_is_answered_and_its_question_is_the_callers() {
    let served = Served::start().await;
    let address = served.address();
    let peer = A2aAgent::builder(format!("http://{address}/a2a/actor")).allow_private(address).deduplicates();
    let caller = Agent::of_tool("actor elsewhere", peer.build().expect("builds")).build().expect("builds");
    let end = caller.run("tool").await.expect("runs").finished().expect("it finishes");
    assert_eq!(end.answer, "So it is: 17 degrees in Bern.");

    let RunEnd::Interrupted(open) = caller.run("ask").await.expect("runs") else { panic!("it does not ask") };
    let answer = (open.questions[0].id.clone(), json!("yes"));
    let end = caller.start(RunRequest::resume(*open, [answer])).await.expect("runs").finished().expect("it finishes");
    assert_eq!(end.answer, "So it is: refunded \"A-17\".");
}
