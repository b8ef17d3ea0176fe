//! Tools and agents, served to clients of the Model Context Protocol.

mod ask;
mod content;
mod handler;
mod http;
mod run;
mod sessions;

use std::{fmt, sync::Arc};

use agent_core::{Error, ErrorKind, Result, SubAgent, Tool, ToolOptions, ToolSpec};
use rmcp::service::serve_server;
use serde_json::json;
use tokio::io::{AsyncRead, AsyncWrite};

use self::handler::Handler;
pub use self::http::HttpServer;
use crate::{ArgumentSchema, ToolSet};

/// Serves tools and agents to clients of the Model Context Protocol. Cheap to clone.
///
/// Each call has a run of its own, which ends with it: its [progress](agent_core::ToolRequest::progress) is told to the client, the
/// client cancels it, and its [questions](agent_core::ToolRequest::ask) are put to the client's user, if the client can do that. After
/// an answer the tool is entered again, as it is in an agent. Nothing is kept, so a call whose client went away is lost.
///
/// ```
/// use agent_core::ToolRequest;
/// use agent_tools::{from_fn, mcp::Server};
/// # #[derive(serde::Deserialize, schemars::JsonSchema)]
/// # struct City { city: String }
///
/// let weather = from_fn("weather", "Says what the weather is like.", async |City { city }, _: ToolRequest| format!("Sun in {city}."));
/// let server = Server::builder("weather").tool(weather).build()?;
/// # async fn serve(server: Server) -> agent_core::Result<()> {
/// server.serve_stdio().await?; // until the client closes its end
/// # Ok(()) }
/// # Ok::<(), agent_core::Error>(())
/// ```
#[derive(Clone)]
pub struct Server(Arc<Inner>);

pub(super) struct Inner {
    name: String,
    version: String,
    instructions: Option<String>,
    entries: Vec<Entry>,
    hosts: Vec<String>,
    bearer: Option<agent_core::tool::Secret>,
}

/// Something that clients may call.
struct Entry {
    spec: ToolSpec,
    options: ToolOptions,
    schema: ArgumentSchema,
    what: What,
}

enum What {
    Tool(Arc<dyn Tool>),
    Agent(SubAgent),
}

/// What a [`Server`] is to be; made by [`Server::builder`].
#[must_use]
pub struct ServerBuilder {
    server: Inner,
    what: Vec<What>,
}

impl ServerBuilder {
    /// Serves a tool.
    pub fn tool(mut self, tool: impl Tool) -> Self {
        self.what.push(What::Tool(Arc::new(tool)));
        self
    }

    /// Serves the tools of a set.
    pub fn tools(mut self, tools: ToolSet) -> Self {
        self.what.extend(tools.into_iter().map(What::Tool));
        self
    }

    /// Serves an agent as a tool, under its key: it takes a `task` and gives its answer. What its run asks is put to the client's
    /// user.
    pub fn agent(mut self, agent: SubAgent) -> Self {
        self.what.push(What::Agent(agent));
        self
    }

    /// Sets what the client is told of the server as a whole.
    pub fn instructions(mut self, text: impl Into<String>) -> Self {
        self.server.instructions = Some(text.into());
        self
    }

    /// Sets the version that the client is told. Default: this crate's.
    pub fn version(mut self, version: impl Into<String>) -> Self {
        self.server.version = version.into();
        self
    }

    /// Takes requests over HTTP for this host, such as `tools.example.org`. Default: those for this machine alone, by its local
    /// names, so that no web page can reach the server under a name of its own.
    pub fn host(mut self, host: impl Into<String>) -> Self {
        self.server.hosts.push(host.into());
        self
    }

    /// Takes requests over HTTP with this bearer token alone. Default: whoever can reach the server may call its tools.
    pub fn bearer(mut self, token: impl Into<String>) -> Self {
        self.server.bearer = Some(agent_core::tool::Secret::from(token));
        self
    }

    /// The server. Nobody is served yet.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] if two have the same name, or the schema of a tool is none.
    pub fn build(mut self) -> Result<Server> {
        for what in self.what {
            let (spec, options) = match &what {
                What::Tool(tool) => (tool.spec(), tool.options()),
                What::Agent(agent) => (spec_of(agent), ToolOptions::default()),
            };
            if self.server.entries.iter().any(|entry| entry.spec.name == spec.name) {
                return Err(Error::config(format!("two tools of the server are named '{}'", spec.name)));
            }
            let schema = ArgumentSchema::compile(&spec)?;
            self.server.entries.push(Entry { spec, options, schema, what });
        }
        Ok(Server(Arc::new(self.server)))
    }
}

fn spec_of(agent: &SubAgent) -> ToolSpec {
    let task = json!({
        "type": "object",
        "properties": {"task": {"type": "string", "description": "What is to be done, with all that must be known for it."}},
        "required": ["task"],
    });
    ToolSpec::new(agent.key.clone(), agent.description.clone(), task)
}

impl Server {
    /// A server of this name that has nothing yet.
    pub fn builder(name: impl Into<String>) -> ServerBuilder {
        let server = Inner {
            name: name.into(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            instructions: None,
            entries: Vec::new(),
            hosts: Vec::new(),
            bearer: None,
        };
        ServerBuilder { server, what: Vec::new() }
    }

    /// Serves one client over this process's standard input and output, until the client closes its end. Nothing else may be
    /// written to the standard output then.
    ///
    /// # Errors
    /// [`ErrorKind::Protocol`] if the client does not begin as the protocol says.
    pub async fn serve_stdio(&self) -> Result<()> {
        self.serve(tokio::io::stdin(), tokio::io::stdout()).await
    }

    /// Serves one client over two streams of bytes, until the client closes its end.
    ///
    /// # Errors
    /// As [`serve_stdio`](Self::serve_stdio).
    pub async fn serve(
        &self,
        reader: impl AsyncRead + Send + Unpin + 'static,
        writer: impl AsyncWrite + Send + Unpin + 'static,
    ) -> Result<()> {
        let serving = Box::pin(serve_server(self.handler(), (reader, writer))).await;
        let no_client =
            |e| Error::new(ErrorKind::Protocol, "the client did not begin as the protocol says").with_source(e);
        // What it ended with does not matter: the client went away.
        let _ = serving.map_err(no_client)?.waiting().await;
        Ok(())
    }

    fn handler(&self) -> Handler {
        Handler(self.0.clone())
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.0.entries.iter().map(|entry| &entry.spec.name).collect();
        f.debug_struct("Server").field("name", &self.0.name).field("tools", &names).finish_non_exhaustive()
    }
}

impl fmt::Debug for ServerBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerBuilder").field("name", &self.server.name).finish_non_exhaustive()
    }
}
