//! The models of an Ollama server.

use std::{collections::VecDeque, fmt, sync::Arc, time::Duration};

use agent_core::{Error, ErrorKind, Result};
use futures::{Stream, TryFutureExt, TryStreamExt, stream};
use http::{Method, Request, header};
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Map, Value, json};

use super::whole;
use crate::{
    Auth, Body, Framing, HttpTransport, ProviderError, Splitter, Transport, error::truncated, wire::ollama::server,
};

/// Where a server listens that nobody told otherwise, and the variable that may name another.
const USUAL: &str = "http://localhost:11434";
const VARIABLE: &str = "OLLAMA_BASE_URL";
/// What is asked of the server is answered from its disk.
const PATIENCE: Duration = Duration::from_secs(30);
/// What is known of a model has its licence in it.
const MOST_BYTES: usize = 16 << 20;

/// An Ollama server: which models it has, which are in memory, and how to get more.
///
/// ```no_run
/// use agent_llm::local::Ollama;
/// use futures::TryStreamExt;
///
/// # async fn example() -> agent_core::Result<()> {
/// let server = Ollama::default();
/// if !server.models().await?.iter().any(|model| model.name == "qwen3:8b") {
///     let mut pulled = std::pin::pin!(server.pull("qwen3:8b"));
///     while let Some(progress) = pulled.try_next().await? {
///         println!("{}: {:?} of {:?} bytes", progress.status, progress.completed, progress.total);
///     }
/// }
/// assert!(server.show("qwen3:8b").await?.can("tools"));
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Ollama {
    server: String,
    key: Option<SecretString>,
    transport: Arc<dyn Transport>,
}

/// A model that a server has.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct OllamaModel {
    /// Its name, as after `ollama:` in a model's.
    pub name: String,
    /// Its bytes on disk.
    pub size: u64,
    /// The digest of its manifest: another one is another model of the same name.
    pub digest: String,
}

/// A model in a server's memory.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct LoadedModel {
    /// Its name.
    pub name: String,
    /// Its bytes in memory.
    pub size: u64,
    /// Those of them that are on a graphics card.
    pub size_vram: u64,
    /// The window that it was loaded with, in tokens: what does not fit is not seen.
    pub context_length: Option<u64>,
    /// When it leaves memory, if nobody asks it before: as RFC 3339.
    pub expires_at: String,
}

/// What a server knows of a model.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct OllamaFacts {
    /// What it can do: `completion`, `tools`, `thinking`, `vision`, `embedding`, ..
    pub capabilities: Vec<String>,
    #[serde(rename = "model_info")]
    info: Map<String, Value>,
}

impl OllamaFacts {
    /// True if the model can do this, as `tools`.
    pub fn can(&self, what: &str) -> bool {
        self.capabilities.iter().any(|known| known == what)
    }

    /// The tokens that a request and its answer may have together at most. A server gives a model as many only if it is told
    /// to, as `num_ctx` in [`options`](crate::OllamaProfile::options).
    pub fn context_window(&self) -> Option<u64> {
        let family = self.info.get("general.architecture")?.as_str()?;
        self.info.get(&format!("{family}.context_length"))?.as_u64()
    }
}

/// How far a pull has come.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct PullProgress {
    /// What is done, in the server's words; `success` at the end.
    pub status: String,
    /// The part of the model that is being fetched.
    pub digest: Option<String>,
    /// The bytes of the part.
    pub total: Option<u64>,
    /// Those of them that are there.
    pub completed: Option<u64>,
}

impl Ollama {
    /// The server at this address, such as `http://gpu7:11434`. A `/v1` or `/api` at its end is left out.
    pub fn new(base_url: &str) -> Self {
        Self { server: server(base_url).to_owned(), key: None, transport: Arc::new(HttpTransport::default()) }
    }

    /// Sets how requests travel. Default: a transport of its own.
    #[must_use]
    pub fn transport(mut self, transport: impl Transport) -> Self {
        self.transport = Arc::new(transport);
        self
    }

    /// Sets the key, of a server that wants one. Default: none.
    #[must_use]
    pub fn api_key(mut self, key: impl Into<String>) -> Self {
        self.key = Some(SecretString::from(key.into()));
        self
    }

    /// The models that are there.
    ///
    /// # Errors
    /// If the server cannot be reached or says something else; [`Timeout`](ErrorKind::Timeout) if it says nothing for 30 s.
    pub async fn models(&self) -> Result<Vec<OllamaModel>> {
        self.list("/api/tags").await
    }

    /// The models that are in memory.
    ///
    /// # Errors
    /// As [`models`](Self::models).
    pub async fn loaded(&self) -> Result<Vec<LoadedModel>> {
        self.list("/api/ps").await
    }

