//! Event streams: many viewers, late viewers, and broken connections.

use std::collections::BTreeSet;

use agent::{
    Agent,
    testing::{ScriptedModel, Turn},
};
use bytes::Bytes;
use futures::StreamExt;
use http::Method;
use http_body_util::{BodyExt, BodyStream, Full};
use serde_json::{Value, json};

use super::support::{Client, Frame, Gated, Serving, call, frames, refund, support};

/// Reads a number of bytes of a stream, and drops the connection there.
async fn cut(client: &Client, path: &str, last: Option<&str>, bytes: usize) -> (Vec<Frame>, bool) {
    let mut request = client.request(Method::GET, path);
    if let Some(last) = last {
        request = request.header("last-event-id", last);
    }
    let response = client.send(request.body(Full::<Bytes>::default()).expect("a request")).await;
    assert_eq!(response.status(), 200);
    let mut body = BodyStream::new(response.into_body());
    let mut text = Vec::new();
    while text.len() < bytes {
        match body.next().await {
            Some(frame) => text.extend_from_slice(frame.expect("a frame").data_ref().expect("data")),
            None => return (frames(&String::from_utf8_lossy(&text)), true),
        }
    }
    text.truncate(bytes);
    (frames(&String::from_utf8_lossy(&text)), false)
}

/// Returns a finished run with tool calls and with answers of many chunks.
async fn finished_run() -> (Serving, Client, String) {
    let model = ScriptedModel::new([
        call("c1", "A-1"),
        Turn::calls([("c2", "refund", json!({"number": "A-2"})), ("c3", "refund", json!({"number": "A-3"}))]),
        Turn::text("All three are refunded, and an e-mail — with ümlauts — was sent."),
    ]);
    let serving = Serving::of(Agent::builder("support", model).tool(refund)).await;
    let client = serving.client();
    let run = client.run(&json!({"input": "Refund A-1, A-2 and A-3.", "session": "s"})).await;
    assert_eq!(run["status"], "finished", "{run}");
    let id = run["run"].as_str().expect("an id").to_owned();
    (serving, client, id)
}

fn is_durable(frame: &Frame) -> bool {
    frame.id.as_deref().is_some_and(|id| id.ends_with(".0"))
}

#[tokio::test]
async fn a_stream_that_is_cut_anywhere_and_taken_up_again_gives_each_event_once_and_in_order() {
    let (_serving, client, id) = finished_run().await;
    let path = format!("/api/runs/{id}/events");
    let whole = client.get(&path).await.text;
    let wanted = frames(&whole);
    assert!(wanted.len() > 30, "{}", wanted.len());
    let mut offset = 0;
    let mut tried = 0;
    while offset < whole.len() {
        let (mut got, is_whole) = cut(&client, &path, None, offset).await;
        assert!(!is_whole);
        let last = got.iter().rev().find_map(|frame| frame.id.clone());
        got.extend(cut(&client, &path, last.as_deref(), usize::MAX).await.0);
        assert_eq!(got, wanted, "cut after {offset} bytes");
        (offset, tried) = (offset + whole.len().div_ceil(400), tried + 1);
    }
    assert!(tried >= 300, "{tried}");
}

#[tokio::test]
async fn a_live_stream_that_breaks_again_and_again_gives_each_event_once_with_its_chunks() {
    let text = (0..200).map(|n| format!("word{n} ")).collect::<String>();
    let model = Gated::new([Turn::text(text.clone())]);
    let serving = Serving::of(Agent::builder("support", model.clone())).await;
    let client = serving.client();
    let run = client.start(&json!({"input": "Talk."})).await;
    let path = format!("/api/runs/{}/events", run["run"].as_str().expect("an id"));
    model.open();
    let (mut got, mut bytes) = (Vec::<Frame>::new(), 100);
    loop {
        let last = got.iter().rev().find_map(|frame| frame.id.clone());
        let (more, is_whole) = cut(&client, &path, last.as_deref(), bytes).await;
        got.extend(more);
        bytes = bytes % 1_700 + 501;
        if is_whole {
            break;
        }
    }
    let place = |frame: &Frame| {
        let (seq, after) = frame.id.as_deref()?.split_once('.')?;
        Some((seq.parse::<u64>().ok()?, after.parse::<u32>().ok()?))
    };
    let places: Vec<_> = got.iter().filter_map(place).collect();
    assert!(places.is_sorted_by(|one, two| one < two), "each comes once, in order");
    let said: String = got.iter().filter_map(|frame| frame.data["kind"]["chunk"]["text"]["delta"].as_str()).collect();
    assert_eq!(said, text);
    let answered: Vec<_> = got.iter().filter(|frame| !frame.data["kind"]["model_answered"].is_null()).collect();
    assert_eq!(answered.len(), 1);
    assert_eq!(got.last().and_then(|end| end.data["answer"].as_str()), Some(text.as_str()));
}

