//! Resources of a server, for programs.

use agent_core::{Error, Part, Result};
use rmcp::model::{
    PaginatedRequestParams, ReadResourceRequestParams, ReadResourceResponse, SubscribeRequestParams,
    UnsubscribeRequestParams,
};

use super::{Client, connection::Connection, content, failure::within, inputs};

/// Maximum of entries of a list; a longer list is truncated.
pub(super) const ENTRIES: usize = 10_000;

/// Maximum of pages of a list.
pub(super) const PAGES: usize = 1000;

/// Resource of a server, identified by a URI: a file, a row, a page.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Resource {
    /// URI to read the resource by.
    pub uri: String,
    /// Name of the resource.
    pub name: String,
    /// Title for people.
    pub title: Option<String>,
    /// Description of the resource.
    pub description: Option<String>,
    /// Media type.
    pub mime: Option<String>,
    /// Size in bytes.
    pub size: Option<u64>,
}

/// Template for the URIs of resources.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ResourceTemplate {
    /// URI template (RFC 6570), such as `file:///{path}`.
    pub uri: String,
    /// Name of the template.
    pub name: String,
    /// Title for people.
    pub title: Option<String>,
    /// Description of the resources.
    pub description: Option<String>,
    /// Media type, if all resources have the same.
    pub mime: Option<String>,
}

impl Resource {
    /// Creates a resource with a URI and a name, to be served.
    pub fn new(uri: impl Into<String>, name: impl Into<String>) -> Self {
        Self { uri: uri.into(), name: name.into(), title: None, description: None, mime: None, size: None }
    }

    /// Sets the title for people.
    #[must_use]
    pub fn with_title(mut self, title: impl Into<String>) -> Self {
        self.title = Some(title.into());
        self
    }

    /// Sets the description.
    #[must_use]
    pub fn with_description(mut self, description: impl Into<String>) -> Self {
        self.description = Some(description.into());
        self
    }

    /// Sets the media type.
    #[must_use]
    pub fn with_mime(mut self, mime: impl Into<String>) -> Self {
        self.mime = Some(mime.into());
        self
    }
}

impl ResourceTemplate {
    /// Creates a URI template with a name, to be served.
    pub fn new(uri: impl Into<String>, name: impl Into<String>) -> Self {
        Self { uri: uri.into(), name: name.into(), title: None, description: None, mime: None }
    }

    /// Sets the title for people.
    #[must_use]
    pub fn with_title(mut self, title: impl Into<String>) -> Self {
        self.title = Some(title.into());
        self
    }

    /// Sets the description of the resources.
    #[must_use]
    pub fn with_description(mut self, description: impl Into<String>) -> Self {
        self.description = Some(description.into());
        self
    }

    /// Sets the media type of all resources.
    #[must_use]
    pub fn with_mime(mut self, mime: impl Into<String>) -> Self {
        self.mime = Some(mime.into());
        self
    }
}

/// Collects all pages of a list, up to the limits.
macro_rules! pages {
    ($connection:ident, $method:ident, $field:ident) => {{
        let (mut entries, mut cursor, mut size) = (Vec::new(), None, 0);
        for _ in 0..$crate::mcp::resources::PAGES {
            let page = $connection.peer.$method(Some(PaginatedRequestParams::default().with_cursor(cursor))).await?;
            size += $crate::mcp::content::size(&page.$field);
            entries.extend(page.$field);
            cursor = page.next_cursor;
            let is_long = entries.len() >= $crate::mcp::resources::ENTRIES;
            if cursor.is_none() || is_long || size >= $connection.settings.message_limit() {
                break;
            }
        }
        entries.truncate($crate::mcp::resources::ENTRIES);
        Ok(entries)
    }};
}
pub(super) use pages;