    /// What is known of a model.
    ///
    /// # Errors
    /// As [`models`](Self::models); [`InvalidRequest`](ErrorKind::InvalidRequest) if the model is not there.
    pub async fn show(&self, model: &str) -> Result<OllamaFacts> {
        self.ask(Method::POST, "/api/show", &json!({"model": model})).await
    }

    /// Has the server get a model, and tells how far it has come, until it is there. Who drops the stream stops the server,
    /// which goes on where it was at the next pull.
    ///
    /// # Errors
    /// Items are errors if the server cannot be reached or cannot get the model. Nothing follows an error.
    pub fn pull(&self, model: &str) -> impl Stream<Item = Result<PullProgress>> + Send + use<> {
        let (server, body) = (self.clone(), json!({"model": model, "stream": true}));
        let begun = async move { Ok::<_, Error>(Pull::of(server.send(Method::POST, "/api/pull", &body).await?)) };
        begun.map_ok(|pull| stream::try_unfold(pull, Pull::next)).try_flatten_stream()
    }

    async fn list<T: DeserializeOwned>(&self, path: &str) -> Result<Vec<T>> {
        #[derive(Deserialize)]
        struct List<T> {
            models: Option<Vec<T>>,
        }
        Ok(self.ask::<List<T>>(Method::GET, path, &Value::Null).await?.models.unwrap_or_default())
    }

    async fn ask<T: DeserializeOwned>(&self, method: Method, path: &str, body: &Value) -> Result<T> {
        let asked = async {
            let json = whole(self.send(method, path, body).await?, MOST_BYTES).await?;
            serde_json::from_slice(&json).map_err(|e| {
                Error::new(ErrorKind::Protocol, format!("{path} is not answered as Ollama does")).with_source(e)
            })
        };
        let silent = |_| Error::new(ErrorKind::Timeout, format!("{} did not answer in time", self.server));
        tokio::time::timeout(PATIENCE, asked).await.map_err(silent)?
    }

    /// Sends a request; a refusal is an error.
    async fn send(&self, method: Method, path: &str, body: &Value) -> Result<Body> {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let request = Request::builder().method(method).uri(format!("{}{path}", self.server));
        let request = request.header(header::CONTENT_TYPE, "application/json").body(body.into());
        let mut request =
            request.map_err(|e| Error::config(format!("'{}' is no address", self.server)).with_source(e))?;
        if let Some(key) = &self.key {
            Auth::Bearer.show(key.expose_secret(), request.headers_mut())?;
        }
        let (head, body) = self.transport.send(request).await?.into_parts();
        if head.status.is_success() {
            return Ok(body);
        }
        let said = whole(body, MOST_BYTES).await.unwrap_or_default();
        Err(ProviderError::from_response(head.status, &head.headers, &said).into_error("ollama"))
    }
}

impl Default for Ollama {
    /// The server at the address in `OLLAMA_BASE_URL`, or else the one that listens on this machine.
    fn default() -> Self {
        let named = std::env::var(VARIABLE).ok().filter(|url| !url.trim().is_empty());
        Self::new(named.as_deref().unwrap_or(USUAL))
    }
}

impl fmt::Debug for Ollama {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ollama").field("server", &self.server).finish_non_exhaustive()
    }
}

/// A pull under way.
struct Pull {
    body: Body,
    /// None when the body has ended.
    splitter: Option<Splitter>,
    ready: VecDeque<PullProgress>,
    is_there: bool,
}

impl Pull {
    fn of(body: Body) -> Self {
        Self { body, splitter: Some(Framing::Lines.splitter()), ready: VecDeque::new(), is_there: false }
    }

    async fn next(mut self) -> Result<Option<(PullProgress, Self)>> {
        loop {
            if let Some(progress) = self.ready.pop_front() {
                self.is_there |= progress.status == "success";
                return Ok(Some((progress, self)));
            }
            let Some(mut splitter) = self.splitter.take() else {
                return if self.is_there { Ok(None) } else { Err(truncated("ollama")) };
            };
            let ready = &mut self.ready;
            let take = |line: &str| read(line).map(|progress| ready.push_back(progress));
            match self.body.try_next().await? {
                Some(bytes) => {
                    splitter.push(&bytes, take)?;
                    self.splitter = Some(splitter);
                }
                None => splitter.finish(take)?,
            }
        }
    }
}

/// Reads one line of a pull.
fn read(line: &str) -> Result<PullProgress> {
    let wrong = |e| Error::new(ErrorKind::Protocol, "a line of the pull cannot be read").with_source(e);
    let json: Value = serde_json::from_str(line).map_err(wrong)?;
    if json["error"].is_null() {
        return PullProgress::deserialize(&json).map_err(wrong);
    }
    Err(ProviderError::from_json(&json).into_error("ollama"))
}

#[cfg(test)]
mod tests;
