//! A client of one server.

use std::{collections::BTreeSet, fmt, sync::Arc, time::Duration};

use agent_core::{Result, RunCx, Tool, Toolset, async_trait};
use rmcp::{
    ServiceError,
    model::{ClientRequest, PaginatedRequestParams, PingRequest, Tool as RemoteTool},
};
use tokio::sync::Mutex;

use super::{
    ClientBuilder, Endpoint, connection::Connection, failure::within, link::Link, name, resource_tools,
    settings::Settings, tool::ServerTool,
};

/// The most tools of one server. A list that goes on is cut there.
const TOOLS: usize = 10_000;

/// How long a ping may take.
const PING: Duration = Duration::from_secs(5);

/// A client of one server of the Model Context Protocol: a [`Toolset`] for an agent, and the server's resources and prompts for
/// programs. Cheap to clone: clones share the connection.
///
/// Nothing is connected when it is built. The first run of an agent that has it connects, as do [`warm_up`](Toolset::warm_up) and
/// every method that asks something. See the [module](super) for what becomes of what a server does.
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
}

/// The tools that are known.
#[derive(Default)]
struct List {
    /// How often the server's tools had changed when these were listed; unset before they were.
    changes: Option<u64>,
    remote: Vec<(RemoteTool, String, Arc<dyn Tool>)>,
    /// The tools to look at resources, once the server had some.
    resource_tools: Vec<Arc<dyn Tool>>,
    tools: Vec<Arc<dyn Tool>>,
}

impl Client {
    /// A client of the server `name`, which is at `endpoint`. Tools, logs and errors have the name: letters, digits, `_` and `-`.
    pub fn builder(name: impl Into<String>, endpoint: impl Into<Endpoint>) -> ClientBuilder {
        ClientBuilder::new(name.into(), endpoint.into())
    }

    pub(super) fn new(settings: Settings) -> Self {
        Self { link: Link::new(settings), list: Arc::default() }
    }

    /// The same server without the list of its tools, for what is in that list.
    pub(super) fn apart(&self) -> Self {
        Self { link: self.link.clone(), list: Arc::default() }
    }

    /// The name of the server.
    pub fn name(&self) -> &str {
        &self.link.settings.name
    }

    /// The tools on offer now, for programs. An agent asks by itself.
    ///
    /// # Errors
    /// Of kind [`Tool`](agent_core::ErrorKind::Tool) if the server cannot be reached and never was.
    pub async fn offered(&self) -> Result<Vec<Arc<dyn Tool>>> {
        self.known(None).await
    }

    /// What the server says of itself for models, if it says something and can be reached: a part of a system prompt, for who
    /// trusts the server.
    ///
    /// # Errors
    /// Of kind [`Tool`](agent_core::ErrorKind::Tool) if the server cannot be reached.
    pub async fn instructions(&self) -> Result<Option<String>> {
        let told =
            async |connection: &Connection| Ok(connection.peer.peer_info().and_then(|info| info.instructions.clone()));
        self.link.ask(None, self.link.settings.connect_timeout, told).await
    }

    /// True if the server answers a ping within five seconds. A server that is away is tried again for it, unless it is left alone
    /// for now.
    pub async fn is_healthy(&self) -> bool {
        let ping = async |connection: &Connection| {
            connection.peer.send_request(ClientRequest::PingRequest(PingRequest::default())).await
        };
        let healthy = async {
            self.link.connection(Duration::ZERO).await?;
            self.link.ask(None, PING, ping).await
        };
        healthy.await.is_ok()
    }

    /// The tools, listed anew if the server is new or says that they changed.
    async fn known(&self, cx: Option<&RunCx>) -> Result<Vec<Arc<dyn Tool>>> {
        let most = self.link.settings.connect_timeout * 2;
        let listed = async {
            let mut list = self.list.lock().await;
            let is_current = list.changes == Some(self.link.news.tool_changes());
            if !is_current && let Err(error) = self.list_anew(&mut list).await {
                // Tools that were there are offered still: a server that is back is found by the next call.
                if list.changes.is_none() {
                    return Err(error);
                }
                tracing::debug!(server = self.name(), %error, "the tools of an MCP server are those of before");
            }
            Ok(list.tools.clone())
        };
        within(&self.link.settings, cx, most, listed).await
    }

    async fn list_anew(&self, list: &mut List) -> Result<()> {
        let settings = &self.link.settings;
        let connection = self.link.connection(Duration::ZERO).await?;
        let changes = self.link.news.tool_changes();
        let found = async { Box::pin(remote_tools(&connection)).await.map_err(|e| connection.failed(e)) };
        let found = within(settings, None, settings.connect_timeout, found).await?;
        let (mut taken, mut remote) = (BTreeSet::new(), Vec::new());
        for found in found.into_iter().filter(|tool| settings.offers(&tool.name)) {
            let name = name::of(&settings.prefix, &found.name, |name| taken.contains(name));
            taken.insert(name.clone());
            let known = list.remote.iter().find(|(tool, known, _)| *tool == found && *known == name);
            let tool: Arc<dyn Tool> = match known {
                Some((.., tool)) => tool.clone(),
                None => match ServerTool::new(&self.link, name.clone(), &found) {
                    Ok(tool) => Arc::new(tool),
                    Err(error) => {
                        tracing::warn!(server = self.name(), tool = &*found.name, %error, "a tool of an MCP server is left out");
                        continue;
                    }
                },
            };
            remote.push((found, name, tool));
        }
        list.tools = remote.iter().map(|(.., tool)| tool.clone()).collect();
        if settings.resource_tools && has_resources(&connection) {
            // The server may have taken a name of theirs since.
            let is_taken = |tool: &Arc<dyn Tool>| taken.contains(&tool.spec().name);
            if list.resource_tools.is_empty() || list.resource_tools.iter().any(is_taken) {
                list.resource_tools = resource_tools::of(self, |name| taken.contains(name));
            }
            list.tools.extend(list.resource_tools.iter().cloned());
        }
        (list.remote, list.changes) = (remote, Some(changes));
        Ok(())
    }
}

/// True if the server says that it has resources.
fn has_resources(connection: &Connection) -> bool {
    connection.peer.peer_info().is_some_and(|info| info.capabilities.resources.is_some())
}

/// All tools of the server, in its order, one of each name.
async fn remote_tools(connection: &Connection) -> Result<Vec<RemoteTool>, ServiceError> {
    if connection.peer.peer_info().is_some_and(|info| info.capabilities.tools.is_none()) {
        return Ok(Vec::new());
    }
    let (mut tools, mut names, mut cursor) = (Vec::new(), BTreeSet::new(), None);
    loop {
        let page = PaginatedRequestParams::default().with_cursor(cursor);
        let page = connection.peer.list_tools(Some(page)).await?;
        tools.extend(page.tools.into_iter().filter(|tool| names.insert(tool.name.clone())));
        cursor = page.next_cursor;
        if cursor.is_none() || tools.len() >= TOOLS {
            tools.truncate(TOOLS);
            return Ok(tools);
        }
    }
}

#[async_trait]
impl Toolset for Client {
    async fn tools(&self, cx: &RunCx) -> Result<Vec<Arc<dyn Tool>>> {
        match self.known(Some(cx)).await {
            Err(error) if error.kind().is_told() && !self.link.settings.required => {
                tracing::debug!(server = self.name(), %error, "the tools of an MCP server are left out");
                Ok(Vec::new())
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
