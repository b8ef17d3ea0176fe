//! A client of one server.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::{Arc, Mutex as StdMutex, PoisonError},
    time::Duration,
};

use agent_core::{Error, EventKind, Result, RunCx, Tool, Toolset, async_trait};
use rmcp::model::{ClientRequest, DiscoverRequest, DiscoverRequestParams, PingRequest};
use tokio::sync::Mutex;

use super::{
    ClientBuilder, Endpoint,
    away::Connect,
    connection::Connection,
    failure::{cut, within},
    link::Link,
    list::List,
    settings::Settings,
};

/// Maximum length of a server's instructions, in characters.
const INSTRUCTIONS: usize = 64_000;

/// Maximum number of runs that are noted as told of a server that cannot be reached.
const RUNS: usize = 10_000;

/// Timeout of a ping.
const PING: Duration = Duration::from_secs(5);

/// Client of one MCP server: a [`Toolset`] for an agent, and the server's resources and prompts for
/// programs. Cheap to clone: clones share the connection.
///
/// Building the client connects nothing. The first run of an agent with this client connects, as do
/// [`warm_up`](Toolset::warm_up) and every method that sends a request. See the [module](super) for
/// the mapping to runs.
///
/// ```no_run
/// use std::time::Duration;
///
/// use agent_core::{Result, Toolset};
/// use agent_tools::mcp::{Client, Stdio};
///
/// # async fn example() -> Result<()> {
/// let program = Stdio::new("npx").args(["-y", "@modelcontextprotocol/server-filesystem", "/srv/files"]);
/// let files = Client::builder("files", program).deny("write_*").timeout(Duration::from_secs(10)).build()?;
/// files.warm_up().await?;
/// for tool in files.offered().await? {
///     println!("{}", tool.spec().name);
/// }
/// files.close().await?;
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Client {
    pub(super) link: Arc<Link>,
    list: Arc<Mutex<List>>,
    /// Runs with a warning that the server cannot be reached.
    told: Arc<StdMutex<BTreeSet<Arc<str>>>>,
}

impl Client {
    /// Returns a builder for a client of the server `name` at `endpoint`. Tools, logs and errors
    /// use the name: letters, digits, `_` and `-`.
    pub fn builder(name: impl Into<String>, endpoint: impl Into<Endpoint>) -> ClientBuilder {
        ClientBuilder::new(name.into(), endpoint.into())
    }

    pub(super) fn new(settings: Settings) -> Self {
        Self { link: Link::new(settings), list: Arc::default(), told: Arc::default() }
    }

    /// Returns a client of the same server without the tool list, for the entries of that list.
    pub(super) fn apart(&self) -> Self {
        Self { link: self.link.clone(), list: Arc::default(), told: Arc::default() }
    }

    /// Returns the name of the server.
    pub fn name(&self) -> &str {
        &self.link.settings.name
    }

    /// Returns the tools on offer now, for programs. An agent fetches them itself.
    ///
    /// # Errors
    /// Of kind [`Tool`](agent_core::ErrorKind::Tool) if the server is unreachable and always was.
    pub async fn offered(&self) -> Result<Vec<Arc<dyn Tool>>> {
        self.known(None).await
    }

    /// Returns the server's instructions for models, if there are any: a part of a system prompt,
    /// if the server is trusted. At most 64,000 characters.
    ///
    /// # Errors
    /// Of kind [`Tool`](agent_core::ErrorKind::Tool) if the server is unreachable.
    pub async fn instructions(&self) -> Result<Option<String>> {
        let told = async |connection: &Connection| {
            let info = connection.peer.peer_info();
            Ok(info.and_then(|info| info.instructions.as_deref().map(|text| cut(text, INSTRUCTIONS))))
        };
        self.link.ask(None, self.link.settings.reach_timeout(), told).await
    }

    /// Returns true if the server answers a ping, or a `server/discover`, within five seconds. Tries to reconnect, except
    /// during the back-off delay.
    pub async fn is_healthy(&self) -> bool {
        let ping = async |connection: &Connection| {
            let request = match connection.is_stateless {
                true => ClientRequest::DiscoverRequest(DiscoverRequest::new(DiscoverRequestParams {})),
                false => ClientRequest::PingRequest(PingRequest::default()),
            };
            connection.peer.send_request(request).await
        };
        let healthy = async {
            self.link.connection(Duration::ZERO).await?;
            self.link.ask(None, PING, ping).await
        };
        healthy.await.is_ok()
    }

    /// The SHA-256 digests of the offered tools by the server's own names, for [`pin`](ClientBuilder::pin): over name, title,
    /// description, schemas and annotations.
    ///
    /// # Errors
    /// Of kind [`Tool`](agent_core::ErrorKind::Tool) if the server cannot be reached and never was.
    pub async fn digests(&self) -> Result<BTreeMap<String, String>> {
        self.known(None).await?;
        Ok(self.list.lock().await.digests())
    }

    /// Warns of a server that cannot be reached: each run once, until it could be reached again.
    fn report(&self, cx: &RunCx, failed: Option<&Error>) {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        let run = &cx.ids().run_id;
        if told.len() >= RUNS {
            told.clear();
        }
        match failed {
            None => {
                told.remove(run);
            }
            Some(error) if told.insert(run.clone()) => {
                tracing::warn!(server = self.name(), %error, "the tools of an MCP server are left out");
                cx.emit(EventKind::Warning { message: format!("{} Its tools are left out.", error.message()) });
            }
            Some(_) => {}
        }
    }

    /// The tools, listed anew if the server is new or says that they changed.
    pub(super) async fn known(&self, cx: Option<&RunCx>) -> Result<Vec<Arc<dyn Tool>>> {
        let settings = &self.link.settings;
        let listed = async { self.list.lock().await.current(self).await };
        within(settings, cx, settings.reach_timeout() + settings.connect_timeout, listed).await
    }
}

#[async_trait]
impl Toolset for Client {
    async fn tools(&self, cx: &RunCx) -> Result<Vec<Arc<dyn Tool>>> {
        let known = self.known(Some(cx)).await;
        if known.is_ok() {
            let mut list = self.list.lock().await;
            list.warnings().into_iter().for_each(|message| cx.emit(EventKind::Warning { message }));
        }
        self.report(cx, known.as_ref().err().filter(|error| error.kind().is_model_visible()));
        match known {
            Err(error) if error.kind().is_model_visible() && !self.link.settings.required => {
                Ok(vec![Arc::new(Connect::new(self.clone(), &error))])
            }
            known => known,
        }
    }

    async fn warm_up(&self) -> Result<()> {
        match self.known(None).await {
            Err(error) if self.link.settings.required => Err(error),
            _ => Ok(()),
        }
    }

    async fn close(&self) -> Result<()> {
        self.link.close().await;
        Ok(())
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("settings", &self.link.settings).finish_non_exhaustive()
    }
}
