//! [`OpenApiBuilder`].

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::Arc,
    time::Duration,
};

use agent_core::{Error, Result, tool::Secret};
use reqwest::Method;
use serde_json::Value;
use url::Url;

use super::{
    OpenApi,
    auth::Auth,
    document::{Document, fields, list, text},
    names::Names,
    operation::{Operation, Site},
    tool::Client,
};
use crate::http::{AddressPolicy, Http, System};

/// Default `User-Agent` header.
const USER_AGENT: &str = concat!("agent-tools/", env!("CARGO_PKG_VERSION"));
/// Maximum of bytes of the parameter schemas of all selected operations.
const MOST_BYTES: usize = 64 << 20;
/// HTTP methods of operations, in the spelling of documents. `trace` is not offered to a model.
const METHODS: [(&str, Method); 7] = [
    ("get", Method::GET),
    ("head", Method::HEAD),
    ("options", Method::OPTIONS),
    ("put", Method::PUT),
    ("post", Method::POST),
    ("patch", Method::PATCH),
    ("delete", Method::DELETE),
];

/// Builds [`OpenApi`]. [`build`](Self::build) reports errors in the document and the settings.
#[derive(Clone)]
#[must_use]
pub struct OpenApiBuilder {
    document: String,
    tags: BTreeSet<String>,
    ids: BTreeSet<String>,
    server: Option<String>,
    secrets: BTreeMap<String, Secret>,
    private: Vec<String>,
    user_agent: String,
    time: Duration,
    bytes: usize,
}

impl OpenApiBuilder {
    pub(super) fn new(document: String) -> Self {
        Self {
            document,
            tags: BTreeSet::new(),
            ids: BTreeSet::new(),
            server: None,
            secrets: BTreeMap::new(),
            private: Vec::new(),
            user_agent: USER_AGENT.to_owned(),
            time: Duration::from_secs(30),
            bytes: 2 << 20,
        }
    }

    /// Selects the operations with this tag. Default: all operations, if neither a tag nor an id is
    /// selected.
    pub fn tag(mut self, tag: impl Into<String>) -> Self {
        self.tags.insert(tag.into());
        self
    }

    /// Selects the operation with this `operationId`, or this request: `GET /pets/{id}`.
    pub fn operation(mut self, id: impl Into<String>) -> Self {
        self.ids.insert(id.into());
        self
    }

    /// Sets the server, which overrides those in the document. Any address is allowed. Paths are
    /// appended to the path of the URL.
    pub fn server(mut self, url: impl Into<String>) -> Self {
        self.server = Some(url.into());
        self
    }

    /// Sets the secret of a security scheme, by the name of the scheme in the document: a key, a
    /// bearer token, also for OAuth, or `user:password`. The model never sees it.
    pub fn secret(mut self, scheme: impl Into<String>, secret: impl Into<Secret>) -> Self {
        self.secrets.insert(scheme.into(), secret.into());
        self
    }

    /// Allows the document's own server at an address outside the public internet: `10.1.2.3:8080`,
    /// `10.1.2.3` or `10.1.0.0/16`.
    pub fn allow_private(mut self, address: impl Into<String>) -> Self {
        self.private.push(address.into());
        self
    }

    /// Sets the `User-Agent` header. Default: `agent-tools` with its version.
    pub fn user_agent(mut self, agent: impl Into<String>) -> Self {
        self.user_agent = agent.into();
        self
    }

    /// Sets the timeout of a call; the run's deadline applies too. Default: 30 seconds.
    pub fn timeout(mut self, longest: Duration) -> Self {
        self.time = longest;
        self
    }

    /// Sets the maximum size of a response in bytes, decompressed. Default: 2 MiB.
    pub fn max_bytes(mut self, most: usize) -> Self {
        self.bytes = most;
        self
    }

