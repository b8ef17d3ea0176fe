//! In-process provider, and requests to it.
#![allow(dead_code, reason = "each test file uses a part")]

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
    time::Duration,
};

use agent_core::{
    AssistantMessage, Chunk, ChunkSink, Error, ErrorKind, History, Message, ModelRequest, Result, Retry, async_trait,
    engine::RunDriver, testing::detached_run,
};
use agent_llm::{Body, Codec, OpenAiChatCodec, Profile, Transport};
use bytes::Bytes;
use futures::{StreamExt, stream};
use http::{Request, Response};
use serde_json::Value;

/// One step of a body.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    Say(Bytes),
    /// Sends the bytes after the delay.
    Late(Duration, Bytes),
    Break,
    Stall,
}

pub(crate) fn say(bytes: impl Into<Bytes>) -> Step {
    Step::Say(bytes.into())
}

/// One answer of the provider.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) steps: Vec<Step>,
}

impl Answer {
    pub(crate) fn json(status: u16, body: impl Into<Bytes>) -> Self {
        Self { status, headers: vec![("content-type", "application/json".into())], steps: vec![say(body)] }
    }

    pub(crate) fn stream(steps: impl IntoIterator<Item = Step>) -> Self {
        let headers = vec![("content-type", "text/event-stream".into())];
        Self { status: 200, headers, steps: steps.into_iter().collect() }
    }

    pub(crate) fn header(mut self, name: &'static str, value: &str) -> Self {
        self.headers.push((name, value.into()));
        self
    }
}

/// Returns answers in order and records the requests.
#[derive(Clone, Default)]
pub(crate) struct Provider {
    answers: Arc<Mutex<VecDeque<Answer>>>,
    seen: Arc<Mutex<Vec<Request<Bytes>>>>,
}

impl Provider {
    pub(crate) fn new(answers: impl IntoIterator<Item = Answer>) -> Self {
        Self { answers: Arc::new(Mutex::new(answers.into_iter().collect())), seen: Arc::default() }
    }

    pub(crate) fn calls(&self) -> usize {
        self.seen.lock().expect("lock").len()
    }

    pub(crate) fn bodies(&self) -> Vec<Value> {
        let seen = self.seen.lock().expect("lock");
        seen.iter().map(|request| serde_json::from_slice(request.body()).expect("a JSON body")).collect()
    }

    pub(crate) fn header(&self, name: &str) -> Option<String> {
        let seen = self.seen.lock().expect("lock");
        Some(seen.last()?.headers().get(name)?.to_str().expect("text").to_owned())
    }
}

#[async_trait]
impl Transport for Provider {
    async fn send(&self, request: Request<Bytes>) -> Result<Response<Body>> {
        self.seen.lock().expect("lock").push(request);
        let answer = self.answers.lock().expect("lock").pop_front().expect("an answer for every request");
        let steps = stream::iter(answer.steps).then(|step| async {
            match step {
                Step::Say(bytes) => Ok(bytes),
                Step::Late(wait, bytes) => {
                    tokio::time::sleep(wait).await;
                    Ok(bytes)
                }
                Step::Break => Err(Error::new(ErrorKind::Transport, "broken pipe").with_retry(Retry::Temporary(None))),
                Step::Stall => std::future::pending().await,
            }
        });
        let mut response = Response::builder().status(answer.status);
        for (name, value) in answer.headers {
            response = response.header(name, value);
        }
        Ok(response.body(Body::new(steps)).expect("a response"))
    }
}

/// A completion with one choice.
pub(crate) fn completion(message: &str, finish: &str) -> String {
    let choice = format!(r#"{{"index":0,"message":{message},"finish_reason":"{finish}"}}"#);
    format!(r#"{{"id":"r1","model":"m-1","choices":[{choice}],"usage":{{"prompt_tokens":10,"completion_tokens":5}}}}"#)
}

pub(crate) fn hello() -> String {
    completion(r#"{"role":"assistant","content":"hello"}"#, "stop")
}

/// An event whose only choice has this delta.
pub(crate) fn delta(delta: &str) -> String {
    format!("data: {{\"id\":\"r1\",\"model\":\"m-1\",\"choices\":[{{\"index\":0,\"delta\":{delta}}}]}}\n\n")
}

pub(crate) fn finish(reason: &str) -> String {
    format!("data: {{\"id\":\"r1\",\"choices\":[{{\"index\":0,\"delta\":{{}},\"finish_reason\":\"{reason}\"}}]}}\n\n")
}

pub(crate) const DONE: &str = "data: [DONE]\n\n";

/// A run with these messages. It must outlive its requests.
pub(crate) fn run(messages: impl IntoIterator<Item = Message>) -> RunDriver {
    detached_run(History::from_messages(messages).expect("paired messages"))
}

pub(crate) fn ask() -> ModelRequest {
    ModelRequest::new(run([Message::user("hi")]).cx().clone())
}

pub(crate) fn ask_to_stream() -> ModelRequest {
    let mut req = ask();
    req.stream = true;
    req
}

pub(crate) fn request(messages: impl IntoIterator<Item = Message>) -> ModelRequest {
    ModelRequest::new(run(messages).cx().clone())
}

/// Records the chunks of `req`.
pub(crate) fn listen(req: &mut ModelRequest) -> Arc<Mutex<Vec<Chunk>>> {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let sink = heard.clone();
    req.sink = ChunkSink::default().with_observer(move |chunk| sink.lock().expect("lock").push(chunk.clone()));
    heard
}

pub(crate) fn codec() -> OpenAiChatCodec {
    OpenAiChatCodec::new("m", Profile::compatible("acme", "http://acme.test/v1")).expect("a codec")
}

/// Encodes `req` with the codec.
pub(crate) fn encoded(codec: &impl Codec, req: &ModelRequest) -> Value {
    serde_json::from_slice(codec.encode(req).expect("encodes").body()).expect("a JSON body")
}

/// Returns the JSON text of `message` as encoded after a user message.
pub(crate) fn sent_back(codec: &impl Codec, message: &AssistantMessage) -> String {
    let history = History::import([Message::user("u"), Message::Assistant(message.clone())]).0;
    let req = ModelRequest::new(detached_run(history).cx().clone());
    let body = codec.encode(&req).expect("encodes").body().to_vec();
    let body = String::from_utf8(body).expect("UTF-8");
    let (_, messages) = body.split_once(r#"{"role":"user","content":"u"},"#).expect("the user message");
    let mut values = serde_json::Deserializer::from_str(messages).into_iter::<&serde_json::value::RawValue>();
    values.next().expect("a message").expect("JSON").get().to_owned()
}

/// Decodes a stream of these events; returns the response and its chunks.
pub(crate) fn streamed(codec: &impl Codec, body: &str) -> Result<(agent_core::ModelResponse, Vec<Chunk>)> {
    let (mut decoder, mut chunks) = (codec.decoder(true), Vec::new());
    let mut splitter = agent_llm::SseSplitter::default();
    splitter.push(body.as_bytes(), |event| decoder.frame(event.data, &mut chunks))?;
    splitter.finish(|event| decoder.frame(event.data, &mut chunks))?;
    let response = decoder.finish(&mut chunks)?;
    Ok((response, chunks))
}
