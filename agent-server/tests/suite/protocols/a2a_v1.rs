//! Agent2Agent 1.0 over real sockets: JSON-RPC, HTTP+JSON, and the choice of the version.

use std::time::Duration;

use agent::{Agent, RunEnd, RunRequest, tools::peers::A2aAgent};
use serde_json::{Value, json};

use super::{
    scenes::actor,
    served::{Answer, Served},
};

const KIND: &str = "content-type: application/a2a+json\r\na2a-version: 1.0\r\n";

fn said(text: &str, id: &str) -> Value {
    json!({"messageId": id, "role": "ROLE_USER", "parts": [{"text": text}]})
}

async fn rpc_as(served: &Served, headers: &str, method: &str, params: Value) -> Answer {
    let request = json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params});
    let headers = format!("content-type: application/json\r\n{headers}");
    served.send("POST", "/a2a/actor", &headers, &request.to_string()).await
}

async fn rpc(served: &Served, method: &str, params: Value) -> Value {
    rpc_as(served, "a2a-version: 1.0\r\n", method, params).await.json()
}

async fn http(served: &Served, method: &str, path: &str, body: &str) -> Answer {
    served.send(method, &format!("/a2a/actor/{path}"), KIND, body).await
}

fn text(task: &Value) -> &str {
    task["artifacts"][0]["parts"][0]["text"].as_str().unwrap_or_default()
}

/// Returns true if an object of version 0.3 is left.
fn is_old(value: &Value) -> bool {
    let text = value.to_string();
    text.contains("\"kind\":") || text.contains("\"final\":") || text.contains("\"state\":\"completed\"")
}

#[tokio::test]
async fn a_message_is_a_task_with_the_names_of_version_1() {
    let served = Served::start().await;
    let mut message = said("tool", "m1");
    message["contextId"] = "garden".into();
    let sent = rpc(&served, "SendMessage", json!({"message": message})).await["result"]["task"].clone();
    assert_eq!(
        (&sent["status"]["state"], text(&sent)),
        (&json!("TASK_STATE_COMPLETED"), "So it is: 17 degrees in Bern.")
    );
    assert!(!is_old(&sent), "{sent}");
    let got = rpc(&served, "GetTask", json!({"id": sent["id"]})).await["result"].clone();
    assert_eq!(got, sent);
    let over_http = http(&served, "GET", &format!("tasks/{}", sent["id"].as_str().expect("an id")), "").await;
    assert!(over_http.head.contains("application/a2a+json"), "{over_http:?}");
    assert_eq!(over_http.json(), sent);
    let again = http(&served, "POST", "message:send", &json!({"message": message}).to_string()).await.json();
    assert_eq!(again["task"], sent, "the message's id is the key over both bindings");
}

#[tokio::test]
async fn streams_of_both_bindings_begin_with_the_task_and_end_with_its_state() {
    let served = Served::start().await;
    let request =
        json!({"jsonrpc": "2.0", "id": 1, "method": "SendStreamingMessage", "params": {"message": said("tool", "m1")}});
    let rpc: Vec<_> =
        served.post("/a2a/actor", &request).await.frames().iter().map(|frame| frame["result"].clone()).collect();
    let body = json!({"message": said("tool", "m2")}).to_string();
    let plain = http(&served, "POST", "message:stream", &body).await.frames();
    for told in [rpc, plain] {
        assert!(told[0]["task"]["id"].is_string(), "{told:?}");
        let last = told.last().expect("an end");
        assert_eq!(last["statusUpdate"]["status"]["state"], "TASK_STATE_COMPLETED");
        let shown: String =
            told.iter().filter_map(|told| told["artifactUpdate"]["artifact"]["parts"][0]["text"].as_str()).collect();
        assert!(shown.ends_with("So it is: 17 degrees in Bern."), "{shown}");
        assert!(told.iter().all(|told| !is_old(told) && told.as_object().is_some_and(|told| told.len() == 1)));
    }
}