    /// Builds the tools.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](agent_core::ErrorKind::Config) if the document cannot be parsed, a
    /// selected tag or id is missing, an operation selected by its id cannot become a tool, no
    /// operation can, or a setting is invalid.
    pub fn build(self) -> Result<OpenApi> {
        if self.bytes == 0 || self.time.is_zero() {
            return Err(Error::config(
                "with no bytes or no time, nothing can be read: set a max_bytes and a timeout above zero",
            ));
        }
        let document = Document::read(&self.document)?;
        let auth = Auth::new(&document, self.secrets.clone())?;
        let server = self.server.as_deref().map(address).transpose()?;
        let (operations, left_out) = self.operations(&document, &auth, server.as_ref())?;
        let mut reach =
            if server.is_some() { AddressPolicy::anywhere() } else { AddressPolicy::public(Arc::new(System)) };
        self.private.iter().try_for_each(|address| reach.allow(address))?;
        let client = Client { http: Http::new(reach, &self.user_agent)?, time: self.time, bytes: self.bytes };
        let title = document.root().get("info").map_or("", |info| text(info, "title"));
        let title = if title.is_empty() { "openapi" } else { title }.to_owned();
        Ok(OpenApi { title, client: Arc::new(client), operations, left_out })
    }

    fn operations(
        &self,
        document: &Document,
        auth: &Auth,
        server: Option<&Url>,
    ) -> Result<(Vec<Arc<Operation>>, Vec<String>)> {
        let (mut names, mut made, mut left_out) = (Names::default(), Vec::new(), Vec::new());
        let (mut ids, mut tags) = (self.ids.clone(), self.tags.clone());
        let everything = ids.is_empty() && tags.is_empty();
        let (mut known, mut bytes) = (Vec::new(), 0);
        for (path, item) in fields(document.root(), "paths") {
            let item = document.resolve(item)?;
            for (word, method) in &METHODS {
                let Some(operation) = item.get(*word) else { continue };
                let (id, request) = (text(operation, "operationId"), format!("{method} {path}"));
                known.push(if id.is_empty() { request.clone() } else { id.to_owned() });
                let by_id = [id, &request].iter().any(|id| self.ids.contains(*id));
                ids.retain(|wanted| wanted != id && *wanted != request);
                let of: BTreeSet<_> = list(operation, "tags").filter_map(Value::as_str).collect();
                let by_tag = self.tags.iter().any(|tag| of.contains(tag.as_str()));
                tags.retain(|wanted| !of.contains(wanted.as_str()));
                if !(everything || by_id || by_tag) {
                    continue;
                }
                let wanted = if id.is_empty() { format!("{word}_{path}") } else { id.to_owned() };
                let site = Site { document, auth, server, path, item, method, operation };
                match Operation::read(&site, names.give(&wanted)) {
                    Ok(operation) => {
                        bytes += operation.schema.to_string().len();
                        if bytes > MOST_BYTES {
                            let most = MOST_BYTES >> 20;
                            return Err(Error::config(format!(
                                "the parameters of the document's operations take more than {most} MiB: choose some by tag or id"
                            )));
                        }
                        made.push(Arc::new(operation));
                    }
                    Err(e) if by_id => {
                        return Err(e.map_message(|why| format!("'{request}' cannot become a tool: {why}")));
                    }
                    Err(e) => left_out.push(format!("{request}: {}", e.message())),
                }
            }
        }
        if let Some(id) = ids.first() {
            return Err(Error::config(format!(
                "there is no operation '{id}' in the document; there are: {}",
                some(&known)
            )));
        }
        if let Some(tag) = tags.first() {
            return Err(Error::config(format!("no operation of the document has the tag '{tag}'")));
        }
        match (made.is_empty(), left_out.first()) {
            (false, _) => Ok((made, left_out)),
            (true, Some(why)) => Err(Error::config(format!("of no operation a tool can be made: {why}"))),
            (true, None) => Err(Error::config("the document has no operations")),
        }
    }
}

/// Lists the first few names.
fn some(names: &[String]) -> String {
    const SHOWN: usize = 20;
    let shown = names.iter().take(SHOWN).map(String::as_str).collect::<Vec<_>>().join(", ");
    if names.len() > SHOWN { format!("{shown} and {} more", names.len() - SHOWN) } else { shown }
}

fn address(server: &str) -> Result<Url> {
    let wrong = || {
        Error::config(format!(
            "'{server}' is not the address of a server: write one such as https://api.example.org/v1"
        ))
    };
    let url = Url::parse(server).map_err(|e| wrong().with_source(e))?;
    let usable = matches!(url.scheme(), "http" | "https")
        && url.username().is_empty()
        && url.password().is_none()
        && url.query().is_none();
    if usable { Ok(url) } else { Err(wrong()) }
}

impl fmt::Debug for OpenApiBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenApiBuilder")
            .field("tags", &self.tags)
            .field("ids", &self.ids)
            .field("server", &self.server)
            .field("secrets", &self.secrets.keys())
            .finish_non_exhaustive()
    }
}
