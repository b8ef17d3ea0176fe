//! Stopping runs, and limits on their number.

use agent::{Agent, testing::Turn};
use agent_server::{Key, Keys, Server};
use http::Method;
use serde_json::json;

use super::support::{Gated, Serving, call, support};

#[tokio::test]
async fn a_run_that_waits_is_cancelled_and_asks_nothing_any_more() {
    let serving = Serving::of(support([call("c1", "A-1"), Turn::text("Hello.")])).await;
    let client = serving.client();
    let run = client.run(&json!({"input": "Refund A-1.", "session": "s"})).await;
    assert_eq!(run["status"], "waiting");
    let id = run["run"].as_str().expect("an id");
    let cancelled = client.post(&format!("/api/runs/{id}/cancel"), &json!({})).await;
    assert_eq!((cancelled.status, &cancelled.json()["status"]), (202, &json!("cancelled")), "{}", cancelled.text);
    assert_eq!(client.get("/api/questions").await.json()["questions"], json!([]));
    let answers = json!({"answers": [{"question": run["questions"][0]["id"], "allow": true}]});
    assert_eq!(client.post(&format!("/api/runs/{id}/answers"), &answers).await.code(), "answer_refused");
    let again = client.post(&format!("/api/runs/{id}/cancel"), &json!({})).await;
    assert_eq!((again.status, &again.json()["status"]), (200, &json!("cancelled")));
    let next = client.run(&json!({"input": "Hi.", "session": "s"})).await;
    assert_eq!(next["answer"], "Hello.", "the session is free");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_more_runs_begin_at_once_than_a_key_allows() {
    let (secret, key) = Key::generate("ada", "teapots").expect("a key");
    let limits = serde_json::from_value(json!({"runs": 2})).expect("limits");
    let agent = Agent::builder("support", Gated::new([])).build().expect("an agent");
    let keys = Keys::new([key.limits(limits)]).expect("keys");
    let serving = Serving::new(Server::builder().agent(agent).keys(keys)).await;
    let client = serving.client().with_key(&secret);
    let body = json!({"input": "Hi."});
    let starts = (0..12).map(|_| async { client.post("/api/agents/support/runs", &body).await.status });
    let statuses = futures::future::join_all(starts).await;
    assert_eq!(statuses.iter().filter(|status| **status == 202).count(), 2, "{statuses:?}");
}

#[tokio::test]
async fn streams_of_all_protocols_count() {
    let model = Gated::new([Turn::text("Done."), Turn::text("Done.")]);
    let agent = Agent::builder("support", model.clone()).build().expect("an agent");
    let serving = Serving::new(Server::builder().agent(agent).max_streams(1)).await;
    let client = serving.client();
    let body = json!({"model": "support", "stream": true, "messages": [{"role": "user", "content": "Hi."}]});
    let open = client.send(client.json(Method::POST, "/v1/chat/completions", &body)).await;
    let input = json!({"threadId": "t", "runId": "r", "messages": [{"id": "1", "role": "user", "content": "hi"}]});
    assert_eq!(client.post("/ag-ui/support", &input).await.code(), "too_many_streams");
    assert_eq!(client.get("/api/runs").await.json()["runs"].as_array().map(Vec::len), Some(1), "nothing began");
    drop(open);
}

#[tokio::test]
async fn probes_are_answered_by_any_name_and_tell_nothing() {
    let serving = Serving::of(support([])).await;
    let client = serving.client();
    for (path, status) in [("/health", 200), ("/ready", 200), ("/api/agents", 421), ("/openapi.json", 421)] {
        let request = client.request(Method::GET, path).header("host", "10.1.2.3:8080");
        let answer = client.answer(request.body(http_body_util::Full::default()).expect("a request")).await;
        assert_eq!(answer.status, status, "{path}");
        assert!(!answer.text.contains("support"), "{}", answer.text);
    }
}
