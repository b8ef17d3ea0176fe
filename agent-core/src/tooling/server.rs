//! Provider-hosted tools: [`ServerTool`].

use std::{collections::BTreeMap, fmt};

use serde::{Deserialize, Serialize};

/// A provider-hosted tool in a provider-neutral form: each wire encodes it for its provider, and
/// rejects a tool that its provider does not have, with an error that names the wires that do.
///
/// All tools but [`Computer`](Self::Computer) run at the provider: their calls are
/// [`ServerCall`](crate::message::ServerCall)s of the answer, and their sources are the
/// [citations](crate::message::Citation) of the texts.
///
/// ```
/// use agent_core::{ToolSpec, tool::{RemoteMcp, ServerTool, WebSearch}};
///
/// let search = ToolSpec::of_server(WebSearch::new().allow("docs.rs").max_uses(3));
/// let wiki = ToolSpec::of_server(RemoteMcp::new("wiki", "https://mcp.acme.example").authorization("a-token"));
/// assert!(search.is_server_side() && search.name == "web_search");
/// assert!(!format!("{wiki:?}").contains("a-token"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ServerTool {
    /// Searches the web.
    WebSearch(WebSearch),
    /// Reads pages whose addresses are in the conversation.
    WebFetch(WebFetch),
    /// Writes programs and runs them.
    CodeExecution,
    /// Searches files stored at the provider.
    FileSearch(FileSearch),
    /// Generates images, which are part of the answer.
    ImageGeneration,
    /// Computer use, which models are trained for. Its calls are executed by a local tool, whose
    /// spec is created [`with_server`](crate::ToolSpec::with_server) this.
    Computer(Computer),
    /// Tools of an MCP (Model Context Protocol) server, called by the provider.
    Mcp(RemoteMcp),
}

/// Options of a web search.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct WebSearch {
    /// Allowed domains. Default: all.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allowed_domains: Vec<String>,
    /// Blocked domains.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub blocked_domains: Vec<String>,
    /// Maximum number of searches per answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_uses: Option<u32>,
    /// Approximate location of the user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub location: Option<Location>,
}

/// Approximate location of a user.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct Location {
    /// City.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub city: Option<String>,
    /// Region or state.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub region: Option<String>,
    /// Two-letter country code.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub country: Option<String>,
    /// Time zone, such as `Europe/Berlin`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timezone: Option<String>,
}

/// Options of a web fetch.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct WebFetch {
    /// Allowed domains. Default: all.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allowed_domains: Vec<String>,
    /// Blocked domains.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub blocked_domains: Vec<String>,
    /// Maximum number of pages per answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_uses: Option<u32>,
}

/// Options of a file search.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct FileSearch {
    /// Ids or names of the provider's stores.
    pub stores: Vec<String>,
    /// Maximum number of passages to return.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_results: Option<u32>,
}

/// The screen of a computer, in pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Computer {
    /// Width of the screen.
    pub width: u32,
    /// Height of the screen.
    pub height: u32,
}

/// An MCP (Model Context Protocol) server that the provider calls.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct RemoteMcp {
    /// Name of the server: letters, digits, `_` and `-`.
    pub name: String,
    /// URL of the server.
    pub url: String,
    /// Bearer token for the server. Never logged or persisted.
    #[serde(skip)]
    pub authorization: Option<Secret>,
    /// Headers for the server. Their values are never logged or persisted.
    #[serde(skip)]
    pub headers: BTreeMap<String, Secret>,
    /// Allowed tools. Default: all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allowed_tools: Vec<String>,
    /// True if a token or headers were set; these are not persisted, and must be set again after
    /// deserialisation. Set by [`authorization`](Self::authorization()) and
    /// [`header`](Self::header).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub has_secrets: bool,
    /// True if calls wait for an approval, for providers that support it. No wire of `agent-llm`
    /// can send approvals, so they reject it. Default: false.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub approval: bool,
}

/// A text that `Debug` does not show.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Returns the text.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl<T: Into<String>> From<T> for Secret {
    fn from(text: T) -> Self {
        Self(text.into())
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[secret]")
    }
}

impl ServerTool {
    /// Name of the tool: `web_search`, `code_execution` and so on; the configured name for an MCP
    /// server.
    pub fn name(&self) -> &str {
        match self {
            Self::Mcp(server) => &server.name,
            other => other.kind(),
        }
    }

