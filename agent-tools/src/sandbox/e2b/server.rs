//! [`Server`]: requests to one server, and what its refusals mean.

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
    http::{Call, Exchange, Http, Reach, TooMuch, host, redacted},
    text::cut,
};

/// How requests name their sender.
const USER_AGENT: &str = concat!("agent-tools/", env!("CARGO_PKG_VERSION"));

/// Longest time of one request and its answer.
const PATIENCE: Duration = Duration::from_secs(60);

/// How often a request is made that may be repeated, how long is waited at first, and at most.
const TRIES: u32 = 3;
const PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// Most bytes of an answer that is no file.
const LARGEST_ANSWER: usize = 8 << 20;

/// Most bytes of a refusal, and of what is repeated of its text.
const LARGEST_REFUSAL: usize = 64 << 10;
const LONGEST_TEXT: usize = 300;

/// A server, and the secret that goes to it alone.
#[derive(Clone)]
pub(super) struct Server {
    what: &'static str,
    base: Url,
    http: Http,
    headers: HeaderMap,
    secret: Secret,
}

/// A request.
pub(super) struct Asked {
    method: Method,
    path: String,
    query: Vec<(&'static str, String)>,
    headers: HeaderMap,
    body: Option<Vec<u8>>,
    most: usize,
    repeatable: bool,
}

/// An answer, and where a listing goes on.
pub(super) struct Answered {
    pub(super) body: Vec<u8>,
    pub(super) next: Option<String>,
}

/// Why there is no answer.
pub(super) enum Failure {
    /// The server says no: the status, the code that it names, what it says, and whether asking again may help.
    Refused { what: String, status: u16, code: String, said: String, retry: Retry },
    /// It was not reached, did not end in time, or answered what is none.
    Lost(Error),
}

impl Asked {
    pub(super) fn new(method: Method, path: impl Into<String>) -> Self {
        let repeatable = matches!(method, Method::GET | Method::DELETE);
        let (path, query, headers) = (path.into(), Vec::new(), HeaderMap::new());
        Self { method, path, query, headers, body: None, most: LARGEST_ANSWER, repeatable }
    }

    /// A call with a JSON body.
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

    /// Asking twice is as asking once.
    pub(super) fn repeatable(mut self) -> Self {
        self.repeatable = true;
        self
    }

    /// Sets the most bytes of the answer.
    pub(super) fn most(mut self, bytes: usize) -> Self {
        self.most = bytes;
        self
    }
}

impl Server {
    /// One that is known to a person as `what`. The secret stands in the header `name`.
    pub(super) fn new(what: &'static str, base: Url, reach: Reach, name: &'static str, secret: Secret) -> Result<Self> {
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

    /// The answer as JSON.
    pub(super) async fn json<T: DeserializeOwned>(&self, asked: Asked) -> Result<T, Failure> {
        self.parsed(&self.ask(asked).await?.body)
    }

    pub(super) fn parsed<T: DeserializeOwned>(&self, body: &[u8]) -> Result<T, Failure> {
        serde_json::from_slice(body).map_err(|e| {
            // The error names a place and a kind; a value of the server's own may be a secret.
            let place = format!("line {} column {}", e.line(), e.column());
            Failure::Lost(Error::tool(format!("{} answered what is not its interface ({place})", self.what)))
        })
    }

    /// An answer of success. What may be repeated is asked for again.
    pub(super) async fn ask(&self, asked: Asked) -> Result<Answered, Failure> {
        let (mut tries, mut pause) = (1, PAUSE);
        loop {
            let failed = match timeout(PATIENCE, self.try_ask(&asked)).await {
                Ok(Ok(answer)) => return Ok(answer),
                Ok(Err(failed)) => failed,
                Err(_) => Failure::Lost(self.temporary("did not answer in time")),
            };
            let Retry::Temporary(wanted) = failed.retry() else { return Err(failed) };
            // Of too many requests, none is done.
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

    /// An answer of success whose body is not read yet. The time is the caller's matter.
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

    /// A refusal, without the secret if the server repeats it.
    fn refusal(&self, url: &Url, status: u16, refused: &Refused, retry: Retry) -> Failure {
        let code = refused.code.as_str().unwrap_or_default().to_owned();
        let retry = if matches!(&*code, "unavailable" | "aborted") { Retry::Temporary(None) } else { retry };
        let said = redacted(&refused.message, &[self.secret.expose()]);
        let said = cut(said.trim(), LONGEST_TEXT).to_owned();
        let what = format!("{} at '{}'", self.what, host(url));
        Failure::Refused { what, status, code, said, retry }
    }

    /// The refusal that ends a stream.
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

    /// True for a code of Connect.
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

/// An empty object, where nothing has to be said.
pub(super) fn nothing() -> Value {
    Value::Object(serde_json::Map::default())
}
