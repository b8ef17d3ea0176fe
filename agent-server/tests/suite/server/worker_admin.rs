//! The administration endpoint of a worker.

use std::{sync::Arc, time::Duration};

use agent::{
    Agent, Error, ErrorKind, Result, RunRequest, Worker, WorkerHooks, async_trait,
    dispatch::{Dispatch, Job, JobStatus},
    journal::{Entry, Journal, JournalWriter, MemoryJournal},
    store::MemoryQueue,
    testing::{ScriptedModel, Turn},
};
use agent_server::WorkerAdmin;
use axum::body::Body;
use http::Request;
use http_body_util::BodyExt;
use tower::ServiceExt;

async fn get(admin: &WorkerAdmin, path: &str) -> (u16, String) {
    let request = Request::get(path).body(Body::empty()).expect("a request");
    let response = admin.router().oneshot(request).await.expect("an answer");
    let status = response.status().as_u16();
    let bytes = response.into_body().collect().await.expect("a body").to_bytes();
    (status, String::from_utf8_lossy(&bytes).into_owned())
}

#[tokio::test]
async fn the_runs_of_a_worker_are_counted_by_the_names_of_a_server() {
    let (queue, journal) = (Arc::new(MemoryQueue::default()), MemoryJournal::default());
    let agent = Agent::builder("support", ScriptedModel::new([Turn::text("Hello.")])).store(journal.clone());
    let admin = WorkerAdmin::new(Arc::new(journal));
    let worker = Worker::builder(queue.clone()).agent(agent.build().expect("an agent"));
    let worker = worker.hooks(Arc::new(admin.clone())).build().expect("a worker");
    let job = Job::new("support", &RunRequest::user("Hi.")).expect("a job");
    let at = job.at.clone();
    queue.dispatch(job).await.expect("it is taken");
    let done = async {
        while queue.standing(&at).await.ok().flatten() != Some(JobStatus::Done) {
            tokio::task::yield_now().await;
        }
    };
    worker.run_until(done).await;
    let (status, text) = get(&admin, "/metrics").await;
    assert_eq!(status, 200);
    for line in [
        "agent_runs_started_total{agent=\"support\"} 1",
        "agent_runs_ended_total{agent=\"support\",status=\"finished\"} 1",
        "agent_runs_under_way 0",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
    assert_eq!(get(&admin, "/health").await.0, 200);
    assert_eq!(get(&admin, "/ready").await.0, 200);
}

#[tokio::test(start_paused = true)]
async fn a_worker_is_not_ready_while_its_queue_is_silent() {
    let admin = WorkerAdmin::new(Arc::new(MemoryJournal::default()));
    assert_eq!(get(&admin, "/ready").await.0, 200);
    tokio::time::advance(Duration::from_secs(31)).await;
    let (status, text) = get(&admin, "/ready").await;
    assert!(status == 503 && text.contains("queue"), "{text}");
    admin.queue_answered();
    assert_eq!(get(&admin, "/ready").await.0, 200);
    assert_eq!(get(&admin, "/health").await.0, 200);
}

/// Store that cannot be reached.
struct Gone;

#[async_trait]
impl Journal for Gone {
    async fn open(&self, _: &str, _: &str) -> Result<Arc<dyn JournalWriter>> {
        Err(Error::new(ErrorKind::Store, "it is gone"))
    }

    async fn read(&self, _: &str, _: u64, _: usize) -> Result<Vec<Arc<Entry>>> {
        Err(Error::new(ErrorKind::Store, "it is gone"))
    }

    async fn sessions(&self) -> Result<Vec<String>> {
        Err(Error::new(ErrorKind::Store, "it is gone"))
    }

    async fn delete(&self, _: &str) -> Result<bool> {
        Err(Error::new(ErrorKind::Store, "it is gone"))
    }
}

#[tokio::test]
async fn a_worker_is_not_ready_while_its_store_does_not_answer() {
    let (status, text) = get(&WorkerAdmin::new(Arc::new(Gone)), "/ready").await;
    assert!(status == 503 && text.contains("store"), "{text}");
}
