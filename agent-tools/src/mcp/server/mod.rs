//! MCP server for tools, agents, resources and prompts.

mod accept;
mod ask;
mod builder;
mod caller;
mod connection;
mod content;
mod handler;
mod http;
mod inputs;
mod notes;
mod offers;
mod page;
mod requests;
mod run;
mod sampled;
mod sessions;
mod template;
mod waiting;

use std::{
    fmt,
    sync::{Arc, PoisonError, RwLock},
};

use agent_core::{Error, ErrorKind, Result};
use rmcp::service::serve_server;
use tokio::io::{AsyncRead, AsyncWrite};

pub use self::{
    builder::ServerBuilder,
    caller::{Caller, LogLevel},
    http::{HttpServer, HttpService},
    requests::{CompletionRequest, PromptRequest, ResourceRequest},
};
use self::{
    connection::{Connection, Connections},
    handler::Handler,
    offers::Offers,
    waiting::Waiting,
};

/// Serves tools, agents, resources and prompts to MCP clients. Cheap to clone.
///
/// Each call has its own run, which ends with the call: its
/// [progress](agent_core::ToolRequest::progress) is sent to the client, the client can cancel it,
/// and its [questions](agent_core::ToolRequest::ask) are put to the client's user, if the client
/// supports elicitation. After an answer the tool is entered again, as in an agent. Nothing is
/// persisted, so a call is lost when its client disconnects. The calls of one client form a
/// session, separate from other clients: no other client sees the state that tools store for a
/// session. The [`Caller`] is among the resources of the run: tools use it to log to the client,
/// and to call the client's model.
///
/// ```
/// use agent_core::{Message, ToolRequest};
/// use agent_tools::{
///     from_fn,
///     mcp::{Prompt, PromptArgument, PromptRequest, Resource, ResourceRequest, ResourceTemplate, Server},
/// };
/// # #[derive(serde::Deserialize, schemars::JsonSchema)]
/// # struct City { city: String }
///
/// let weather = from_fn("weather", "Says what the weather is like.", async |City { city }, _: ToolRequest| format!("Sun in {city}."));
/// let advise = Prompt::new("advise").with_argument(PromptArgument::new("city").required());
/// let server = Server::builder("weather")
///     .tool(weather)
///     .resource(Resource::new("weather://cities", "cities"), async |_: ResourceRequest| "Bern, Basel")
///     .resource_template(ResourceTemplate::new("weather://{city}/now", "now"), async |asked: ResourceRequest| {
///         format!("Sun in {}.", asked.get("city"))
///     })
///     .prompt(advise, async |asked: PromptRequest| Ok(vec![Message::user(format!("What do I wear in {}?", asked.get("city")))]))
///     .build()?;
/// # async fn serve(server: Server) -> agent_core::Result<()> {
/// server.serve_stdio().await?; // until the client closes its end
/// # Ok(()) }
/// # Ok::<(), agent_core::Error>(())
/// ```
#[derive(Clone)]
pub struct Server(Arc<Inner>);

struct Inner {
    about: About,
    offers: RwLock<Arc<Offers>>,
    connections: Connections,
    /// Calls that wait for input of their client.
    waiting: Waiting,
}

/// Properties of a server, independent of its content.
struct About {
    name: String,
    version: String,
    instructions: Option<String>,
    hosts: Vec<String>,
    bearer: Option<agent_core::tool::Secret>,
}

impl Server {
    /// Returns a builder for a server of this name, without content.
    pub fn builder(name: impl Into<String>) -> ServerBuilder {
        ServerBuilder::new(name.into())
    }

    /// Replaces the served content by that of the builder, and notifies clients of changed lists.
    /// Running calls continue. The server's name, version, instructions, hosts and token stay.
    ///
    /// # Errors
    /// As [`ServerBuilder::build`]; nothing is changed then.
    pub fn replace(&self, with: ServerBuilder) -> Result<()> {
        let new = Arc::new(with.offers()?);
        let old = std::mem::replace(&mut *self.0.offers.write().unwrap_or_else(PoisonError::into_inner), new.clone());
        self.0.connections.each(|connection| connection.lists_changed(&old, &new));
        Ok(())
    }

    /// Notifies the subscribed clients that the resource changed.
    pub fn resource_updated(&self, uri: &str) {
        self.0.connections.each(|connection| connection.resource_updated(uri));
    }

    /// Serves one client over this process's standard input and output, until the client closes its
    /// end. Nothing else may write to the standard output meanwhile.
    ///
    /// # Errors
    /// [`ErrorKind::Protocol`] if the client violates the protocol's initialisation.
    pub async fn serve_stdio(&self) -> Result<()> {
        self.serve(tokio::io::stdin(), tokio::io::stdout()).await
    }

    /// Serves one client over two byte streams, until the client closes its end.
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
        // The result is irrelevant: the client disconnected.
        let _ = serving.map_err(no_client)?.waiting().await;
        Ok(())
    }

    /// Creates the handler of a new connection.
    fn handler(&self) -> Handler {
        Handler { server: self.clone(), connection: Arc::new(Connection::default()) }
    }

    fn offers(&self) -> Arc<Offers> {
        self.0.offers.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").field("name", &self.0.about.name).field("has", &self.offers()).finish_non_exhaustive()
    }
}
