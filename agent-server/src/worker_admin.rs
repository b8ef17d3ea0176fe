//! Administration endpoint of a worker: health, readiness and metrics.

use std::{
    collections::HashSet,
    fmt, io,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use agent::{
    Result, RunEnd, RunHandle, WorkerHooks, async_trait,
    dispatch::{Job, RunAddress},
    journal::Journal,
};
use axum::{Json, Router, extract::State, response::IntoResponse, routing::get};
use http::{StatusCode, header};
use serde_json::json;
use tokio::{
    net::TcpListener,
    time::{Instant, timeout},
};

use crate::{health::OPENMETRICS, listen, metrics::Metrics};

/// Maximum number of connections.
const CONNECTIONS: usize = 100;
/// Timeout of the store's answer to a readiness probe.
const STORE: Duration = Duration::from_secs(5);
/// Time for which the store's last answer is sufficient.
const FRESH: Duration = Duration::from_secs(5);

/// Administration endpoint of a [`Worker`](agent::Worker), without authentication: `/health`,
/// `/ready` and `/metrics` with the names of a [`Server`](crate::Server)'s metrics. Cheap to clone.
///
/// The worker is ready while its queue and its store answer. It reveals nothing about the runs but
/// their number per agent and status; let only your monitoring reach it.
///
/// ```no_run
/// use std::sync::Arc;
///
/// use agent::{Worker, journal::Journal};
/// use agent_server::WorkerAdmin;
/// # async fn example(journal: Arc<dyn Journal>, worker: agent::WorkerBuilder) -> Result<(), Box<dyn std::error::Error>> {
/// let admin = WorkerAdmin::new(journal);
/// let worker = worker.hooks(Arc::new(admin.clone())).build()?;
/// let listener = tokio::net::TcpListener::bind("0.0.0.0:9100").await?;
/// tokio::spawn(async move { admin.serve(listener, std::future::pending()).await });
/// worker.run_until(async { drop(agent::shutdown_signal().await) }).await;
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct WorkerAdmin(Arc<Inner>);

struct Inner {
    metrics: Metrics,
    journal: Arc<dyn Journal>,
    /// Maximum age of the queue's last answer of a ready worker.
    patience: Duration,
    /// Time of the queue's last answer.
    queue: Mutex<Instant>,
    /// Time of the store's last answer.
    store: tokio::sync::Mutex<Option<Instant>>,
    /// Runs that started and have not ended.
    active: Mutex<HashSet<RunAddress>>,
}

impl WorkerAdmin {
    /// Creates the endpoint of a worker with this store. It is ready if the queue has answered
    /// within 30 seconds.
    pub fn new(journal: Arc<dyn Journal>) -> Self {
        let (metrics, patience) = (Metrics::default(), Duration::from_secs(30));
        let (queue, store) = (Mutex::new(Instant::now()), tokio::sync::Mutex::new(None));
        Self(Arc::new(Inner { metrics, journal, patience, queue, store, active: Mutex::default() }))
    }

    /// Serves requests until `shutdown` completes.
    ///
    /// # Errors
    /// The errors of the listener.
    pub async fn serve(&self, listener: TcpListener, shutdown: impl Future<Output = ()>) -> io::Result<()> {
        listen::serve(listener, self.router(), CONNECTIONS, shutdown).await
    }

    /// Returns the routes, to be merged into another application.
    pub fn router(&self) -> Router {
        Router::new()
            .route("/health", get(|| async { Json(json!({"status": "ok"})) }))
            .route("/ready", get(ready))
            .route("/metrics", get(metrics))
            .with_state(self.clone())
    }

    fn active(&self) -> MutexGuard<'_, HashSet<RunAddress>> {
        self.0.active.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn queue_age(&self) -> Duration {
        self.0.queue.lock().unwrap_or_else(PoisonError::into_inner).elapsed()
    }

    /// True if the store answers, or has answered just now.
    async fn store_answers(&self) -> bool {
        let mut last = self.0.store.lock().await;
        if last.is_some_and(|last| last.elapsed() < FRESH) {
            return true;
        }
        let answer = timeout(STORE, self.0.journal.list("", "", 1)).await;
        let answers = matches!(answer, Ok(Ok(_)));
        *last = answers.then(Instant::now);
        answers
    }
}

async fn ready(State(admin): State<WorkerAdmin>) -> impl IntoResponse {
    let age = admin.queue_age();
    let unready = |reason: &str| {
        let body = json!({"status": "unready", "reason": reason, "queue_answered_seconds_ago": age.as_secs()});
        (StatusCode::SERVICE_UNAVAILABLE, Json(body))
    };
    if age > admin.0.patience {
        return unready("the queue does not answer");
    }
    if !admin.store_answers().await {
        return unready("the store does not answer");
    }
    (StatusCode::OK, Json(json!({"status": "ready"})))
}

async fn metrics(State(admin): State<WorkerAdmin>) -> impl IntoResponse {
    ([(header::CONTENT_TYPE, OPENMETRICS)], admin.0.metrics.text(&[]))
}

#[async_trait]
impl WorkerHooks for WorkerAdmin {
    fn queue_answered(&self) {
        *self.0.queue.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    fn run_started(&self, job: &Job, _: &RunHandle) {
        if self.active().insert(job.at.clone()) {
            self.0.metrics.started(&job.at.agent);
        }
    }

    async fn run_ended(&self, job: &Job, end: Arc<Result<RunEnd>>) {
        if self.active().remove(&job.at) {
            self.0.metrics.ended_with(&job.at.agent, Some(&end));
        }
    }

    fn run_dropped(&self, job: &Job) {
        if self.active().remove(&job.at) {
            self.0.metrics.ended_with(&job.at.agent, None);
        }
    }
}

impl fmt::Debug for WorkerAdmin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkerAdmin").finish_non_exhaustive()
    }
}
