//! Shutdown of a server, and resumption by the next one.

use agent::{Agent, SqliteJournal, testing::Turn};
use agent_server::Server;
use http::Method;
use serde_json::{Value, json};

use super::support::{Client, Gated, Serving, call, refund};

/// Waits until the server has started to drain its runs.
async fn until_it_drains(client: &Client) {
    while client.get("/ready").await.status != 503 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn what_was_under_way_when_a_server_ends_is_gone_on_with_by_the_next() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("runs.db");
    let serve = async |model: Gated| {
        let agent = Agent::builder("support", model).tool(refund).build().expect("an agent");
        let journal = SqliteJournal::open(&path).expect("a journal");
        Serving::new(Server::builder().agent(agent).store(journal)).await
    };
    let model = Gated::new([call("c1", "A-1"), Turn::text("Never said here.")]);
    let mut one = serve(model.clone()).await;
    let client = one.client();
    let run = client.start(&json!({"input": "Refund A-1.", "session": "garden"})).await;
    let stopped = client.start(&json!({"input": "Hi.", "session": "stopped"})).await;
    let left = client.json(
        Method::POST,
        "/v1/chat/completions",
        &json!({"model": "support", "stream": true,
        "messages": [{"role": "user", "content": "Hi."}]}),
    );
    // Its client disconnects before the first word.
    drop(client.send(left).await);
    let runs = client.get("/api/runs").await.json();
    let is_left = |run: &&Value| ![&json!("garden"), &json!("stopped")].contains(&&run["session"]);
    let left = runs["runs"].as_array().and_then(|runs| runs.iter().find(is_left)).expect("a run").clone();
    assert_eq!(client.rest(&left).await["status"], "cancelled");
    let id = stopped["run"].as_str().expect("an id");
    client.post(&format!("/api/runs/{id}/cancel"), &json!({})).await;
    assert_eq!(client.rest(&stopped).await["status"], "cancelled");
    one.stop();
    until_it_drains(&client).await;
    // The run pauses after the model's response and the tool call.
    model.open();
    one.stopped().await;

    let next = Gated::new([Turn::text("A-1 is refunded."), Turn::text("Never said.")]);
    next.open();
    next.open();
    let two = serve(next).await;
    let client = two.client();
    let ended = loop {
        let seen = client.rest(&run).await;
        if seen["status"] == "finished" {
            break seen;
        }
        assert!(["paused", "running"].contains(&seen["status"].as_str().unwrap_or_default()), "{seen}");
        tokio::task::yield_now().await;
    };
    assert_eq!(ended["answer"], "A-1 is refunded.");
    for stopped in [stopped, left] {
        assert_eq!(client.rest(&stopped).await["status"], "cancelled", "what somebody stopped stays so");
    }
}

#[tokio::test]
async fn a_server_that_drains_starts_nothing() {
    let model = Gated::new([Turn::text("Done.")]);
    let agent = Agent::builder("support", model.clone()).build().expect("an agent");
    let server = Server::builder().agent(agent).build().expect("a server");
    server.drain(std::time::Duration::ZERO).await;
    let ask = async |request: http::Request<axum::body::Body>| {
        let answer = tower::ServiceExt::oneshot(server.router(), request).await.expect("an answer");
        (answer.status().as_u16(), answer.headers().contains_key("retry-after"))
    };
    let ready =
        http::Request::get("/ready").header("host", "localhost").body(axum::body::Body::empty()).expect("a request");
    assert_eq!(ask(ready).await.0, 503);
    let start = http::Request::post("/api/agents/support/runs").header("host", "localhost");
    let start = start.header("content-type", "application/json").body(r#"{"input": "Hi."}"#.into()).expect("a request");
    assert_eq!(ask(start).await, (503, true));
}

#[tokio::test]
async fn a_front_end_whose_run_was_paused_by_a_drain_gets_what_came_of_it_from_the_next_server() {
    let dir = tempfile::tempdir().expect("a directory");
    let journal = SqliteJournal::open(dir.path().join("runs.db")).expect("a journal");
    let serve = async |model: Gated| {
        let agent = Agent::builder("support", model).tool(refund).build().expect("an agent");
        Serving::new(Server::builder().agent(agent).store(journal.clone())).await
    };
    let model = Gated::new([call("c1", "A-1")]);
    let mut one = serve(model.clone()).await;
    let input = |resume: Value| {
        let message = json!({"id": "u1", "role": "user", "content": "Refund A-1."});
        let messages = if resume.is_null() {
            json!([message])
        } else {
            json!([message, {"id": "a1", "role": "assistant", "content": ""}])
        };
        json!({"threadId": "t", "runId": "r", "messages": messages, "resume": resume})
    };
    let told = tokio::spawn({
        let (client, input) = (one.client(), input(Value::Null));
        async move { client.post("/ag-ui/support", &input).await.text }
    });
    while one.client().get("/api/runs").await.json()["runs"][0]["status"] != "running" {
        tokio::task::yield_now().await;
    }
    one.stop();
    until_it_drains(&one.client()).await;
    model.open();
    let told = told.await.expect("no panic");
    assert!(told.contains("\"paused\""), "{told}");
    one.stopped().await;

    let next = Gated::new([Turn::text("A-1 is refunded.")]);
    next.open();
    let two = serve(next).await;
    let client = two.client();
    while client.get("/api/sessions/t").await.json()["status"] != "finished" {
        tokio::task::yield_now().await;
    }
    let resume = json!([{"interruptId": "paused", "status": "resolved", "payload": {}}]);
    let answer = client.post("/ag-ui/support", &input(resume)).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    assert!(answer.text.contains("A-1 is refunded.") && answer.text.contains("RUN_FINISHED"), "{}", answer.text);
}
