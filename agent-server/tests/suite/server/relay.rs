//! Streaming of runs that a worker executes: late viewers, a relay that is cut, resumed streams.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use agent::{
    Agent, AgentBuilder, AssistantMessage, Block, Model, ModelRequest, ModelResponse, Result, Worker, async_trait,
    core::ModelInfo,
    dispatch::{ChunkRelay, MemoryRelay, RelayBatch, RunAddress},
    journal::MemoryJournal,
    model::{Chunk, Collector},
    store::MemoryQueue,
};
use agent_server::Server;
use bytes::Bytes;
use futures::{StreamExt, stream::BoxStream};
use http::Method;
use http_body_util::{BodyStream, Full};
use hyper::body::Incoming;
use serde_json::json;
use tokio::{
    sync::{Semaphore, oneshot},
    task::JoinHandle,
};

use super::support::{Client, Frame, Serving, frames, refund};

/// Model that answers with these words, each of which waits for a permit. It calls a tool first.
#[derive(Clone)]
struct Typing {
    words: &'static [&'static str],
    permits: Arc<Semaphore>,
}

impl Typing {
    fn new(words: &'static [&'static str]) -> Self {
        Self { words, permits: Arc::new(Semaphore::new(0)) }
    }

    fn says(&self, words: usize) {
        self.permits.add_permits(words);
    }

    fn text(&self) -> String {
        self.words.concat()
    }
}

#[async_trait]
impl Model for Typing {
    fn info(&self) -> ModelInfo {
        ModelInfo::new("typing")
    }

    async fn call(&self, req: ModelRequest) -> Result<ModelResponse> {
        if req.messages.len() < 2 {
            let call = Block::tool_call("c1", "refund", json!({"number": "A-1"}).to_string());
            return Ok(ModelResponse::new(req.sink.collect(AssistantMessage::new(vec![call]))?));
        }
        let mut collector = Collector::new(&req.sink);
        for word in self.words {
            self.permits.acquire().await.expect("it is never closed").forget();
            collector.push(Chunk::Text { index: 0, delta: (*word).to_owned() })?;
        }
        let message = AssistantMessage::new(vec![Block::text(self.text())]);
        Ok(ModelResponse::new(collector.finish(message)))
    }
}

/// Relay that can be cut.
#[derive(Default)]
struct Cut {
    relay: MemoryRelay,
    is_cut: AtomicBool,
}

#[async_trait]
impl ChunkRelay for Cut {
    fn publish(&self, run: &RunAddress, batch: RelayBatch) {
        if !self.is_cut.load(Ordering::SeqCst) {
            self.relay.publish(run, batch);
        }
    }

    fn subscribe(&self, run: &RunAddress) -> BoxStream<'static, RelayBatch> {
        self.relay.subscribe(run)
    }

    fn is_watched(&self, run: &RunAddress) -> bool {
        self.relay.is_watched(run)
    }

    async fn watched(&self, run: &RunAddress, since: u64) -> u64 {
        self.relay.watched(run, since).await
    }
}

/// A queue with a worker, and what servers and workers share.
struct Shared {
    queue: Arc<MemoryQueue>,
    journal: MemoryJournal,
    relay: Arc<Cut>,
    model: Typing,
    _worker: (oneshot::Sender<()>, JoinHandle<()>),
}

impl Shared {
    fn new(words: &'static [&'static str]) -> Self {
        let (queue, journal, relay) =
            (Arc::new(MemoryQueue::default()), MemoryJournal::default(), Arc::new(Cut::default()));
        let model = Typing::new(words);
        let agent = agent(&model).store(journal.clone()).build().expect("an agent");
        let worker = Worker::builder(queue.clone()).agent(agent).relay(relay.clone());
        let worker = worker.shape(|job, request| Ok(request.streaming(job.stream.unwrap_or(true))));
        let worker = worker.build().expect("a worker");
        let (end, ends) = oneshot::channel::<()>();
        let working = tokio::spawn(async move {
            worker.run_until(async { drop(ends.await) }).await;
        });
        Self { queue, journal, relay, model, _worker: (end, working) }
    }

    async fn server(&self) -> Serving {
        let front = agent(&self.model).build().expect("an agent");
        let server = Server::builder().agent(front).store(self.journal.clone()).queue(self.queue.clone());
        Serving::new(server.relay(self.relay.clone())).await
    }
}

