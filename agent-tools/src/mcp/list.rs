//! Cached tool list of a server, and its refresh.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use agent_core::{Error, Result, Tool, engine::canonical_json};
use rmcp::{
    ServiceError,
    model::{PaginatedRequestParams, Tool as RemoteTool},
};
use serde_json::json;
use sha2::{Digest, Sha256};
use tokio::time::Instant;

use super::{
    Client,
    connection::Connection,
    content,
    failure::{away, cut, within},
    name, resource_tools,
    resources::{ENTRIES, PAGES},
    settings::Settings,
    tool::ServerTool,
};

/// Time that a refresh of a known list may take before the old list is used.
const AGAIN: Duration = Duration::from_secs(5);

/// Limits of the time for which a server may say that its list holds: a list is not fetched before
/// each model call, and at least once a day.
const FRESH: Duration = Duration::from_secs(60);
const LONGEST: Duration = Duration::from_secs(24 * 3600);

/// Maximum number of warnings that wait for a run.
const WARNINGS: usize = 50;

/// The most characters of a description.
const DESCRIPTION: usize = 16_000;

/// Maximum size of a tool with its schemas, in bytes.
const TOOL: usize = 256 * 1024;

/// Cached tool list.
#[derive(Default)]
pub(super) struct List {
    /// Change count of the server's list when these tools were listed; `None` before the first
    /// listing.
    changes: Option<u64>,
    remote: Vec<(RemoteTool, String, Arc<dyn Tool>)>,
    /// Warnings that no run has seen yet.
    warnings: Vec<String>,
    /// The tools to look at resources, once the server had some.
    resource_tools: Vec<Arc<dyn Tool>>,
    tools: Vec<Arc<dyn Tool>>,
    /// Number of consecutive failures to list the tools of a reachable server.
    failed: u32,
    /// Time until which listing is not retried.
    until: Option<Instant>,
    /// End of the time for which the server says that the list holds.
    stale: Option<Instant>,
}

impl List {
    /// Returns the tools; lists them again if the server is new or announced a change.
    ///
    /// # Errors
    /// If no tools were ever listed. Otherwise a failure keeps the known tools: a recovered server
    /// is found by the next call.
    pub(super) async fn current(&mut self, client: &Client) -> Result<Vec<Arc<dyn Tool>>> {
        let is_fresh = self.stale.is_none_or(|stale| Instant::now() < stale);
        let is_current = is_fresh && self.changes == Some(client.link.news.tool_changes());
        if !is_current && let Err(error) = self.anew(client).await {
            if self.changes.is_none() {
                return Err(error);
            }
            tracing::debug!(server = client.name(), %error, "the tools of an MCP server are those of before");
        }
        Ok(self.tools.clone())
    }

    async fn anew(&mut self, client: &Client) -> Result<()> {
        let settings = &client.link.settings;
        if let Some(left) = self.until.and_then(|until| until.checked_duration_since(Instant::now())) {
            return Err(away(settings, "it did not list its tools", Some(left)));
        }
        let connection = client.link.connection(Duration::ZERO).await?;
        let changes = client.link.news.tool_changes();
        let most = if self.changes.is_some() { AGAIN.min(settings.connect_timeout) } else { settings.connect_timeout };
        let found = async { Box::pin(remote_tools(&connection)).await.map_err(|e| connection.failed(e)) };
        match within(settings, None, most, found).await {
            Ok((found, holds)) => {
                (self.failed, self.until) = (0, None);
                self.stale = holds.map(|ms| Instant::now() + Duration::from_millis(ms).clamp(FRESH, LONGEST));
                self.take(client, &connection, found);
                self.changes = Some(changes);
                Ok(())
            }
            Err(error) => {
                self.failed += 1;
                self.until = settings.leave_until(self.failed);
                Err(error)
            }
        }
    }

    /// The warnings that no run has seen yet.
    pub(super) fn warnings(&mut self) -> Vec<String> {
        std::mem::take(&mut self.warnings)
    }

    /// The digests of the tools, by the server's own names.
    pub(super) fn digests(&self) -> BTreeMap<String, String> {
        self.remote.iter().map(|(tool, ..)| (tool.name.to_string(), digest(tool))).collect()
    }

    fn warn(&mut self, client: &Client, tool: &str, what: &str) {
        let tool = cut(tool, 200);
        tracing::warn!(server = client.name(), tool, "a tool of an MCP server {what}");
        if self.warnings.len() < WARNINGS {
            self.warnings.push(format!("the tool '{tool}' of the MCP server '{}' {what}", client.name()));
        }
    }

    /// Tools that are known keep their place, and new ones follow: the beginning of a prompt stays the same.
    fn in_order(&self, mut found: Vec<RemoteTool>) -> Vec<RemoteTool> {
        let known: BTreeMap<&str, usize> =
            self.remote.iter().enumerate().map(|(place, (tool, ..))| (&*tool.name, place)).collect();
        found.sort_by_key(|tool| known.get(&*tool.name).copied().unwrap_or(usize::MAX));
        found
    }

