//! Endpoints of MCP servers: local process, HTTP or byte streams.

use std::{fmt, sync::Arc};

use agent_core::{BoxFuture, Error, Result, tool::Secret};
use http::{HeaderName, HeaderValue};

use crate::program::{Reader, Stdio, Writer};

use super::OAuth;

/// Endpoint of a server: a [`Stdio`], an [`Http`] or [`Streams`].
#[derive(Clone, Debug)]
pub struct Endpoint(pub(super) Kind);

#[derive(Clone, Debug)]
pub(super) enum Kind {
    Stdio(Stdio),
    Http(Http),
    Streams(Streams),
}

/// Redacts the URL: its query may hold a key, and its user information a password.
impl fmt::Debug for Http {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let url = reqwest::Url::parse(&self.url).ok();
        let place = url.as_ref().map(|url| format!("{}{}", url.origin().ascii_serialization(), url.path()));
        f.debug_struct("Http").field("url", &place).field("headers", &self.headers).field("oauth", &self.oauth).finish()
    }
}

/// Server at a URL: streamable HTTP, or the older HTTP+SSE transport.
///
/// ```
/// use agent_tools::mcp::Http;
///
/// let server = Http::new("https://mcp.example.org/mcp").bearer("hush").header("x-team", "7");
/// assert!(!format!("{server:?}").contains("hush"));
/// assert!(!format!("{:?}", Http::new("https://mcp.example.org/mcp?key=hush")).contains("hush"));
/// ```
#[derive(Clone)]
pub struct Http {
    pub(super) url: String,
    pub(super) headers: Vec<(String, Secret)>,
    pub(super) oauth: Option<OAuth>,
}

impl Http {
    /// Creates the endpoint for a URL.
    pub fn new(url: impl Into<String>) -> Self {
        Self { url: url.into(), headers: Vec::new(), oauth: None }
    }

    /// Sets a header of every request. The value appears in no log and no error.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), Secret::from(value)));
        self
    }

    /// Sets a bearer token: an `authorization` header.
    #[must_use]
    pub fn bearer(self, token: impl Into<String>) -> Self {
        self.header("authorization", format!("Bearer {}", token.into()))
    }

    /// Sets the OAuth flow for a server that requires it. Default: such a server cannot be used.
    #[must_use]
    pub fn oauth(mut self, access: OAuth) -> Self {
        self.oauth = Some(access);
        self
    }

    /// Returns the headers in the form in which they are sent.
    pub(super) fn headers(&self) -> Result<Vec<(HeaderName, HeaderValue)>> {
        let header = |(name, value): &(String, Secret)| {
            let parsed = HeaderName::try_from(name).ok().zip(HeaderValue::try_from(value.expose()).ok());
            let (name, mut value) = parsed.ok_or_else(|| Error::config(format!("'{name}' is no valid header")))?;
            value.set_sensitive(true);
            Ok((name, value))
        };
        self.headers.iter().map(header).collect()
    }
}

type Connect = dyn Fn() -> BoxFuture<'static, Result<(Reader, Writer)>> + Send + Sync;

/// Server at the other end of two byte streams that carry the stdio transport: a program in a
/// sandbox, a socket, or a server in the same process.
#[derive(Clone)]
pub struct Streams(pub(super) Arc<Connect>);

impl Streams {
    /// Opens the streams with `connect`, once per connection.
    pub fn new(connect: impl Fn() -> BoxFuture<'static, Result<(Reader, Writer)>> + Send + Sync + 'static) -> Self {
        Self(Arc::new(connect))
    }

    /// Starts `command` in a sandbox, once per connection: the server has only the access that the
    /// sandbox grants. Its standard error is discarded.
    ///
    /// ```
    /// use std::sync::Arc;
    ///
    /// use agent_tools::{mcp::{Client, Streams}, sandbox::{Command, MemorySandbox}};
    ///
    /// let sandbox = Arc::new(MemorySandbox::new());
    /// let server = Streams::in_sandbox(sandbox, Command::new("python3").arg("server.py"));
    /// let client = Client::builder("bees", server).build()?;
    /// # Ok::<(), agent_core::Error>(())
    /// ```
    #[cfg(feature = "sandbox")]
    pub fn in_sandbox(sandbox: Arc<dyn crate::sandbox::Sandbox>, command: crate::sandbox::Command) -> Self {
        Self::new(move || Box::pin(super::sandboxed::start(sandbox.clone(), command.clone())))
    }
}

impl fmt::Debug for Streams {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Streams").finish_non_exhaustive()
    }
}

impl Endpoint {
    /// Validates the endpoint without connecting.
    pub(super) fn check(&self) -> Result<()> {
        match &self.0 {
            Kind::Stdio(stdio) => stdio.check(),
            Kind::Http(server) => {
                let url = reqwest::Url::parse(&server.url).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
                url.ok_or_else(|| {
                    Error::config("a server's address must be a URL that begins with http:// or https://")
                })?;
                server.oauth.as_ref().map_or(Ok(()), OAuth::check)?;
                server.headers().map(drop)
            }
            Kind::Streams(_) => Ok(()),
        }
    }
}

impl From<Stdio> for Endpoint {
    fn from(server: Stdio) -> Self {
        Self(Kind::Stdio(server))
    }
}

impl From<Http> for Endpoint {
    fn from(server: Http) -> Self {
        Self(Kind::Http(server))
    }
}

impl From<Streams> for Endpoint {
    fn from(server: Streams) -> Self {
        Self(Kind::Streams(server))
    }
}