fn agent(model: &Typing) -> AgentBuilder {
    Agent::builder("support", model.clone()).tool(refund)
}

/// Viewer of a run.
struct Viewer {
    body: BodyStream<Incoming>,
    text: String,
}

impl Viewer {
    async fn new(client: &Client, path: &str, last: Option<&str>) -> Self {
        let mut request = client.request(Method::GET, path);
        if let Some(last) = last {
            request = request.header("last-event-id", last);
        }
        let response = client.send(request.body(Full::<Bytes>::default()).expect("a request")).await;
        assert_eq!(response.status(), 200);
        Self { body: BodyStream::new(response.into_body()), text: String::new() }
    }

    /// Reads until the chunks contain this text.
    async fn reads(&mut self, text: &str) -> Vec<Frame> {
        while !said(&frames(&self.text)).contains(text) {
            assert!(self.more().await, "it ended: {}", self.text);
        }
        frames(&self.text)
    }

    async fn more(&mut self) -> bool {
        match self.body.next().await {
            Some(frame) => {
                self.text.push_str(&String::from_utf8_lossy(frame.expect("a frame").data_ref().expect("data")));
                true
            }
            None => false,
        }
    }

    async fn end(mut self) -> Vec<Frame> {
        while self.more().await {}
        frames(&self.text)
    }
}

/// Returns the text of the chunks.
fn said(frames: &[Frame]) -> String {
    frames.iter().filter_map(|frame| frame.data["kind"]["chunk"]["text"]["delta"].as_str()).collect()
}

fn ids(frames: &[Frame]) -> Vec<(u64, u32)> {
    let place = |frame: &Frame| {
        let (seq, after) = frame.id.as_deref()?.split_once('.')?;
        Some((seq.parse().ok()?, after.parse().ok()?))
    };
    frames.iter().filter_map(place).collect()
}

async fn start(serving: &Serving) -> String {
    let run = serving.client().start(&json!({"input": "Refund A-1."})).await;
    format!("/api/runs/{}/events", run["run"].as_str().expect("an id"))
}

#[tokio::test]
async fn a_viewer_that_comes_in_the_middle_of_a_message_receives_it_from_its_beginning() {
    let shared = Shared::new(&["one ", "two ", "three ", "four"]);
    let (first, second) = (shared.server().await, shared.server().await);
    let path = start(&first).await;
    let mut early = Viewer::new(&first.client(), &path, None).await;
    shared.model.says(2);
    early.reads("one two ").await;
    let late_elsewhere = Viewer::new(&second.client(), &path, None).await;
    let late_here = Viewer::new(&first.client(), &path, None).await;
    let mut late = Vec::new();
    for mut viewer in [late_elsewhere, late_here] {
        viewer.reads("one two ").await;
        late.push(viewer);
    }
    shared.model.says(2);
    let whole = early.end().await;
    assert_eq!(said(&whole), "one two three four");
    assert!(ids(&whole).is_sorted_by(|one, two| one < two), "{:?}", ids(&whole));
    for viewer in late {
        assert_eq!(said(&viewer.end().await), "one two three four");
    }
}