#[tokio::test]
async fn a_question_is_answered_by_a_message_of_version_1() {
    let served = Served::start().await;
    let asked = rpc(&served, "SendMessage", json!({"message": said("ask", "m1")})).await["result"]["task"].clone();
    assert_eq!(asked["status"]["state"], "TASK_STATE_INPUT_REQUIRED");
    assert_eq!(asked["status"]["message"]["role"], "ROLE_AGENT");
    let question = &asked["status"]["message"]["parts"][1]["data"]["questions"][0];
    assert_eq!(question["kind"], "approval", "data of the application keeps its fields");
    let mut answer = said("yes", "m2");
    answer["taskId"] = asked["id"].clone();
    let body = json!({"message": answer}).to_string();
    let done = http(&served, "POST", "message:send", &body).await.json()["task"].clone();
    assert_eq!((&done["id"], &done["status"]["state"]), (&asked["id"], &json!("TASK_STATE_COMPLETED")));
    let late = http(&served, "POST", "message:send", &body).await;
    assert_eq!((late.status, &late.json()["error"]["details"][0]["reason"]), (400, &json!("UNSUPPORTED_OPERATION")));
}

#[tokio::test]
async fn parts_of_version_1_reach_the_agent_whatever_they_hold() {
    let served = Served::start().await;
    for (part, wanted) in [
        (json!({"text": "hello"}), 200),
        (json!({"data": {"a": 1}}), 200),
        (json!({"raw": "aGVsbG8=", "mediaType": "text/plain", "filename": "a.txt"}), 200),
        (json!({"metadata": {}}), 400),
    ] {
        let id = part.to_string();
        let message = json!({"messageId": id, "role": "ROLE_USER", "parts": [part], "contextId": ""});
        let sent = http(&served, "POST", "message:send", &json!({"message": message}).to_string()).await;
        assert_eq!(sent.status, wanted, "{id}: {sent:?}");
    }
}

#[tokio::test]
async fn tasks_are_listed_in_pages_by_state_and_context() {
    let served = Served::start().await;
    for (scene, context) in [("tool", "a"), ("fail", "a"), ("ask", "b"), ("tool", "d"), ("again", "c")] {
        let mut message = said(scene, &format!("{scene}-{context}"));
        message["contextId"] = context.into();
        rpc(&served, "SendMessage", json!({"message": message})).await;
    }
    let all = rpc(&served, "ListTasks", json!({})).await["result"].clone();
    assert_eq!((all["totalSize"].as_u64(), &all["nextPageToken"]), (Some(5), &json!("")), "{all}");
    assert!(all["tasks"].as_array().expect("a list").iter().all(|task| task.get("artifacts").is_none()));
    let (mut ids, mut token) = (Vec::new(), String::new());
    loop {
        let page = http(&served, "GET", &format!("tasks?pageSize=2&pageToken={token}"), "").await.json();
        let tasks = page["tasks"].as_array().expect("a list");
        assert!(tasks.len() <= 2);
        ids.extend(tasks.iter().map(|task| task["id"].clone()));
        token = page["nextPageToken"].as_str().expect("a token").to_owned();
        if token.is_empty() {
            break;
        }
    }
    let wanted: Vec<_> = all["tasks"].as_array().expect("a list").iter().map(|task| task["id"].clone()).collect();
    assert_eq!(ids, wanted);
    let of = |params: Value| rpc(&served, "ListTasks", params);
    assert_eq!(of(json!({"contextId": "a"})).await["result"]["totalSize"], 2);
    assert_eq!(of(json!({"status": "TASK_STATE_INPUT_REQUIRED"})).await["result"]["totalSize"], 1);
    let full = of(json!({"contextId": "c", "includeArtifacts": true})).await["result"].clone();
    assert_eq!(text(&full["tasks"][0]), "You said: again.");
    for wrong in
        [json!({"pageSize": 0}), json!({"pageSize": 101}), json!({"pageToken": "x"}), json!({"status": "done"})]
    {
        assert_eq!(of(wrong).await["error"]["code"], -32602);
    }
}

