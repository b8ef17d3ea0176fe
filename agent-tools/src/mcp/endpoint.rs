//! Where a server is, and how it is reached.

use std::{collections::BTreeMap, fmt, path::PathBuf, sync::Arc};

use agent_core::{BoxFuture, Error, Result, tool::Secret};
use http::{HeaderName, HeaderValue};
use tokio::io::{AsyncRead, AsyncWrite};

use super::OAuth;

/// Where a server is: a [`Stdio`], an [`Http`] or [`Streams`].
#[derive(Clone, Debug)]
pub struct Endpoint(pub(super) Kind);

#[derive(Clone, Debug)]
pub(super) enum Kind {
    Stdio(Stdio),
    Http(Http),
    Streams(Streams),
}

/// A server that is a program: it is started, and spoken to over its standard input and output.
///
/// The program gets none of this process's environment but `PATH`, `HOME`, `LANG`, `LOGNAME`, `SHELL`, `TERM`, `TMPDIR` and `USER`
/// (on Windows also what programs need to start), since the rest of it holds keys. What else it needs is [passed](Self::pass) by
/// name or [set](Self::env). What it writes to its standard error is logged.
///
/// ```
/// use agent_tools::mcp::Stdio;
///
/// let server = Stdio::new("npx").args(["-y", "@modelcontextprotocol/server-filesystem", "/srv/files"]).env("KEY", "hush");
/// assert!(!format!("{server:?}").contains("hush"));
/// ```
#[derive(Clone)]
pub struct Stdio {
    pub(super) program: String,
    pub(super) args: Vec<String>,
    pub(super) directory: Option<PathBuf>,
    pub(super) passed: Vec<String>,
    pub(super) env: BTreeMap<String, Secret>,
}

impl Stdio {
    /// The program of this name or path, without arguments.
    pub fn new(program: impl Into<String>) -> Self {
        Self { program: program.into(), args: Vec::new(), directory: None, passed: Vec::new(), env: BTreeMap::new() }
    }

    /// Adds an argument.
    #[must_use]
    pub fn arg(mut self, arg: impl Into<String>) -> Self {
        self.args.push(arg.into());
        self
    }

    /// Adds arguments.
    #[must_use]
    pub fn args(mut self, args: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    /// Sets the working directory. Default: that of this process.
    #[must_use]
    pub fn directory(mut self, directory: impl Into<PathBuf>) -> Self {
        self.directory = Some(directory.into());
        self
    }

    /// Passes a variable of this process's environment on. If it is not set when the client is built, that fails.
    #[must_use]
    pub fn pass(mut self, name: impl Into<String>) -> Self {
        self.passed.push(name.into());
        self
    }

    /// Sets a variable of its environment. The value is in no log and no error.
    #[must_use]
    pub fn env(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.env.insert(name.into(), Secret::from(value));
        self
    }
}

/// Arguments may hold a key, so that their number is all that is shown.
impl fmt::Debug for Stdio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stdio")
            .field("program", &self.program)
            .field("args", &self.args.len())
            .field("directory", &self.directory)
            .field("passed", &self.passed)
            .field("env", &self.env)
            .finish()
    }
}

/// So may a query and a user's name and password.
impl fmt::Debug for Http {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let url = reqwest::Url::parse(&self.url).ok();
        let place = url.as_ref().map(|url| format!("{}{}", url.origin().ascii_serialization(), url.path()));
        f.debug_struct("Http").field("url", &place).field("headers", &self.headers).field("oauth", &self.oauth).finish()
    }
}

/// A server at a URL: streamable HTTP, or the HTTP with server-sent events of old servers.
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
    /// The server at this URL.
    pub fn new(url: impl Into<String>) -> Self {
        Self { url: url.into(), headers: Vec::new(), oauth: None }
    }

    /// Sets a header of every request. The value is in no log and no error.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), Secret::from(value)));
        self
    }

    /// Sets a bearer token: a header `authorization`.
    #[must_use]
    pub fn bearer(self, token: impl Into<String>) -> Self {
        self.header("authorization", format!("Bearer {}", token.into()))
    }

    /// Gets access to a server that asks for OAuth in this way. Default: such a server cannot be reached.
    #[must_use]
    pub fn oauth(mut self, access: OAuth) -> Self {
        self.oauth = Some(access);
        self
    }

    /// The headers as they are sent.
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

/// What is read from a server.
pub type Reader = Box<dyn AsyncRead + Send + Unpin>;

/// What is written to a server.
pub type Writer = Box<dyn AsyncWrite + Send + Unpin>;

type Connect = dyn Fn() -> BoxFuture<'static, Result<(Reader, Writer)>> + Send + Sync;

/// A server at the other end of two streams of bytes, in the form of standard input and output: a program in a sandbox, a
/// socket, or a server in the same process.
#[derive(Clone)]
pub struct Streams(pub(super) Arc<Connect>);

impl Streams {
    /// Connects with `connect`, each time anew.
    pub fn new(connect: impl Fn() -> BoxFuture<'static, Result<(Reader, Writer)>> + Send + Sync + 'static) -> Self {
        Self(Arc::new(connect))
    }
}

impl fmt::Debug for Streams {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Streams").finish_non_exhaustive()
    }
}

impl Endpoint {
    /// What is wrong with it, found without looking for the server.
    pub(super) fn check(&self) -> Result<()> {
        match &self.0 {
            Kind::Stdio(stdio) if stdio.program.is_empty() => Err(Error::config("a server's program has no name")),
            Kind::Stdio(stdio) => match stdio.passed.iter().find(|name| std::env::var_os(name).is_none()) {
                Some(name) => Err(Error::config(format!("the variable {name} is to be passed on, and is not set"))),
                None => Ok(()),
            },
            Kind::Http(server) => {
                let url = reqwest::Url::parse(&server.url).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
                url.ok_or_else(|| {
                    Error::config("a server's address must be a URL that begins with http:// or https://")
                })?;
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
