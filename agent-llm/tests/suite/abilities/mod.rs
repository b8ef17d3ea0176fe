//! Features beyond conversations: provider-side tools, citations, files, batches.

mod batch;
mod files;
mod media;
mod replies;
mod server_tools;

use std::sync::{Arc, Mutex};

use agent_core::{History, Message, ModelRequest, Result, async_trait, engine::RunDriver, testing::detached_run};
use agent_llm::{Body, Transport};
use bytes::Bytes;
use http::{Request, Response};

/// A request with one question. The run must outlive the request.
pub(crate) fn question() -> (RunDriver, ModelRequest) {
    let run = detached_run(History::from_messages([Message::user("What is new?")]).expect("a history"));
    let request = ModelRequest::new(run.cx().clone());
    (run, request)
}

type Say = dyn Fn(&Request<Bytes>) -> Response<Body> + Send + Sync;

/// A server that answers with a function, and records its requests.
#[derive(Clone)]
pub(crate) struct Server {
    say: Arc<Say>,
    seen: Arc<Mutex<Vec<Request<Bytes>>>>,
}

impl Server {
    pub(crate) fn new(say: impl Fn(&Request<Bytes>) -> Response<Body> + Send + Sync + 'static) -> Self {
        Self { say: Arc::new(say), seen: Arc::default() }
    }

    /// Returns the methods and paths of the requests.
    pub(crate) fn asked(&self) -> Vec<String> {
        self.seen.lock().expect("lock").iter().map(|req| format!("{} {}", req.method(), req.uri())).collect()
    }

    pub(crate) fn seen(&self, at: usize) -> Request<Bytes> {
        self.seen.lock().expect("lock")[at].clone()
    }
}

#[async_trait]
impl Transport for Server {
    async fn send(&self, request: Request<Bytes>) -> Result<Response<Body>> {
        let answer = (self.say)(&request);
        self.seen.lock().expect("lock").push(request);
        Ok(answer)
    }
}

pub(crate) fn ok(body: impl Into<Bytes>) -> Response<Body> {
    Response::new(Body::from(body.into()))
}
