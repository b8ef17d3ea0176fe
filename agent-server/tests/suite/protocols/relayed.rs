//! Every protocol streams a run alike, whether this process executes it or a worker.

use std::sync::Arc;

use agent::{
    Worker,
    dispatch::{ChunkRelay, MemoryRelay, QueueAdmin, Wanted},
    journal::MemoryJournal,
    store::MemoryQueue,
};
use agent_server::{Server, shape};
use serde_json::{Value, json};
use tokio::{sync::oneshot, task::JoinHandle};

use super::{
    scenes::{acting, actor},
    served::{Answer, Served},
};

/// Server without execution, and a worker with the same relay.
struct Dispatched {
    served: Arc<Served>,
    queue: Arc<MemoryQueue>,
    journal: MemoryJournal,
    relay: Arc<MemoryRelay>,
}

impl Dispatched {
    async fn start() -> Self {
        let (queue, journal, relay) = (Arc::new(MemoryQueue::default()), MemoryJournal::default(), Arc::default());
        let server = Server::builder().agent(actor()).store(journal.clone()).queue(queue.clone());
        let relay: Arc<MemoryRelay> = relay;
        let served = Arc::new(Served::of(server.relay(relay.clone())).await);
        Self { served, queue, journal, relay }
    }

    /// Posts a request, and lets a worker begin once somebody watches the run.
    async fn post(&self, path: &'static str, body: Value) -> Answer {
        let served = self.served.clone();
        let posting = tokio::spawn(async move { served.post(path, &body).await });
        let at = loop {
            let jobs = self.queue.jobs(&Wanted::default().most(1)).await.expect("lists");
            match jobs.into_iter().next() {
                Some(job) if job.standing.kind().as_str() == "queued" => break job.job.at,
                _ => tokio::task::yield_now().await,
            }
        };
        while !self.relay.is_watched(&at) {
            tokio::task::yield_now().await;
        }
        let (end, working) = self.worker();
        let answer = posting.await.expect("no panic");
        end.send(()).expect("it works");
        working.await.expect("no panic");
        answer
    }

    fn worker(&self) -> (oneshot::Sender<()>, JoinHandle<()>) {
        let agent = acting().store(self.journal.clone()).build().expect("an agent");
        let shaping = agent.clone();
        let worker = Worker::builder(self.queue.clone()).agent(agent).relay(self.relay.clone());
        let worker = worker.shape(move |job, request| shape(job, &shaping, request)).build().expect("a worker");
        let (end, ends) = oneshot::channel::<()>();
        let working = tokio::spawn(async move {
            worker.run_until(async { drop(ends.await) }).await;
        });
        (end, working)
    }
}

/// Returns the types of frames with their texts, without ids.
fn told(frames: &[Value]) -> Vec<String> {
    let of_frame = |frame: &Value| {
        let mut words = vec![frame["type"].as_str().unwrap_or_default().to_owned()];
        texts(frame, &mut words);
        words.join("|")
    };
    frames.iter().map(of_frame).collect()
}

/// Collects the texts under keys of content.
fn texts(value: &Value, words: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                match value {
                    Value::String(text) if ["delta", "content", "text", "chunk"].contains(&key.as_str()) => {
                        words.push(text.clone());
                    }
                    value => texts(value, words),
                }
            }
        }
        Value::Array(values) => values.iter().for_each(|value| texts(value, words)),
        _ => {}
    }
}

fn requests(scene: &str) -> [(&'static str, Value); 4] {
    [
        (
            "/v1/chat/completions",
            json!({"model": "actor", "messages": [{"role": "user", "content": scene}], "stream": true}),
        ),
        ("/v1/responses", json!({"model": "actor", "input": scene, "stream": true})),
        (
            "/ui/actor",
            json!({"id": scene, "trigger": "submit-message",
                "messages": [{"id": "1", "role": "user", "parts": [{"type": "text", "text": scene}]}]}),
        ),
        (
            "/ag-ui/actor",
            json!({"threadId": scene, "runId": "r", "protocolVersion": "1.0", "tools": [], "context": [], "state": {},
                "messages": [{"id": "u1", "role": "user", "content": scene}], "forwardedProps": {}}),
        ),
    ]
}

#[tokio::test]
async fn a_run_on_a_worker_streams_like_one_of_this_process_in_every_protocol() {
    for scene in ["hello", "tool", "reasoning", "again"] {
        for (path, body) in requests(scene) {
            let here = Served::start().await.post(path, &body).await;
            let there = Dispatched::start().await.post(path, body).await;
            assert_eq!((here.status, there.status), (200, 200), "{path}: {there:?}");
            assert_eq!(told(&there.frames()), told(&here.frames()), "{scene} over {path}");
        }
    }
}

#[tokio::test]
async fn sub_agents_and_the_progress_of_tools_reach_viewers_of_a_run_on_a_worker() {
    let dispatched = Dispatched::start().await;
    let (path, body) = requests("agents")[3].clone();
    let events = dispatched.post(path, body).await.frames();
    let streamed = |events: &[Value]| {
        let mut told: Vec<_> = told(events).into_iter().filter(|told| !told.starts_with("RUN")).collect();
        told.sort();
        told
    };
    let (path, body) = requests("agents")[3].clone();
    let here = Served::start().await.post(path, &body).await.frames();
    assert_eq!(streamed(&events), streamed(&here));
}
