//! Models of an Ollama server.

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

/// Default base URL, and the environment variable that overrides it.
const USUAL: &str = "http://localhost:11434";
const VARIABLE: &str = "OLLAMA_BASE_URL";
/// Timeout of requests; the server answers them from its disk.
const PATIENCE: Duration = Duration::from_secs(30);
/// Maximum size of an answer, in bytes: a model's details include its licence.
const MOST_BYTES: usize = 16 << 20;

/// Client of an Ollama server's model management: lists, loaded models, pulls.
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

/// A model installed on a server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct OllamaModel {
    /// Name, as used after `ollama:` in a model's name.
    pub name: String,
    /// Size on disk, in bytes.
    pub size: u64,
    /// Digest of the manifest: it changes when the model behind the name changes.
    pub digest: String,
}

/// A model loaded into a server's memory.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct LoadedModel {
    /// Name.
    pub name: String,
    /// Size in memory, in bytes.
    pub size: u64,
    /// The part of the size that is in GPU memory, in bytes.
    pub size_vram: u64,
    /// Context window that the model was loaded with, in tokens: content beyond it is not seen.
    pub context_length: Option<u64>,
    /// Time at which the model is unloaded unless it is used again, as RFC 3339.
    pub expires_at: String,
}

/// Details of a model.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct OllamaFacts {
    /// Capabilities: `completion`, `tools`, `thinking`, `vision`, `embedding`, ..
    pub capabilities: Vec<String>,
    #[serde(rename = "model_info")]
    info: Map<String, Value>,
}

impl OllamaFacts {
    /// Returns true if the model has this capability, such as `tools`.
    pub fn can(&self, what: &str) -> bool {
        self.capabilities.iter().any(|known| known == what)
    }

    /// Returns the maximum number of tokens of a request and its answer together. A server only
    /// uses the full window if the request asks for it, as `num_ctx` in
    /// [`options`](crate::OllamaProfile::options).
    pub fn context_window(&self) -> Option<u64> {
        let family = self.info.get("general.architecture")?.as_str()?;
        self.info.get(&format!("{family}.context_length"))?.as_u64()
    }
}

/// Progress of a pull.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct PullProgress {
    /// Current step, in the server's words; `success` at the end.
    pub status: String,
    /// Digest of the layer that is being downloaded.
    pub digest: Option<String>,
    /// Size of the layer, in bytes.
    pub total: Option<u64>,
    /// Bytes downloaded so far.
    pub completed: Option<u64>,
}

impl Ollama {
    /// Creates a client of the server at this URL, such as `http://gpu7:11434`. A trailing `/v1` or
    /// `/api` is removed.
    pub fn new(base_url: &str) -> Self {
        Self { server: server(base_url).to_owned(), key: None, transport: Arc::new(HttpTransport::default()) }
    }

    /// Sets the transport. Default: a new HTTP transport.
    #[must_use]
    pub fn transport(mut self, transport: impl Transport) -> Self {
        self.transport = Arc::new(transport);
        self
    }

    /// Sets the API key, for servers that require one. Default: none.
    #[must_use]
    pub fn api_key(mut self, key: impl Into<String>) -> Self {
        self.key = Some(SecretString::from(key.into()));
        self
    }

    /// Lists the installed models.
    ///
    /// # Errors
    /// If the server cannot be reached or the response is invalid; [`Timeout`](ErrorKind::Timeout)
    /// if it does not answer within 30 s.
    pub async fn models(&self) -> Result<Vec<OllamaModel>> {
        self.list("/api/tags").await
    }

    /// Lists the models in memory.
    ///
    /// # Errors
    /// As [`models`](Self::models).
    pub async fn loaded(&self) -> Result<Vec<LoadedModel>> {
        self.list("/api/ps").await
    }

    /// Returns the details of a model.
    ///
    /// # Errors
    /// As [`models`](Self::models); [`InvalidRequest`](ErrorKind::InvalidRequest) if the model is
    /// not installed.
    pub async fn show(&self, model: &str) -> Result<OllamaFacts> {
        self.ask(Method::POST, "/api/show", &json!({"model": model})).await
    }

    /// Downloads a model to the server, streaming the progress until it is installed. Dropping the
    /// stream stops the server; the next pull resumes the download.
    ///
    /// # Errors
    /// Items are errors if the server cannot be reached or cannot download the model. Nothing
    /// follows an error.
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

    /// Sends a request; a bad status is an error.
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
    /// Returns a client of the server at the URL in `OLLAMA_BASE_URL`, else of the one on this
    /// machine.
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

/// A pull in progress.
struct Pull {
    body: Body,
    /// `None` once the body has ended.
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

/// Parses one line of a pull.
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
