//! In-process provider.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use agent_core::{Result, async_trait};
use agent_llm::{Body, Transport};
use bytes::Bytes;
use http::{Request, Response};
use serde_json::Value;

type Answers = dyn Fn(usize, &Value) -> Answer + Send + Sync;

/// Answer to one request.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: String,
    /// Latency.
    pub(crate) after: Duration,
}

impl Answer {
    #[expect(clippy::needless_pass_by_value, reason = "what is made by json! is handed over as it is")]
    pub(crate) fn new(status: u16, body: impl ToString) -> Self {
        let headers = vec![("content-type", "application/json".to_owned())];
        Self { status, headers, body: body.to_string(), after: Duration::ZERO }
    }

    pub(crate) fn header(mut self, name: &'static str, value: &str) -> Self {
        self.headers.push((name, value.to_owned()));
        self
    }

    pub(crate) fn after(mut self, wait: Duration) -> Self {
        self.after = wait;
        self
    }
}

/// Answers requests with a function, and counts them.
#[derive(Clone)]
pub(crate) struct Provider {
    answers: Arc<Answers>,
    seen: Arc<Mutex<Vec<Request<Bytes>>>>,
    open: Arc<AtomicUsize>,
    most_open: Arc<AtomicUsize>,
}

impl Provider {
    /// `answers` receives the number of earlier calls.
    pub(crate) fn new(answers: impl Fn(usize, &Value) -> Answer + Send + Sync + 'static) -> Self {
        Self { answers: Arc::new(answers), seen: Arc::default(), open: Arc::default(), most_open: Arc::default() }
    }

    pub(crate) fn calls(&self) -> usize {
        self.seen.lock().expect("lock").len()
    }

    /// Returns the number of concurrent calls, and its maximum.
    pub(crate) fn open(&self) -> (usize, usize) {
        (self.open.load(Ordering::SeqCst), self.most_open.load(Ordering::SeqCst))
    }

    pub(crate) fn uri(&self) -> String {
        self.seen.lock().expect("lock").last().expect("a call").uri().to_string()
    }

    pub(crate) fn header(&self, name: &str) -> Option<String> {
        let seen = self.seen.lock().expect("lock");
        Some(seen.last()?.headers().get(name)?.to_str().expect("text").to_owned())
    }

    pub(crate) fn bodies(&self) -> Vec<Value> {
        let seen = self.seen.lock().expect("lock");
        seen.iter().map(|request| serde_json::from_slice(request.body()).expect("a JSON body")).collect()
    }
}

/// A call in progress.
struct Open(Arc<AtomicUsize>);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

#[async_trait]
impl Transport for Provider {
    async fn send(&self, request: Request<Bytes>) -> Result<Response<Body>> {
        let json = serde_json::from_slice(request.body()).expect("a JSON body");
        let before = {
            let mut seen = self.seen.lock().expect("lock");
            seen.push(request);
            seen.len() - 1
        };
        let open = Open(self.open.clone());
        self.most_open.fetch_max(open.0.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
        let answer = (self.answers)(before, &json);
        tokio::time::sleep(answer.after).await;
        drop(open);
        let mut response = Response::builder().status(answer.status);
        for (name, value) in answer.headers {
            response = response.header(name, value);
        }
        Ok(response.body(answer.body.into()).expect("a response"))
    }
}
