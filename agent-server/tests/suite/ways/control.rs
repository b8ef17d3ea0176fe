//! Claims about the routes of runs.

use agent::{
    Agent, AgentBuilder, Message, Model, ModelRequest, ModelResponse, Part, Result, async_trait, message::MediaSource,
    model::ModelInfo, testing::Turn,
};
use bytes::Bytes;
use http::{Method, header};
use http_body_util::Full;
use serde_json::{Value, json};

use super::{Way, claims};
use crate::server::{
    support::{Answer, Client, Gated, call, frames, refund},
    webhooks::Receiver,
};

claims! {
    a_run_is_started_found_and_listed
    a_stream_has_the_chunks_and_the_end
    a_broken_stream_is_resumed
    a_question_is_answered
    a_running_run_is_cancelled
    a_running_run_is_steered
    a_run_is_paused_and_resumed
    a_step_is_forked
    a_repeated_key_yields_the_same_run
    an_uploaded_file_reaches_the_model
    a_webhook_reports_the_end
    the_limits_of_a_request_hold_after_an_answer
    runs_are_counted_where_they_execute
}

/// Looks up an order.
#[agent::tool]
async fn look(number: String) -> Result<String> {
    Ok(format!("{number} is here"))
}

fn agent_of(model: &Gated) -> AgentBuilder {
    let approval = agent::middleware::Approval::new().ask("refund");
    Agent::builder("support", model.clone()).tool(refund).tool(look).middleware(approval)
}

/// Returns a model whose gate is open for all turns.
fn open(turns: impl IntoIterator<Item = Turn>) -> Gated {
    let turns: Vec<_> = turns.into_iter().collect();
    let count = turns.len();
    let model = Gated::new(turns);
    (0..count).for_each(|_| model.open());
    model
}

fn path(run: &Value) -> String {
    format!("/api/runs/{}", run["run"].as_str().expect("an id"))
}

/// Waits until the run has begun.
async fn begins(client: &Client, run: &Value) {
    while client.get(&path(run)).await.json()["status"] != "running" {
        tokio::task::yield_now().await;
    }
}

async fn a_run_is_started_found_and_listed(way: Way) {
    let model = open([Turn::text("Hello.")]);
    let stage = way.serve(|| agent_of(&model)).await;
    let client = stage.client();
    let run = client.start(&json!({"input": "Hi.", "session": "s"})).await;
    let ended = client.rest(&run).await;
    assert_eq!((&ended["status"], &ended["answer"]), (&json!("finished"), &json!("Hello.")));
    assert_eq!(client.get(&path(&run)).await.json(), ended);
    let listed = client.get("/api/runs?session=s").await.json();
    assert_eq!((&listed["runs"][0]["run"], &listed["runs"][0]["status"]), (&run["run"], &json!("finished")));
}

async fn a_stream_has_the_chunks_and_the_end(way: Way) {
    let model = Gated::new([Turn::text("Hello.")]);
    let stage = way.serve(|| agent_of(&model)).await;
    let client = stage.client();
    let run = client.start(&json!({"input": "Hi."})).await;
    begins(&client, &run).await;
    let reading = tokio::spawn({
        let (client, path) = (client.clone(), format!("{}/events", path(&run)));
        async move { frames(&client.get(&path).await.text) }
    });
    // The viewer is there before the first chunk: chunks that nobody watches are not relayed.
    for _ in 0..1_000 {
        tokio::task::yield_now().await;
    }
    model.open();
    let told = reading.await.expect("no panic");
    let end = told.last().expect("an end");
    assert_eq!((end.event.as_deref(), &end.data["answer"]), (Some("end"), &json!("Hello.")));
    let ids: Vec<_> = told.iter().filter_map(|frame| frame.id.as_deref()).collect();
    assert!(ids.iter().any(|id| !id.ends_with(".0")), "it has transient events: {ids:?}");
}

