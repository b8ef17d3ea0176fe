//! Batches.

use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicUsize, Ordering},
};

use agent_core::{Error, ErrorKind, ModelParams, ModelResponse};
use agent_llm::{Batch, BatchId, BatchRequest, batch::BatchCounts, model};
use futures::StreamExt;
use serde_json::{Value, json};

use super::{Server, ok};

async fn results(batch: &Batch) -> BTreeMap<String, Result<ModelResponse, Error>> {
    let mut results = batch.results().await.expect("there are results");
    let mut all = BTreeMap::new();
    while let Some(result) = results.next().await {
        let result = result.expect("a line");
        all.insert(result.custom_id, result.answer);
    }
    all
}

fn two() -> [(&'static str, BatchRequest); 2] {
    let short = ModelParams::default().max_tokens(50);
    [
        ("a", BatchRequest::user("One?").params(short.clone())),
        ("b", BatchRequest::user("Two?").system("Short.").params(short)),
    ]
}

fn body(server: &Server, at: usize) -> Value {
    serde_json::from_slice(server.seen(at).body()).expect("JSON")
}

/// Two answers, an error, a cancelled request and an expired one.
fn lines_of_anthropic() -> String {
    let message = json!({"id": "m", "type": "message", "role": "assistant", "model": "claude-haiku-4-5",
        "content": [{"type": "text", "text": "Yes."}], "stop_reason": "end_turn",
        "usage": {"input_tokens": 1_000_000, "output_tokens": 0}});
    let error = json!({"type": "error", "error": {"type": "invalid_request_error", "message": "no"}});
    [
        json!({"custom_id": "b", "result": {"type": "succeeded", "message": message}}),
        json!({"custom_id": "a", "result": {"type": "errored", "error": error}}),
        json!({"custom_id": "c", "result": {"type": "canceled"}}),
        json!({"custom_id": "d", "result": {"type": "expired"}}),
    ]
    .map(|line| format!("{line}\n"))
    .concat()
}

#[tokio::test(start_paused = true)]
async fn a_batch_at_anthropic_is_waited_for_and_read_line_by_line_at_half_the_price() {
    let asked = AtomicUsize::new(0);
    let server = Server::new(move |req| match (req.method().as_str(), req.uri().path()) {
        ("POST", _) => ok(r#"{"id":"batch_1","processing_status":"in_progress"}"#),
        (_, "/v1/messages/batches/batch_1/results") => ok(lines_of_anthropic()),
        _ => {
            let ended = asked.fetch_add(1, Ordering::Relaxed) > 2;
            let (state, url) = match ended {
                true => ("ended", json!("https://api.anthropic.com/v1/messages/batches/batch_1/results")),
                false => ("in_progress", Value::Null),
            };
            let counts = json!({"processing": 0, "succeeded": 1, "errored": 1, "canceled": 1, "expired": 1});
            ok(json!({"processing_status": state, "results_url": url, "request_counts": counts}).to_string())
        }
    });
    let batches =
        model("anthropic:claude-haiku-4-5").api_key("k").transport(server.clone()).batches().expect("batches");
    let batch = batches.submit(two()).await.expect("sent");
    assert_eq!(batch.results().await.expect_err("it has not ended").kind(), ErrorKind::Busy);
    let id = serde_json::to_string(batch.id()).expect("JSON");
    let batch = batches.open(serde_json::from_str::<BatchId>(&id).expect("an id")).expect("another process");
    let begun = tokio::time::Instant::now();
    let status = batch.wait().await.expect("it ends");
    assert!(begun.elapsed().as_secs() >= 4, "it waits between two looks");
    let BatchCounts { total, succeeded, failed, .. } = status.counts;
    assert_eq!((status.ended, total, succeeded, failed), (true, 4, 1, 3));

    let mut all = results(&batch).await;
    let answer = all.remove("b").expect("there").expect("an answer");
    assert_eq!(answer.message.text(), "Yes.");
    assert_eq!(answer.usage.whole_cost(), Some(500_000), "a million tokens at half of a dollar");
    let kinds: Vec<_> = all.into_values().map(|answer| answer.expect_err("none").kind()).collect();
    assert_eq!(kinds, [ErrorKind::InvalidRequest, ErrorKind::Cancelled, ErrorKind::Timeout]);

    let sent = body(&server, 0);
    let params = json!({"model": "claude-haiku-4-5", "max_tokens": 50,
        "messages": [{"role": "user", "content": [{"type": "text", "text": "One?"}]}]});
    assert_eq!(sent["requests"][0], json!({"custom_id": "a", "params": params}));
    assert_eq!(sent["requests"][1]["params"]["system"], "Short.");
    assert_eq!(server.seen(0).headers()["anthropic-version"], "2023-06-01");
}

#[tokio::test(start_paused = true)]
async fn a_batch_at_openai_is_a_file_and_its_results_are_two() {
    let server = Server::new(|req| match (req.method().as_str(), req.uri().path()) {
        ("POST", "/v1/files") => ok(r#"{"id":"in_1","filename":"batch.jsonl"}"#),
        ("POST", "/v1/batches") => ok(r#"{"id":"batch_1","status":"validating"}"#),
        ("POST", _) => ok("{}"),
        (_, "/v1/files/out_1/content") => {
            let said = json!({"role": "assistant", "content": "Yes."});
            let answer = json!({"id": "r1", "choices": [{"index": 0, "message": said, "finish_reason": "stop"}]});
            ok(format!(
                "{}\n",
                json!({"custom_id": "a", "response": {"status_code": 200, "body": answer}, "error": null})
            ))
        }
        (_, "/v1/files/err_1/content") => {
            let body = json!({"error": {"message": "slow down", "type": "requests", "code": "rate_limit_exceeded"}});
            let refused = json!({"custom_id": "b", "response": {"status_code": 429, "body": body}, "error": null});
            let late =
                json!({"custom_id": "c", "response": null, "error": {"code": "batch_expired", "message": "late"}});
            ok(format!("{refused}\n{late}"))
        }
        _ => ok(json!({"status": "completed", "output_file_id": "out_1", "error_file_id": "err_1",
            "request_counts": {"total": 3, "completed": 1, "failed": 2}})
        .to_string()),
    });
    let batches = model("openai:gpt-5").api_key("k").transport(server.clone()).batches().expect("batches");
    let batch = batches.submit(two()).await.expect("sent");
    assert_eq!(batch.wait().await.expect("it has ended").counts.open(), 0);
    let all = results(&batch).await;
    assert_eq!(all["a"].as_ref().expect("an answer").message.text(), "Yes.");
    assert_eq!(all["b"].as_ref().expect_err("refused").kind(), ErrorKind::RateLimited);
    assert_eq!(all["c"].as_ref().expect_err("late").kind(), ErrorKind::Timeout);
    batch.cancel().await.expect("cancelled");

    let lines = String::from_utf8_lossy(server.seen(0).body()).into_owned();
    let first = lines.lines().find(|line| line.starts_with('{')).expect("a request");
    let first: Value = serde_json::from_str(first).expect("JSON");
    assert_eq!((&first["method"], &first["url"]), (&json!("POST"), &json!("/v1/chat/completions")));
    assert_eq!(first["body"]["messages"][0], json!({"role": "user", "content": "One?"}));
    assert!(lines.contains("name=\"purpose\"\r\n\r\nbatch"));
    let sent = json!({"input_file_id": "in_1", "endpoint": "/v1/chat/completions", "completion_window": "24h"});
    assert_eq!(body(&server, 1), sent);
    assert_eq!(server.asked().last().expect("asked"), "POST https://api.openai.com/v1/batches/batch_1/cancel");
}

#[tokio::test(start_paused = true)]
async fn a_batch_at_gemini_holds_its_requests_and_its_answers() {
    let server = Server::new(|req| match req.method().as_str() {
        "POST" => ok(r#"{"name":"batches/b1","metadata":{"state":"BATCH_STATE_PENDING"}}"#),
        _ => {
            let content = json!({"role": "model", "parts": [{"text": "Yes."}]});
            let answer = json!({"candidates": [{"content": content, "finishReason": "STOP"}]});
            let inline = json!([
                {"metadata": {"key": "a"}, "response": answer},
                {"metadata": {"key": "b"}, "error": {"code": 429, "message": "slow", "status": "RESOURCE_EXHAUSTED"}},
            ]);
            let stats = json!({"requestCount": "2", "successfulRequestCount": "1", "failedRequestCount": "1"});
            ok(json!({"name": "batches/b1", "done": true, "metadata": {"state": "BATCH_STATE_SUCCEEDED", "batchStats": stats},
                "response": {"inlinedResponses": {"inlinedResponses": inline}}}).to_string())
        }
    });
    let batches = model("gemini:gemini-2.5-flash").api_key("k").transport(server.clone()).batches().expect("batches");
    let batch = batches.submit(two()).await.expect("sent");
    let status = batch.wait().await.expect("it has ended");
    assert_eq!((status.counts.total, status.counts.failed, status.failed), (2, 1, None));
    let all = results(&batch).await;
    assert_eq!(all["a"].as_ref().expect("an answer").message.text(), "Yes.");
    assert_eq!(all["b"].as_ref().expect_err("refused").kind(), ErrorKind::RateLimited);
    let base = "https://generativelanguage.googleapis.com/v1beta";
    assert_eq!(
        server.asked()[..2],
        [format!("POST {base}/models/gemini-2.5-flash:batchGenerateContent"), format!("GET {base}/batches/b1")]
    );
    let first = &body(&server, 0)["batch"]["input_config"]["requests"]["requests"][0];
    assert_eq!(
        (&first["metadata"]["key"], &first["request"]["contents"][0]["parts"][0]["text"]),
        (&json!("a"), &json!("One?"))
    );
}

#[tokio::test(start_paused = true)]
async fn a_batch_at_mistral_is_a_job() {
    let server = Server::new(|req| match (req.method().as_str(), req.uri().path()) {
        ("POST", "/v1/files") => ok(r#"{"id":"in_1"}"#),
        ("POST", _) => ok(r#"{"id":"job_1","status":"QUEUED"}"#),
        (_, "/v1/files/out_1/content") => {
            let said = json!({"role": "assistant", "content": "Yes."});
            let answer = json!({"id": "r1", "choices": [{"index": 0, "message": said, "finish_reason": "stop"}]});
            ok(json!({"custom_id": "a", "response": {"status_code": 200, "body": answer}, "error": null}).to_string())
        }
        _ => ok(
            r#"{"status":"SUCCESS","total_requests":1,"succeeded_requests":1,"failed_requests":0,"output_file":"out_1","error_file":null}"#,
        ),
    });
    let batches = model("mistral:mistral-large").api_key("k").transport(server.clone()).batches().expect("batches");
    let batch = batches.submit([("a", BatchRequest::user("One?"))]).await.expect("sent");
    assert!(batch.status().await.expect("a status").ended);
    assert_eq!(results(&batch).await["a"].as_ref().expect("an answer").message.text(), "Yes.");
    let job = json!({"input_files": ["in_1"], "endpoint": "/v1/chat/completions", "model": "mistral-large"});
    assert_eq!(body(&server, 1), job);
}

#[tokio::test(start_paused = true)]
async fn a_batch_that_stands_nowhere_is_not_awaited() {
    let server = Server::new(|_| ok(r#"{"id":"batch_1"}"#));
    let batches =
        model("anthropic:claude-haiku-4-5").api_key("k").transport(server.clone()).batches().expect("batches");
    let batch = batches.submit(two()).await.expect("sent");
    assert_eq!(batch.wait().await.expect_err("it says nothing").kind(), ErrorKind::Protocol);
}

#[tokio::test(start_paused = true)]
async fn a_batch_that_makes_no_sense_is_refused_before_anything_is_sent() {
    let server = Server::new(|_| ok("{}"));
    let of = |name: &str| model(name).api_key("k").transport(server.clone()).batches();
    let batches = of("anthropic:claude-haiku-4-5").expect("batches");
    let refused = |requests: Vec<(&'static str, BatchRequest)>| {
        let batches = batches.clone();
        async move { batches.submit(requests).await.expect_err("it makes no sense").kind() }
    };
    assert_eq!(refused(Vec::new()).await, ErrorKind::InvalidRequest);
    assert_eq!(refused(vec![two()[0].clone(), two()[0].clone()]).await, ErrorKind::InvalidRequest);
    assert_eq!(refused(vec![("not an id", BatchRequest::user("?"))]).await, ErrorKind::InvalidRequest);
    assert!(server.asked().is_empty());
    for name in ["perplexity:sonar", "anthropic:claude-haiku-4-5@chat", "xai:grok-4"] {
        assert_eq!(of(name).expect_err("it takes none").kind(), ErrorKind::Config, "{name}");
    }
    let elsewhere = batches.open(serde_json::from_str(r#"{"provider":"openai","id":"b"}"#).expect("an id"));
    assert_eq!(elsewhere.expect_err("another has it").kind(), ErrorKind::Config);
}