#[tokio::test]
async fn who_comes_back_to_a_live_run_gets_the_chunks_that_he_missed() {
    let model = Gated::new([call("c1", "A-1"), Turn::text("one two three")]);
    let serving = Serving::of(Agent::builder("support", model.clone()).tool(refund)).await;
    let client = serving.client();
    let run = client.start(&json!({"input": "Talk."})).await;
    let path = format!("/api/runs/{}/events", run["run"].as_str().expect("an id"));
    let response = client.send(client.request(Method::GET, &path).body(Full::default()).expect("a request")).await;
    let mut body = BodyStream::new(response.into_body());
    let mut text = String::new();
    while !frames(&text).iter().any(|frame| frame.data["kind"].to_string().contains("step_started")) {
        let frame = body.next().await.expect("more").expect("a frame");
        text.push_str(&String::from_utf8_lossy(frame.data_ref().expect("data")));
    }
    let before = frames(&text);
    drop(body);
    // Chunks of the first step, which arrive without a reader. The second step waits.
    model.open();
    let mut all = before.clone();
    let last = all.iter().rev().find_map(|frame| frame.id.clone()).expect("a place");
    let request = client.request(Method::GET, &path).header("last-event-id", &last);
    let reading = client.answer(request.body(Full::default()).expect("a request"));
    model.open();
    let answer = tokio::time::timeout(std::time::Duration::from_secs(20), reading).await.expect("it ends");
    all.extend(frames(&answer.text));
    let said: String = all.iter().filter_map(|f| f.data["kind"]["chunk"]["text"]["delta"].as_str()).collect();
    assert_eq!(said, "one two three");
    let called = all.iter().filter(|frame| !frame.data["kind"]["chunk"]["tool_call"].is_null());
    assert_eq!(called.count(), 1, "a chunk of the first step");
}

#[tokio::test]
async fn every_viewer_sees_the_same_whether_early_late_or_after_a_restart() {
    let model = Gated::new([Turn::text("one two three")]);
    let serving = Serving::of(Agent::builder("support", model.clone())).await;
    let client = serving.client();
    let run = client.start(&json!({"input": "Talk."})).await;
    let path = format!("/api/runs/{}/events", run["run"].as_str().expect("an id"));
    let viewers: Vec<_> = (0..20)
        .map(|_| {
            let (client, path) = (client.clone(), path.clone());
            tokio::spawn(async move { client.get(&path).await.text })
        })
        .collect();
    tokio::task::yield_now().await;
    model.open();
    let durable = |text: &str| frames(text).into_iter().filter(is_durable).collect::<Vec<_>>();
    let late = {
        client.rest(&run).await;
        client.get(&path).await.text
    };
    assert!(durable(&late).len() >= 4);
    for viewer in viewers {
        assert_eq!(durable(&viewer.await.expect("a viewer")), durable(&late));
    }
    let without = client.get(&format!("{path}?chunks=false")).await.text;
    assert!(late.contains("\"chunk\"") && !without.contains("\"chunk\""));
    assert_eq!(durable(&without), durable(&late));
}

#[tokio::test]
async fn the_events_of_a_run_that_waited_go_on_where_they_stopped() {
    let serving = Serving::of(support([call("c1", "A-1"), Turn::text("Refunded.")])).await;
    let client = serving.client();
    let run = client.run(&json!({"input": "Refund A-1."})).await;
    assert_eq!(run["status"], "waiting", "{run}");
    let id = run["run"].as_str().expect("an id");
    let path = format!("/api/runs/{id}/events");
    let first = frames(&client.get(&path).await.text);
    assert_eq!(first.last().expect("an end").data["questions"][0]["id"], "c1/approval");
    let last = first.iter().rev().find_map(|frame| frame.id.clone()).expect("a place");
    let answers = json!({"answers": [{"question": "c1/approval", "allow": true}]});
    assert_eq!(client.post(&format!("/api/runs/{id}/answers"), &answers).await.status, 202);
    client.rest(&run).await;
    let rest = frames(&client.get(&format!("{path}?after={last}")).await.text);
    let all = frames(&client.get(&path).await.text);
    let ids =
        |frames: &[Frame]| frames.iter().filter(|f| is_durable(f)).filter_map(|f| f.id.clone()).collect::<Vec<_>>();
    assert_eq!([ids(&first), ids(&rest)].concat(), ids(&all));
    assert_eq!(ids(&all).iter().collect::<BTreeSet<_>>().len(), ids(&all).len());
}

#[tokio::test]
async fn a_place_that_is_none_is_told() {
    let (_serving, client, id) = finished_run().await;
    let answer = client.get(&format!("/api/runs/{id}/events?after=x")).await;
    assert_eq!((answer.status, answer.code().as_str()), (400, "invalid_request"));
    assert_eq!(client.get("/api/runs/nothing/events").await.status, 404);
    let response =
        client.send(client.request(Method::GET, "/api/runs/nothing").body(Full::default()).expect("a request")).await;
    let body: Value =
        serde_json::from_slice(&response.into_body().collect().await.expect("a body").to_bytes()).expect("JSON");
    assert_eq!(body["error"]["code"], "not_found");
}