#[tokio::test]
async fn errors_have_the_codes_and_details_of_version_1() {
    let served = Served::start().await;
    let done =
        rpc(&served, "SendMessage", json!({"message": said("again", "m1")})).await["result"]["task"]["id"].clone();
    for (method, params, code, reason) in [
        ("GetTask", json!({"id": "nobody"}), -32001, json!("TASK_NOT_FOUND")),
        ("CancelTask", json!({"id": done}), -32002, json!("TASK_NOT_CANCELABLE")),
        ("SubscribeToTask", json!({"id": done}), -32004, json!("UNSUPPORTED_OPERATION")),
        ("GetExtendedAgentCard", json!({}), -32004, json!("UNSUPPORTED_OPERATION")),
        ("CreateTaskPushNotificationConfig", json!({"taskId": done}), -32003, json!("PUSH_NOTIFICATION_NOT_SUPPORTED")),
        ("FlyTask", json!({}), -32601, Value::Null),
        ("SendMessage", json!({}), -32602, Value::Null),
    ] {
        let error = rpc(&served, method, params).await["error"].clone();
        assert_eq!((&error["code"], &error["data"][0]["reason"]), (&json!(code), &reason), "{method}: {error}");
    }
    for (method, path, status) in [
        ("GET", "tasks/nobody".to_owned(), 404),
        ("POST", format!("tasks/{}:cancel", done.as_str().expect("an id")), 400),
        ("GET", format!("tasks/{}:subscribe", done.as_str().expect("an id")), 400),
        ("GET", "extendedAgentCard".to_owned(), 400),
    ] {
        let told = http(&served, method, &path, "").await;
        assert_eq!((told.status, &told.json()["error"]["code"]), (status, &json!(status)), "{path}: {told:?}");
    }
}

#[tokio::test]
async fn the_version_is_named_by_a_header_and_another_one_is_refused() {
    let served = Served::start().await;
    let params = json!({"id": "nobody"});
    let refused = rpc_as(&served, "a2a-version: 2.0\r\n", "GetTask", params.clone()).await.json();
    assert_eq!(
        (&refused["error"]["code"], &refused["error"]["data"][0]["reason"]),
        (&json!(-32009), &json!("VERSION_NOT_SUPPORTED"))
    );
    let old = rpc_as(&served, "", "tasks/get", params).await.json();
    assert_eq!((&old["error"]["code"], old["error"].get("data")), (&json!(-32001), None), "version 0.3 has no details");
    let refused = served.send("GET", "/a2a/actor/tasks/nobody?A2A-Version=0.3", "", "").await;
    assert_eq!(
        (refused.status, &refused.json()["error"]["details"][0]["reason"]),
        (400, &json!("VERSION_NOT_SUPPORTED"))
    );

    let card = served.get("/.well-known/agent-card.json").await.json();
    assert_eq!(
        (&card["supportedInterfaces"][0]["protocolVersion"], &card["protocolVersion"]),
        (&json!("1.0"), &json!("0.3.0"))
    );
    let modern = served.send("GET", "/.well-known/agent-card.json", "a2a-version: 1.0\r\n", "").await.json();
    assert!(modern["supportedInterfaces"][0]["url"].is_string() && modern.get("url").is_none(), "{modern}");
    let old = served.send("GET", "/.well-known/agent-card.json", "a2a-version: 0.3\r\n", "").await.json();
    assert!(old["url"].is_string() && old.get("supportedInterfaces").is_none(), "{old}");
}

#[tokio::test]
async fn the_frameworks_own_client_speaks_both_bindings_of_version_1() {
    for (binding, streams) in [("JSONRPC", true), ("JSONRPC", false), ("HTTP+JSON", true), ("HTTP+JSON", false)] {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address").to_string();
        let url = format!("http://{address}/a2a/actor");
        let card = json!({
            "name": "clerk", "capabilities": {"streaming": streams},
            "supportedInterfaces": [{"url": url, "protocolBinding": binding, "protocolVersion": "1.0"}],
        });
        let router = agent_server::Server::builder().agent(actor()).build().expect("builds").router();
        let card = axum::routing::get(async move || axum::Json(card));
        let router = router.route("/clerk/.well-known/agent-card.json", card);
        tokio::spawn(async move { axum::serve(listener, router).await });
        let peer = A2aAgent::builder(format!("http://{address}/clerk")).allow_private(address.as_str());
        let peer = peer.poll_every(Duration::from_millis(10)).deduplicates().build().expect("builds");
        let caller = Agent::of_tool("actor elsewhere", peer).build().expect("builds");
        let end = caller.run("tool").await.expect("runs").finished().expect("it finishes");
        assert_eq!(end.answer, "So it is: 17 degrees in Bern.", "{binding} {streams}");
        let RunEnd::Interrupted(open) = caller.run("ask").await.expect("runs") else { panic!("it does not ask") };
        let answer = (open.questions[0].id.clone(), json!("yes"));
        let end = caller.start(RunRequest::resume(*open, [answer])).await.expect("runs").finished();
        assert_eq!(end.expect("it finishes").answer, "So it is: refunded \"A-17\".", "{binding} {streams}");
        let failed = caller.run("fail").await.expect_err("fails");
        assert!(failed.message().contains("'failed'"), "{failed}");
    }
}
