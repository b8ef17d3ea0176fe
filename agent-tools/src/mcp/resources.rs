//! Resources of a server, for programs.

use agent_core::{Part, Result};
use rmcp::model::{
    PaginatedRequestParams, ReadResourceRequestParams, SubscribeRequestParams, UnsubscribeRequestParams,
};

use super::{Client, connection::Connection, content};

/// The most entries of a list. One that goes on is cut there.
pub(super) const ENTRIES: usize = 10_000;

/// The most pages of a list.
pub(super) const PAGES: usize = 1000;

/// A resource of a server: a file, a row, a page, whatever has a URI.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Resource {
    /// What it is read by.
    pub uri: String,
    /// What it is called.
    pub name: String,
    /// What it is called, for people.
    pub title: Option<String>,
    /// What it is.
    pub description: Option<String>,
    /// Its media type.
    pub mime: Option<String>,
    /// Its length in bytes.
    pub size: Option<u64>,
}

/// Resources whose URIs are made from a template.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ResourceTemplate {
    /// The template: RFC 6570, such as `file:///{path}`.
    pub uri: String,
    /// What it is called.
    pub name: String,
    /// What it is called, for people.
    pub title: Option<String>,
    /// What the resources are.
    pub description: Option<String>,
    /// Their media type, if they all have one.
    pub mime: Option<String>,
}

impl Resource {
    /// A resource of a server of one's own, with its URI and what it is called.
    pub fn new(uri: impl Into<String>, name: impl Into<String>) -> Self {
        Self { uri: uri.into(), name: name.into(), title: None, description: None, mime: None, size: None }
    }

    /// The same resource with a name for people.
    #[must_use]
    pub fn with_title(mut self, title: impl Into<String>) -> Self {
        self.title = Some(title.into());
        self
    }

    /// The same resource with words that say what it is.
    #[must_use]
    pub fn with_description(mut self, description: impl Into<String>) -> Self {
        self.description = Some(description.into());
        self
    }

    /// The same resource of this media type.
    #[must_use]
    pub fn with_mime(mut self, mime: impl Into<String>) -> Self {
        self.mime = Some(mime.into());
        self
    }
}

impl ResourceTemplate {
    /// A template of a server of one's own, with the template and what it is called.
    pub fn new(uri: impl Into<String>, name: impl Into<String>) -> Self {
        Self { uri: uri.into(), name: name.into(), title: None, description: None, mime: None }
    }

    /// The same template with a name for people.
    #[must_use]
    pub fn with_title(mut self, title: impl Into<String>) -> Self {
        self.title = Some(title.into());
        self
    }

    /// The same template with words that say what its resources are.
    #[must_use]
    pub fn with_description(mut self, description: impl Into<String>) -> Self {
        self.description = Some(description.into());
        self
    }

    /// The same template, whose resources are all of this media type.
    #[must_use]
    pub fn with_mime(mut self, mime: impl Into<String>) -> Self {
        self.mime = Some(mime.into());
        self
    }
}

/// All pages of a list, unless it goes on without end.
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
    /// The resources that the server lists.
    ///
    /// # Errors
    /// Of kind [`Tool`](agent_core::ErrorKind::Tool) if the server cannot be reached, does not answer in time, or has none.
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

    /// The templates of further resources.
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

    /// What the resource holds: text as text, all else as images and documents.
    ///
    /// # Errors
    /// As [`resources`](Self::resources); also if it is larger than results may be.
    pub async fn read_resource(&self, uri: &str) -> Result<Vec<Part>> {
        let params = ReadResourceRequestParams::new(uri);
        let read = async |connection: &Connection| connection.peer.read_resource(params).await;
        let found = self.link.ask(None, self.link.settings.timeout, read).await?;
        content::check_size(&found.contents, self.link.settings.limit)?;
        Ok(found.contents.into_iter().map(content::resource).collect())
    }

    /// Asks the server to tell when the resource changes: see [`resource_updates`](Self::resource_updates).
    ///
    /// # Errors
    /// As [`resources`](Self::resources).
    #[expect(deprecated, reason = "servers of today know no other way")]
    pub async fn subscribe(&self, uri: &str) -> Result<()> {
        let params = SubscribeRequestParams::new(uri);
        let subscribe = async |connection: &Connection| connection.peer.subscribe(params).await;
        self.link.ask(None, self.link.settings.timeout, subscribe).await?;
        self.link.note(uri);
        Ok(())
    }

    /// Asks the server not to tell of the resource any more.
    ///
    /// # Errors
    /// As [`resources`](Self::resources).
    #[expect(deprecated, reason = "servers of today know no other way")]
    pub async fn unsubscribe(&self, uri: &str) -> Result<()> {
        self.link.forget(uri);
        let params = UnsubscribeRequestParams::new(uri);
        let unsubscribe = async |connection: &Connection| connection.peer.unsubscribe(params).await;
        self.link.ask(None, self.link.settings.timeout, unsubscribe).await
    }
}