impl Client {
    /// Lists the resources of the server.
    ///
    /// # Errors
    /// Of kind [`Tool`](agent_core::ErrorKind::Tool) if the server is unreachable, does not respond
    /// in time, or has no resources.
    pub async fn resources(&self) -> Result<Vec<Resource>> {
        let list = async |connection: &Connection| pages!(connection, list_resources, resources);
        let found = self.link.ask(None, self.link.settings.timeout, list).await?;
        let known = |r: rmcp::model::Resource| Resource {
            uri: r.uri,
            name: r.name,
            title: r.title,
            description: r.description,
            mime: r.mime_type,
            size: r.size,
        };
        Ok(found.into_iter().map(known).collect())
    }

    /// Lists the resource templates of the server.
    ///
    /// # Errors
    /// As [`resources`](Self::resources).
    pub async fn resource_templates(&self) -> Result<Vec<ResourceTemplate>> {
        let list = async |connection: &Connection| pages!(connection, list_resource_templates, resource_templates);
        let found = self.link.ask(None, self.link.settings.timeout, list).await?;
        let known = |r: rmcp::model::ResourceTemplate| ResourceTemplate {
            uri: r.uri_template,
            name: r.name,
            title: r.title,
            description: r.description,
            mime: r.mime_type,
        };
        Ok(found.into_iter().map(known).collect())
    }

    /// Reads a resource: text as text, other contents as images and documents.
    ///
    /// # Errors
    /// As [`resources`](Self::resources); also if the contents exceed the size limit of results.
    pub async fn read_resource(&self, uri: &str) -> Result<Vec<Part>> {
        let (mut params, settings) = (ReadResourceRequestParams::new(uri), &self.link.settings);
        for _ in 0..inputs::ROUNDS {
            let sent = params.clone();
            let read = async |connection: &Connection| connection.peer.read_resource_once(sent).await;
            match self.link.ask(None, settings.timeout, read).await? {
                ReadResourceResponse::Complete(found) => {
                    content::check_size(&found.contents, settings.limit)?;
                    return Ok(found.contents.into_iter().map(content::resource).collect());
                }
                ReadResourceResponse::InputRequired(asked) => {
                    (params.input_responses, params.request_state) = inputs::answer_outside(settings, asked).await?;
                }
                _ => break,
            }
        }
        Err(inputs::endless(settings))
    }

    /// Subscribes to changes of a resource: see [`resource_updates`](Self::resource_updates).
    ///
    /// # Errors
    /// As [`resources`](Self::resources).
    #[expect(deprecated, reason = "servers with a handshake know no other way")]
    pub async fn subscribe(&self, uri: &str) -> Result<()> {
        let (link, settings) = (&self.link, &self.link.settings);
        if link.connection(settings.timeout).await?.is_stateless {
            let change = link.subscribed.add(uri);
            let settled = async { Ok(link.subscribed.is_settled(change, uri).await) };
            if within(settings, None, settings.timeout, settled).await? {
                return Ok(());
            }
            self.unsubscribe(uri).await?;
            let message = format!("The server '{}' takes no subscription to {uri:.500}.", settings.name);
            return Err(Error::tool(message));
        }
        let params = SubscribeRequestParams::new(uri);
        let subscribe = async |connection: &Connection| connection.peer.subscribe(params).await;
        link.ask(None, settings.timeout, subscribe).await?;
        link.subscribed.add(uri);
        Ok(())
    }

    /// Unsubscribes from changes of a resource.
    ///
    /// # Errors
    /// As [`resources`](Self::resources).
    #[expect(deprecated, reason = "servers with a handshake know no other way")]
    pub async fn unsubscribe(&self, uri: &str) -> Result<()> {
        let (link, settings) = (&self.link, &self.link.settings);
        let change = link.subscribed.remove(uri);
        if link.connection(settings.timeout).await?.is_stateless {
            let settled = async { Ok(link.subscribed.is_settled(change, uri).await) };
            return within(settings, None, settings.timeout, settled).await.map(drop);
        }
        let params = UnsubscribeRequestParams::new(uri);
        let unsubscribe = async |connection: &Connection| connection.peer.unsubscribe(params).await;
        link.ask(None, settings.timeout, unsubscribe).await
    }
}
