//! [`Server`]: HTTP client of one server, with error mapping.

use std::{fmt, time::Duration};

use agent_core::{Error, ErrorKind, Result, Retry, tool::Secret};
use reqwest::{
    Method,
    header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue},
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;
use tokio::time::{sleep, timeout};
use url::Url;

use super::wire::Refused;
use crate::{
    http::{AddressPolicy, Call, Exchange, Http, TooMuch, host, redacted},
    text::cut,
};

/// Value of the `User-Agent` header.
const USER_AGENT: &str = concat!("agent-tools/", env!("CARGO_PKG_VERSION"));

/// Timeout of one request with its response.
const PATIENCE: Duration = Duration::from_secs(60);

/// Number of attempts of an idempotent request, and its initial and maximum retry delay.
const TRIES: u32 = 3;
const PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// Maximum size in bytes of a response that is not a file.
const LARGEST_ANSWER: usize = 8 << 20;

/// Maximum of bytes of an error response, and of its quoted text.
const LARGEST_REFUSAL: usize = 64 << 10;
const LONGEST_TEXT: usize = 300;

/// Server, and the secret that is sent to it only.
#[derive(Clone)]
pub(super) struct Server {
    what: &'static str,
    base: Url,
    http: Http,
    headers: HeaderMap,
    secret: Secret,
}

/// HTTP request.
pub(super) struct Asked {
    method: Method,
    path: String,
    query: Vec<(&'static str, String)>,
    headers: HeaderMap,
    body: Option<Vec<u8>>,
    most: usize,
    repeatable: bool,
}

/// HTTP response, and cursor of the next page.
pub(super) struct Answered {
    pub(super) body: Vec<u8>,
    pub(super) next: Option<String>,
}

/// Reason of a failed request.
pub(super) enum Failure {
    /// The server rejected the request: status, error code, message, and whether a retry may help.
    Refused { what: String, status: u16, code: String, said: String, retry: Retry },
    /// The server was unreachable, timed out, or sent an invalid response.
    Lost(Error),
}

impl Asked {
    pub(super) fn new(method: Method, path: impl Into<String>) -> Self {
        let repeatable = matches!(method, Method::GET | Method::DELETE);
        let (path, query, headers) = (path.into(), Vec::new(), HeaderMap::new());
        Self { method, path, query, headers, body: None, most: LARGEST_ANSWER, repeatable }
    }

    /// Creates a request with a JSON body.
    pub(super) fn json(path: impl Into<String>, body: &impl Serialize) -> Self {
        let body = serde_json::to_vec(body).expect("it has no key that is no text");
        Self::new(Method::POST, path).body("application/json", body)
    }

    pub(super) fn body(mut self, kind: &str, body: Vec<u8>) -> Self {
        self.headers.insert(CONTENT_TYPE, HeaderValue::from_str(kind).expect("it is written here"));
        self.body = Some(body);
        self
    }

    pub(super) fn query(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.query.push((name, value.into()));
        self
    }

    pub(super) fn header(mut self, name: &'static str, value: HeaderValue) -> Self {
        self.headers.insert(name, value);
        self
    }

    /// Marks the request idempotent, so that it may be retried.
    pub(super) fn repeatable(mut self) -> Self {
        self.repeatable = true;
        self
    }

    /// Sets the maximum size of the response in bytes.
    pub(super) fn most(mut self, bytes: usize) -> Self {
        self.most = bytes;
        self
    }
}

impl Server {
    /// Creates the client; `what` names the server in errors, and the header `name` carries the
    /// secret.
    pub(super) fn new(
        what: &'static str,
        base: Url,
        reach: AddressPolicy,
        name: &'static str,
        secret: Secret,
    ) -> Result<Self> {
        let value = HeaderValue::from_str(secret.expose()).ok().filter(|value| !value.is_empty());
        let mut value = value.ok_or_else(|| Error::config(format!("the key for {what} is empty, or is no key")))?;
        value.set_sensitive(true);
        let headers = HeaderMap::from_iter([(HeaderName::from_static(name), value)]);
        Ok(Self { what, base, http: Http::new(reach, USER_AGENT)?, headers, secret })
    }

    pub(super) fn with_header(mut self, name: &'static str, value: HeaderValue) -> Self {
        self.headers.insert(name, value);
        self
    }

    /// Sends a request and parses the JSON response.
    pub(super) async fn json<T: DeserializeOwned>(&self, asked: Asked) -> Result<T, Failure> {
        self.parsed(&self.ask(asked).await?.body)
    }

    pub(super) fn parsed<T: DeserializeOwned>(&self, body: &[u8]) -> Result<T, Failure> {
        serde_json::from_slice(body).map_err(|e| {
            // The error names a position and a kind; a value from the server may be a secret.
            let place = format!("line {} column {}", e.line(), e.column());
            Failure::Lost(Error::tool(format!("{} answered what is not its interface ({place})", self.what)))
        })
    }

    /// Sends a request and returns the successful response. Idempotent requests are retried.
    pub(super) async fn ask(&self, asked: Asked) -> Result<Answered, Failure> {
        let (mut tries, mut pause) = (1, PAUSE);
        loop {
            let failed = match timeout(PATIENCE, self.try_ask(&asked)).await {
                Ok(Ok(answer)) => return Ok(answer),
                Ok(Err(failed)) => failed,
                Err(_) => Failure::Lost(self.temporary("did not answer in time")),
            };
            let Retry::Temporary(wanted) = failed.retry() else { return Err(failed) };
            // A request with status 429 was not executed, so it may be retried.
            let again = asked.repeatable || matches!(failed, Failure::Refused { status: 429, .. });
            if !again || tries == TRIES {
                return Err(failed);
            }
            sleep(wanted.unwrap_or(pause).min(LONGEST_PAUSE)).await;
            (tries, pause) = (tries + 1, pause * 4);
        }
    }