    fn take(&mut self, client: &Client, connection: &Connection, found: Vec<RemoteTool>) {
        let settings = &client.link.settings;
        let found = found.into_iter().filter(|tool| settings.offers(&tool.name)).map(bounded).collect();
        let mut found = self.in_order(found);
        found.retain(|tool| {
            let is_pinned = settings.pinned.get(&*tool.name) == Some(&digest(tool));
            if !settings.pinned.is_empty() && !is_pinned {
                self.warn(client, &tool.name, "is left out: it has not the digest that it is pinned to");
            }
            is_pinned || settings.pinned.is_empty()
        });
        let changed = |tool: &&RemoteTool| self.remote.iter().any(|(was, ..)| was.name == tool.name && was != *tool);
        let changed: Vec<_> = found.iter().filter(changed).map(|tool| tool.name.clone()).collect();
        changed.iter().for_each(|tool| self.warn(client, tool, "has changed"));
        let names = name::all(&settings.prefix, found.iter().map(|tool| &*tool.name));
        let mut remote = Vec::new();
        for tool in &found {
            let name = &names[&*tool.name];
            let known = self.remote.iter().find(|(was, known, _)| was == tool && known == name);
            let made = match known {
                Some((.., known)) => Ok(known.clone()),
                None => make(client, name, tool),
            };
            match made {
                Ok(made) => remote.push((tool.clone(), name.clone(), made)),
                Err(error) => self.warn(client, &tool.name, &format!("is left out: {}", error.message())),
            }
        }
        self.tools = remote.iter().map(|(.., tool)| tool.clone()).collect();
        if settings.resource_tools && has_resources(connection) {
            let taken: BTreeSet<&str> = remote.iter().map(|(_, name, _)| &**name).collect();
            // The server may have taken a name of theirs meanwhile.
            let is_taken = |tool: &Arc<dyn Tool>| taken.contains(&*tool.spec().name);
            if self.resource_tools.is_empty() || self.resource_tools.iter().any(is_taken) {
                self.resource_tools = resource_tools::of(client, |name| taken.contains(name));
            }
            self.tools.extend(self.resource_tools.iter().cloned());
        }
        self.remote = remote;
    }
}

impl Settings {
    /// Returns the time until which a server with so many consecutive failures is not retried.
    pub(super) fn leave_until(&self, failed: u32) -> Option<Instant> {
        // After the maximum of attempts, the server is not retried.
        const FOR_GOOD: Duration = Duration::from_secs(365 * 24 * 3600);
        (failed > 0).then(|| Instant::now() + self.backoff.delay(failed, None).unwrap_or(FOR_GOOD))
    }
}

fn make(client: &Client, name: &str, tool: &RemoteTool) -> Result<Arc<dyn Tool>> {
    let size = content::size(tool);
    if size > TOOL {
        return Err(Error::tool(format!("its description has {size} bytes, and the limit is {TOOL}")));
    }
    Ok(Arc::new(ServerTool::new(&client.link, name.to_owned(), tool)?))
}

/// Returns the digest of the parts of a tool that a model and an approval see.
fn digest(tool: &RemoteTool) -> String {
    let parts =
        json!([tool.name, tool.title, tool.description, tool.input_schema, tool.output_schema, tool.annotations]);
    let digest = Sha256::digest(canonical_json(&parts));
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The tool with a description of bounded length.
fn bounded(mut tool: RemoteTool) -> RemoteTool {
    tool.description = tool.description.map(|text| cut(&text, DESCRIPTION).into());
    tool.title = tool.title.map(|text| cut(&text, DESCRIPTION));
    tool
}

/// Returns true if the server declares resources.
fn has_resources(connection: &Connection) -> bool {
    connection.peer.peer_info().is_some_and(|info| info.capabilities.resources.is_some())
}

/// Lists all tools of the server, in its order, without duplicate names, with the milliseconds for
/// which the list holds. A list beyond the limits is truncated.
async fn remote_tools(connection: &Connection) -> Result<(Vec<RemoteTool>, Option<u64>), ServiceError> {
    if connection.peer.peer_info().is_some_and(|info| info.capabilities.tools.is_none()) {
        return Ok((Vec::new(), None));
    }
    let (mut tools, mut names) = (Vec::new(), BTreeSet::new());
    let (mut cursor, mut size, mut holds) = (None, 0, None);
    for _ in 0..PAGES {
        let page = PaginatedRequestParams::default().with_cursor(cursor);
        let page = connection.peer.list_tools(Some(page)).await?;
        size += content::size(&page.tools);
        tools.extend(page.tools.into_iter().filter(|tool| names.insert(tool.name.clone())));
        holds = holds.into_iter().chain(page.ttl_ms.filter(|_| connection.is_stateless)).min();
        cursor = page.next_cursor;
        if cursor.is_none() {
            return Ok((tools, holds));
        }
        if tools.len() >= ENTRIES || size >= connection.settings.message_limit() {
            break;
        }
    }
    tools.truncate(ENTRIES);
    tracing::warn!(
        server = &*connection.settings.name,
        tools = tools.len(),
        "the list of an MCP server's tools is cut"
    );
    Ok((tools, holds))
}