async fn a_broken_stream_is_resumed(way: Way) {
    let model = open([call("c1", "A-1"), Turn::text("Done.")]);
    let stage = way.serve(|| agent_of(&model)).await;
    let client = stage.client();
    let run = client.run(&json!({"input": "Refund A-1."})).await;
    let answers = json!({"answers": [{"question": "c1/approval", "allow": true}]});
    client.post(&format!("{}/answers", path(&run)), &answers).await;
    client.rest(&run).await;
    let all = frames(&client.get(&format!("{}/events", path(&run))).await.text);
    let durable = |frames: &[crate::server::support::Frame]| -> Vec<String> {
        frames.iter().filter_map(|frame| frame.id.clone()).filter(|id| id.ends_with(".0")).collect()
    };
    let ids = durable(&all);
    let middle = ids.len() / 2;
    let request = client.request(Method::GET, &format!("{}/events", path(&run))).header("last-event-id", &ids[middle]);
    let rest = client.answer(request.body(Full::default()).expect("a request")).await;
    assert_eq!(durable(&frames(&rest.text)), ids[middle + 1..]);
}

async fn a_question_is_answered(way: Way) {
    let model = open([call("c1", "A-1"), Turn::text("Refunded.")]);
    let stage = way.serve(|| agent_of(&model)).await;
    let client = stage.client();
    let run = client.run(&json!({"input": "Refund A-1."})).await;
    assert_eq!(run["status"], "waiting", "{run}");
    let open = client.get("/api/questions").await.json();
    assert_eq!(open["questions"][0]["question"]["id"], "c1/approval", "{open}");
    let answers = json!({"answers": [{"question": "c1/approval", "allow": true}]});
    let answered = client.post(&format!("{}/answers", path(&run)), &answers).await;
    assert_eq!(answered.status, 202, "{}", answered.text);
    assert_eq!(client.rest(&run).await["answer"], "Refunded.");
    let denied = json!({"answers": [{"question": "c1/approval", "allow": false}]});
    let late = client.post(&format!("{}/answers", path(&run)), &denied).await;
    assert_eq!(late.code(), "answer_refused");
}

async fn a_running_run_is_cancelled(way: Way) {
    let model = Gated::new([]);
    let stage = way.serve(|| agent_of(&model)).await;
    let client = stage.client();
    let run = client.start(&json!({"input": "Hi."})).await;
    begins(&client, &run).await;
    assert_eq!(client.post(&format!("{}/cancel", path(&run)), &json!({})).await.status, 202);
    assert_eq!(client.rest(&run).await["status"], "cancelled");
    assert_eq!(client.post(&format!("{}/cancel", path(&run)), &json!({})).await.status, 200, "it is over");
}

async fn a_running_run_is_steered(way: Way) {
    let model = Gated::new([Turn::call("c1", "look", json!({"number": "A-1"})), Turn::text("Both are here.")]);
    let stage = way.serve(|| agent_of(&model)).await;
    let client = stage.client();
    let run = client.start(&json!({"input": "Look for A-1.", "session": "s"})).await;
    begins(&client, &run).await;
    let steered = client.post(&format!("{}/steer", path(&run)), &json!({"input": "And for A-2."})).await;
    assert_eq!(steered.status, 202, "{}", steered.text);
    model.open();
    model.open();
    assert_eq!(client.rest(&run).await["answer"], "Both are here.");
    assert!(client.get("/api/sessions/s/entries").await.text.contains("And for A-2."));
}

async fn a_run_is_paused_and_resumed(way: Way) {
    let model = Gated::new([Turn::call("c1", "look", json!({"number": "A-1"})), Turn::text("It is here.")]);
    let stage = way.serve(|| agent_of(&model)).await;
    let client = stage.client();
    let run = client.start(&json!({"input": "Look for A-1."})).await;
    begins(&client, &run).await;
    assert_eq!(client.post(&format!("{}/pause", path(&run)), &json!({})).await.status, 202);
    // A worker receives the signal before the model's answer, as the run is still at its first step.
    tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    model.open();
    assert_eq!(client.rest(&run).await["status"], "paused");
    let resumed = client.post(&format!("{}/resume", path(&run)), &json!({})).await;
    assert_eq!(resumed.status, 202, "{}", resumed.text);
    model.open();
    assert_eq!(client.rest(&run).await["answer"], "It is here.");
}

async fn a_step_is_forked(way: Way) {
    let model = open([Turn::text("Paris."), Turn::text("Rome.")]);
    let stage = way.serve(|| agent_of(&model)).await;
    let client = stage.client();
    client.run(&json!({"input": "Where shall we go?", "session": "trip"})).await;
    let edit = json!({"step": 0, "into": "trip-2", "edit": {"text": "And where else?"}});
    let forked = client.post("/api/sessions/trip/fork", &edit).await;
    assert_eq!(forked.status, 202, "{}", forked.text);
    let ended = client.rest(&forked.json()).await;
    assert_eq!((&ended["session"], &ended["answer"]), (&json!("trip-2"), &json!("Rome.")));
}