#[tokio::test]
async fn a_relay_that_is_cut_in_the_middle_costs_chunks_and_no_content() {
    let shared = Shared::new(&["one ", "two ", "three ", "four"]);
    let serving = shared.server().await;
    let path = start(&serving).await;
    let mut viewer = Viewer::new(&serving.client(), &path, None).await;
    shared.model.says(1);
    viewer.reads("one ").await;
    shared.relay.is_cut.store(true, Ordering::SeqCst);
    shared.model.says(1);
    // The relay comes back in the middle of the message: what follows the gap is not shown.
    tokio::task::yield_now().await;
    while shared.model.permits.available_permits() > 0 {
        tokio::task::yield_now().await;
    }
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    shared.relay.is_cut.store(false, Ordering::SeqCst);
    shared.model.says(2);
    let told = viewer.end().await;
    assert_eq!(said(&told), "one ", "a message is not shown with a gap");
    let end = told.last().expect("an end");
    assert_eq!((&end.data["status"], &end.data["answer"]), (&json!("finished"), &json!("one two three four")));
    let answered = told.iter().filter(|frame| !frame.data["kind"]["model_answered"].is_null()).count();
    assert_eq!(answered, 2, "each durable event comes once");
    assert!(ids(&told).is_sorted_by(|one, two| one < two), "{:?}", ids(&told));
}

#[tokio::test]
async fn a_text_in_chunks_is_completed_by_the_journal_when_the_relay_is_cut() {
    let shared = Shared::new(&["one ", "two ", "three ", "four"]);
    let serving = shared.server().await;
    let body = json!({"model": "support", "stream": true, "messages": [{"role": "user", "content": "Refund A-1."}]});
    let request = serving.client().json(Method::POST, "/v1/chat/completions", &body);
    let response = serving.client().send(request).await;
    let (mut body, mut text) = (BodyStream::new(response.into_body()), String::new());
    shared.model.says(1);
    while !text.contains("one ") {
        let frame = body.next().await.expect("more").expect("a frame");
        text.push_str(&String::from_utf8_lossy(frame.data_ref().expect("data")));
    }
    shared.relay.is_cut.store(true, Ordering::SeqCst);
    shared.model.says(3);
    while let Some(frame) = body.next().await {
        text.push_str(&String::from_utf8_lossy(frame.expect("a frame").data_ref().expect("data")));
    }
    let data = text.lines().filter_map(|line| line.strip_prefix("data: ")).filter(|data| *data != "[DONE]");
    let data = data.map(|data| serde_json::from_str::<serde_json::Value>(data).expect("JSON"));
    let said: Vec<_> =
        data.filter_map(|data| data["choices"][0]["delta"]["content"].as_str().map(str::to_owned)).collect();
    assert_eq!(said.concat(), "one two three four");
}

#[tokio::test]
async fn a_stream_is_resumed_at_another_server_within_a_message() {
    let shared = Shared::new(&["one ", "two ", "three ", "four"]);
    let (first, second) = (shared.server().await, shared.server().await);
    let path = start(&first).await;
    let mut viewer = Viewer::new(&first.client(), &path, None).await;
    shared.model.says(2);
    let before = viewer.reads("one two ").await;
    drop(viewer);
    let last = before.iter().rev().find_map(|frame| frame.id.clone()).expect("a place");
    let mut resumed = Viewer::new(&second.client(), &path, Some(&last)).await;
    shared.model.says(1);
    resumed.reads("three ").await;
    shared.model.says(1);
    let after = resumed.end().await;
    assert_eq!(said(&[before.clone(), after.clone()].concat()), "one two three four");
    let all = [ids(&before), ids(&after)].concat();
    assert!(all.is_sorted_by(|one, two| one < two), "{all:?}");
}

#[tokio::test]
async fn a_run_of_one_server_streams_to_the_viewers_of_another() {
    let (journal, relay) = (MemoryJournal::default(), Arc::new(MemoryRelay::default()));
    let model = Typing::new(&["one ", "two "]);
    let server = async || {
        let agent = agent(&model).build().expect("an agent");
        Serving::new(Server::builder().agent(agent).store(journal.clone()).relay(relay.clone())).await
    };
    let (one, two) = (server().await, server().await);
    let path = start(&one).await;
    let mut viewer = Viewer::new(&two.client(), &path, None).await;
    model.says(1);
    viewer.reads("one ").await;
    model.says(1);
    assert_eq!(said(&viewer.end().await), "one two ");
}
