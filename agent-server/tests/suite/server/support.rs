//! A server at a loopback address, and a client.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use agent::{
    Agent, AgentBuilder, Model, Result, async_trait,
    core::ModelInfo,
    middleware::Approval,
    testing::{ScriptedModel, Turn},
};
use agent_server::{Server, ServerBuilder};
use bytes::Bytes;
use http::{Method, Request, Response, header};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper_util::{
    client::legacy::{Client as Http, connect::HttpConnector},
    rt::TokioExecutor,
};
use serde_json::Value;
use tokio::sync::{Semaphore, oneshot};

/// Refunds an order.
#[agent::tool]
pub(crate) async fn refund(number: String) -> Result<String> {
    Ok(format!("{number} is refunded"))
}

/// Returns an agent that answers with these turns, and asks before it refunds.
pub(crate) fn support(turns: impl IntoIterator<Item = Turn>) -> AgentBuilder {
    Agent::builder("support", ScriptedModel::new(turns)).tool(refund).middleware(Approval::new().ask("refund"))
}

/// Returns a call of `refund`.
pub(crate) fn call(id: &str, number: &str) -> Turn {
    Turn::call(id, "refund", serde_json::json!({"number": number}))
}

/// Model that answers when its gate is opened.
#[derive(Clone)]
pub(crate) struct Gated {
    inner: ScriptedModel,
    gate: Arc<Semaphore>,
}

impl Gated {
    pub(crate) fn new(turns: impl IntoIterator<Item = Turn>) -> Self {
        Self { inner: ScriptedModel::new(turns), gate: Arc::new(Semaphore::new(0)) }
    }

    /// Returns the requests of all calls so far.
    pub(crate) fn requests(&self) -> Vec<agent::testing::Seen> {
        self.inner.requests()
    }

    /// Lets one call through.
    pub(crate) fn open(&self) {
        self.gate.add_permits(1);
    }
}

#[async_trait]
impl Model for Gated {
    fn info(&self) -> ModelInfo {
        self.inner.info()
    }

    async fn call(&self, req: agent::ModelRequest) -> Result<agent::ModelResponse> {
        self.gate.acquire().await.expect("it is never closed").forget();
        self.inner.call(req).await
    }
}

/// Listening server, until it is dropped.
pub(crate) struct Serving {
    pub(crate) address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    task: tokio::task::JoinHandle<()>,
}

impl Serving {
    pub(crate) async fn of(agent: AgentBuilder) -> Self {
        Self::new(Server::builder().agent(agent.build().expect("an agent"))).await
    }

    pub(crate) async fn new(builder: ServerBuilder) -> Self {
        Self::serve(builder.build().expect("a server")).await
    }

    pub(crate) async fn serve(server: Server) -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let (stop, stopped) = oneshot::channel::<()>();
        let task = tokio::spawn(async move {
            let stopped = async {
                let _ = stopped.await;
            };
            server.serve(listener, stopped, Duration::from_secs(10)).await.expect("it serves");
        });
        Self { address, stop: Some(stop), task }
    }

    pub(crate) fn client(&self) -> Client {
        Client { address: self.address, key: None, http: Http::builder(TokioExecutor::new()).build_http() }
    }

    /// Starts the shutdown of the server.
    pub(crate) fn stop(&mut self) {
        drop(self.stop.take());
    }

    /// Waits until the server has shut down.
    pub(crate) async fn stopped(mut self) {
        self.stop();
        self.task.await.expect("it ends");
    }
}

/// HTTP client, optionally with a key.
#[derive(Clone)]
pub(crate) struct Client {
    address: SocketAddr,
    key: Option<String>,
    http: Http<HttpConnector, Full<Bytes>>,
}

/// HTTP response.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: http::HeaderMap,
    pub(crate) text: String,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|e| panic!("{e}: {} {}", self.status, self.text))
    }

    /// Returns the code of an error.
    pub(crate) fn code(&self) -> String {
        self.json()["error"]["code"].as_str().unwrap_or_default().to_owned()
    }
}

impl Client {
    pub(crate) fn with_key(&self, key: &str) -> Self {
        Self { key: Some(key.to_owned()), ..self.clone() }
    }

    pub(crate) fn request(&self, method: Method, path: &str) -> http::request::Builder {
        let builder = Request::builder().method(method).uri(format!("http://{}{path}", self.address));
        match &self.key {
            Some(key) => builder.header(header::AUTHORIZATION, format!("Bearer {key}")),
            None => builder,
        }
    }

    pub(crate) async fn send(&self, request: Request<Full<Bytes>>) -> Response<Incoming> {
        self.http.request(request).await.expect("an answer")
    }

    pub(crate) async fn answer(&self, request: Request<Full<Bytes>>) -> Answer {
        let response = self.send(request).await;
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let bytes = response.into_body().collect().await.expect("a body").to_bytes();
        Answer { status, headers, text: String::from_utf8_lossy(&bytes).into_owned() }
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.answer(self.request(Method::GET, path).body(Full::default()).expect("a request")).await
    }

    pub(crate) async fn delete(&self, path: &str) -> Answer {
        self.answer(self.request(Method::DELETE, path).body(Full::default()).expect("a request")).await
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> Answer {
        self.answer(self.json(Method::POST, path, body)).await
    }

    pub(crate) fn json(&self, method: Method, path: &str, body: &Value) -> Request<Full<Bytes>> {
        let builder = self.request(method, path).header(header::CONTENT_TYPE, "application/json");
        builder.body(Full::from(body.to_string())).expect("a request")
    }

    /// Starts a run of `support`.
    pub(crate) async fn start(&self, body: &Value) -> Value {
        let answer = self.post("/api/agents/support/runs", body).await;
        assert_eq!(answer.status, 202, "{}", answer.text);
        answer.json()
    }

    /// Waits until the run stops and returns it.
    pub(crate) async fn rest(&self, run: &Value) -> Value {
        let id = run["run"].as_str().expect("an id");
        self.get(&format!("/api/runs/{id}?wait=30")).await.json()
    }

    /// Starts a run, and waits until it stops.
    pub(crate) async fn run(&self, body: &Value) -> Value {
        let run = self.start(body).await;
        self.rest(&run).await
    }
}

/// One event of a stream.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Frame {
    pub(crate) id: Option<String>,
    pub(crate) event: Option<String>,
    pub(crate) data: Value,
}

/// Returns the complete events of a stream's text; a truncated one is dropped.
pub(crate) fn frames(text: &str) -> Vec<Frame> {
    let whole = text.rfind("\n\n").map_or("", |end| &text[..end]);
    let mut frames = Vec::new();
    for block in whole.split("\n\n") {
        let field = |name: &str| block.lines().find_map(|line| line.strip_prefix(name)).map(str::to_owned);
        let Some(data) = field("data: ") else { continue };
        let data = serde_json::from_str(&data).unwrap_or_else(|e| panic!("{e}: {data}"));
        frames.push(Frame { id: field("id: "), event: field("event: "), data });
    }
    frames
}