async fn a_repeated_key_yields_the_same_run(way: Way) {
    let model = open([Turn::text("Hello.")]);
    let stage = way.serve(|| agent_of(&model)).await;
    let client = stage.client();
    let start = async |input: &str| {
        let mut request = client.json(Method::POST, "/api/agents/support/runs", &json!({"input": input}));
        request.headers_mut().insert("idempotency-key", "k".parse().expect("letters"));
        client.answer(request).await
    };
    let first = start("Hi.").await;
    let again = start("Hi.").await;
    assert_eq!((first.status, again.status), (202, 200), "{}", again.text);
    assert_eq!(again.json()["run"], first.json()["run"]);
    assert_eq!(start("Another.").await.code(), "idempotency_mismatch");
    assert_eq!(client.rest(&first.json()).await["answer"], "Hello.");
    assert_eq!(start("Hi.").await.json()["run"], first.json()["run"]);
}

/// Model that tells the size of the picture in its input.
struct Mirror;

#[async_trait]
impl Model for Mirror {
    fn info(&self) -> ModelInfo {
        ModelInfo::new("mirror")
    }

    async fn call(&self, req: ModelRequest) -> Result<ModelResponse> {
        let Some(Message::User(user)) = req.messages.last() else { panic!("a user spoke last") };
        let size = user.parts().iter().find_map(|part| match part {
            Part::Image(media) => match &media.source {
                MediaSource::Base64(bytes) => Some(bytes.len()),
                _ => None,
            },
            _ => None,
        });
        Ok(ModelResponse::new(format!("{size:?}").as_str()))
    }
}

async fn an_uploaded_file_reaches_the_model(way: Way) {
    const PNG: &[u8] = b"\x89PNG\r\n\x1a\nnot much of a picture";
    let stage = way.serve(|| Agent::builder("support", Mirror)).await;
    let client = stage.client();
    let request = client.request(Method::POST, "/api/files?name=pot.png").header(header::CONTENT_TYPE, "image/png");
    let file: Answer = client.answer(request.body(Full::new(Bytes::from_static(PNG))).expect("a request")).await;
    let run = client.run(&json!({"input": [{"text": "Look:"}, {"file": file.json()["id"]}]})).await;
    assert_eq!(run["answer"], format!("{:?}", Some(PNG.len().div_ceil(3) * 4)), "{run}");
}

async fn a_webhook_reports_the_end(way: Way) {
    let mut receiver = Receiver::new(Vec::new()).await;
    let model = open([Turn::text("Hello.")]);
    let stage = way.serve(|| agent_of(&model)).await;
    let run = stage.client().start(&json!({"input": "Hi.", "webhook": receiver.url})).await;
    let told = receiver.next().await.json();
    assert_eq!((&told["type"], &told["data"]["run"]), (&json!("run.finished"), &run["run"]));
}

async fn the_limits_of_a_request_hold_after_an_answer(way: Way) {
    let model = open([call("c1", "A-1"), Turn::text("Refunded.")]);
    let stage = way.serve(|| agent_of(&model)).await;
    let client = stage.client();
    let run = client.run(&json!({"input": "Refund A-1.", "session": "s", "params": {"temperature": 0.25}})).await;
    assert_eq!(run["status"], "waiting", "{run}");
    let answers = json!({"answers": [{"question": "c1/approval", "allow": true}]});
    client.post(&format!("{}/answers", path(&run)), &answers).await;
    client.rest(&run).await;
    let requests = model.requests();
    let temperatures: Vec<_> = requests.iter().map(|request| request.params.temperature).collect();
    assert_eq!(temperatures, [Some(0.25), Some(0.25)]);
}

/// The server counts the runs of its own process; workers of a queue are other processes.
async fn runs_are_counted_where_they_execute(way: Way) {
    let model = open([Turn::text("Hello.")]);
    let stage = way.serve(|| agent_of(&model)).await;
    let client = stage.client();
    client.run(&json!({"input": "Hi."})).await;
    let metrics = client.get("/metrics").await.text;
    let counted = metrics.contains(r#"agent_runs_ended_total{agent="support",status="finished"} 1"#);
    assert_eq!(counted, way != Way::Queue, "{metrics}");
}