    /// Kind of the tool: `web_search`, `web_fetch`, `code_execution`, `file_search`,
    /// `image_generation`, `computer` or `mcp`.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::WebSearch(_) => "web_search",
            Self::WebFetch(_) => "web_fetch",
            Self::CodeExecution => "code_execution",
            Self::FileSearch(_) => "file_search",
            Self::ImageGeneration => "image_generation",
            Self::Computer(_) => "computer",
            Self::Mcp(_) => "mcp",
        }
    }
}

impl WebSearch {
    /// Creates a search of the whole web.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a domain to the allow-list.
    #[must_use]
    pub fn allow(mut self, domain: impl Into<String>) -> Self {
        self.allowed_domains.push(domain.into());
        self
    }

    /// Adds a domain to the block-list.
    #[must_use]
    pub fn block(mut self, domain: impl Into<String>) -> Self {
        self.blocked_domains.push(domain.into());
        self
    }

    /// Sets the maximum number of searches per answer.
    #[must_use]
    pub fn max_uses(mut self, most: u32) -> Self {
        self.max_uses = Some(most);
        self
    }

    /// Sets the location of the user.
    #[must_use]
    pub fn near(mut self, location: Location) -> Self {
        self.location = Some(location);
        self
    }
}

impl Location {
    /// Creates a location from a city and a two-letter country code.
    pub fn city(city: impl Into<String>, country: impl Into<String>) -> Self {
        Self { city: Some(city.into()), country: Some(country.into()), ..Self::default() }
    }
}

impl FileSearch {
    /// Creates a search of these stores.
    pub fn new(stores: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self { stores: stores.into_iter().map(Into::into).collect(), max_results: None }
    }

    /// Sets the maximum number of passages to return.
    #[must_use]
    pub fn max_results(mut self, most: u32) -> Self {
        self.max_results = Some(most);
        self
    }
}

impl Computer {
    /// Creates a screen of this size.
    pub fn new(width: u32, height: u32) -> Self {
        Self { width, height }
    }
}

impl RemoteMcp {
    /// Creates a server at this address, with all its tools.
    pub fn new(name: impl Into<String>, url: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            url: url.into(),
            authorization: None,
            headers: BTreeMap::new(),
            allowed_tools: Vec::new(),
            has_secrets: false,
            approval: false,
        }
    }

    /// Sets the bearer token for the server.
    #[must_use]
    pub fn authorization(mut self, token: impl Into<String>) -> Self {
        (self.authorization, self.has_secrets) = (Some(token.into().into()), true);
        self
    }

    /// Sets a header for the server.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.insert(name.into(), value.into().into());
        self.has_secrets = true;
        self
    }

    /// Adds a tool to the allow-list.
    #[must_use]
    pub fn allow(mut self, tool: impl Into<String>) -> Self {
        self.allowed_tools.push(tool.into());
        self
    }

    /// Makes calls wait for an approval: see [`approval`](Self::approval).
    #[must_use]
    pub fn with_approval(mut self) -> Self {
        self.approval = true;
        self
    }
}

macro_rules! from {
    ($($name:ident => $variant:ident,)*) => {
        $(impl From<$name> for ServerTool {
            fn from(tool: $name) -> Self {
                Self::$variant(tool)
            }
        })*
    };
}

from! { WebSearch => WebSearch, WebFetch => WebFetch, FileSearch => FileSearch, Computer => Computer, RemoteMcp => Mcp, }

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_opens_a_server_is_neither_shown_nor_kept() {
        let tool =
            ServerTool::from(RemoteMcp::new("wiki", "https://a.example").authorization("hush").header("x-key", "hush"));
        assert!(!format!("{tool:?}").contains("hush"));
        let json = serde_json::to_string(&tool).expect("serialises");
        assert_eq!(json, r#"{"mcp":{"name":"wiki","url":"https://a.example","has_secrets":true}}"#);
        let back: ServerTool = serde_json::from_str(&json).expect("parses");
        let ServerTool::Mcp(back) = back else { panic!("{back:?}") };
        assert_eq!((back.has_secrets, back.authorization, back.headers.len()), (true, None, 0));
    }
}