    async fn try_ask(&self, asked: &Asked) -> Result<Answered, Failure> {
        let exchange = self.open(asked).await?;
        let next = exchange.header("x-next-token").filter(|next| !next.is_empty()).map(str::to_owned);
        let body = exchange.body.read(asked.most).await.map_err(|e| self.unread(e))?;
        Ok(Answered { body, next })
    }

    /// Sends a request and returns the successful response with its body unread. The caller applies
    /// a timeout.
    pub(super) async fn open(&self, asked: &Asked) -> Result<Exchange, Failure> {
        let mut url = self.base.clone();
        let path = format!("{}{}", url.path().trim_end_matches('/'), asked.path);
        url.set_path(&path);
        if !asked.query.is_empty() {
            url.query_pairs_mut().extend_pairs(&asked.query);
        }
        let mut headers = self.headers.clone();
        headers.extend(asked.headers.clone());
        let call = Call { method: asked.method.clone(), url, headers, body: asked.body.clone() };
        let exchange = self.http.send(call).await.map_err(Failure::Lost)?;
        if exchange.status.is_success() { Ok(exchange) } else { Err(self.refused(exchange).await) }
    }

    async fn refused(&self, exchange: Exchange) -> Failure {
        let (url, status, retry) = (exchange.url.clone(), exchange.status.as_u16(), exchange.retry());
        let body = exchange.body.read(LARGEST_REFUSAL).await.unwrap_or_default();
        let refused: Refused = serde_json::from_slice(&body).unwrap_or_default();
        self.refusal(&url, status, &refused, retry)
    }

    /// Converts an error response, with the secret redacted in case the server repeats it.
    fn refusal(&self, url: &Url, status: u16, refused: &Refused, retry: Retry) -> Failure {
        let code = refused.code.as_str().unwrap_or_default().to_owned();
        let retry = if matches!(&*code, "unavailable" | "aborted") { Retry::Temporary(None) } else { retry };
        let said = redacted(&refused.message, &[self.secret.expose()]);
        let said = cut(said.trim(), LONGEST_TEXT).to_owned();
        let what = format!("{} at '{}'", self.what, host(url));
        Failure::Refused { what, status, code, said, retry }
    }

    /// Converts the error at the end of a stream.
    pub(super) fn stream_refused(&self, refused: &Refused) -> Failure {
        self.refusal(&self.base, 200, refused, Retry::Permanent)
    }

    fn unread(&self, why: TooMuch) -> Failure {
        Failure::Lost(match why {
            TooMuch::Large => Error::new(ErrorKind::Limit, format!("{} answers more than is read", self.what)),
            TooMuch::Broken(e) => self.temporary("sent an answer that is damaged").with_source(e),
            TooMuch::Encoding(name) => Error::tool(format!("{} compresses its answer as {name:?}", self.what)),
        })
    }

    pub(super) fn temporary(&self, what: &str) -> Error {
        Error::tool(format!("{} {what}: try it again", self.what)).with_retry(Retry::Temporary(None))
    }
}

impl Failure {
    fn retry(&self) -> Retry {
        match self {
            Self::Refused { retry, .. } => *retry,
            Self::Lost(error) => error.retry(),
        }
    }

    pub(super) fn is_status(&self, wanted: u16) -> bool {
        matches!(self, Self::Refused { status, .. } if *status == wanted)
    }

    /// Returns true if the Connect error code matches.
    pub(super) fn is_code(&self, wanted: &str) -> bool {
        matches!(self, Self::Refused { code, .. } if code == wanted)
    }

    pub(super) fn is_too_large(&self) -> bool {
        matches!(self, Self::Lost(error) if error.kind() == ErrorKind::Limit)
    }
}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Self {
        let Failure::Refused { what, status, code, said, retry } = failure else {
            let Failure::Lost(error) = failure else { unreachable!("there are two") };
            return error;
        };
        let (kind, advice) = match (status, &*code) {
            (401, _) | (_, "unauthenticated") => {
                (ErrorKind::Authentication, "it refuses the key: give one that is valid")
            }
            (403, _) => (ErrorKind::Authentication, "the key does not allow this"),
            (300..=399, _) => (
                ErrorKind::Config,
                "it leads elsewhere, where no secret is taken: name the address that answers itself",
            ),
            (404, "") => (ErrorKind::Tool, "it is not there: it was removed, or its lease has ended"),
            (402, _) => (ErrorKind::Tool, "the account allows no more"),
            (429, _) => (ErrorKind::Tool, "it is asked too often, or has too many sandboxes: wait, or close some"),
            (502..=504, _) => (ErrorKind::Tool, "the sandbox has ended, is paused, or cannot be reached"),
            (507, _) => (ErrorKind::Tool, "it has no space left"),
            (_, "unimplemented") => (ErrorKind::Config, "it is too old for this: make its template anew"),
            _ => (ErrorKind::Tool, "it cannot do this"),
        };
        let said = if said.is_empty() { String::new() } else { format!("; it says: {said:?}") };
        let code = if code.is_empty() { status.to_string() } else { code };
        Self::new(kind, format!("{what} refuses ({code}): {advice}{said}")).with_retry(retry)
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").field("base", &self.base.as_str()).finish_non_exhaustive()
    }
}

/// Returns an empty object, for requests without parameters.
pub(super) fn nothing() -> Value {
    Value::Object(serde_json::Map::default())
}
