//! Tools that providers have themselves: [`ServerTool`].

use std::{collections::BTreeMap, fmt};

use serde::{Deserialize, Serialize};

/// A tool that providers have themselves, said once for all of them: each wire writes it in its provider's words, and refuses
/// what its provider does not have, with an error that says which wires do.
///
/// All but [`Computer`](Self::Computer) run at the provider: what was done there is a
/// [`ServerCall`](crate::message::ServerCall) of the answer, and its sources are the [citations](crate::message::Citation)
/// of the texts.
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
    /// Reads pages whose addresses stand in the conversation.
    WebFetch(WebFetch),
    /// Writes programs and runs them.
    CodeExecution,
    /// Searches files that were stored at the provider.
    FileSearch(FileSearch),
    /// Makes images, which are in the answer.
    ImageGeneration,
    /// The use of a computer, which models were taught. Calls of it are calls of an own tool, which does them: its spec is
    /// [`with_server`](crate::ToolSpec::with_server) this.
    Computer(Computer),
    /// The tools of a server of the Model Context Protocol, which the provider calls.
    Mcp(RemoteMcp),
}

/// What a web search may look at.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct WebSearch {
    /// The only domains that may be found; all if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allowed_domains: Vec<String>,
    /// Domains that are never found.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub blocked_domains: Vec<String>,
    /// Most searches of one answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_uses: Option<u32>,
    /// Where the user is, about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub location: Option<Location>,
}

/// Where a user is, about.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct Location {
    /// The city.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub city: Option<String>,
    /// The region or state.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub region: Option<String>,
    /// The country, by its two letters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub country: Option<String>,
    /// The time zone, such as `Europe/Berlin`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timezone: Option<String>,
}

/// What pages may be read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct WebFetch {
    /// The only domains that may be read; all if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allowed_domains: Vec<String>,
    /// Domains that are never read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub blocked_domains: Vec<String>,
    /// Most pages of one answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_uses: Option<u32>,
}

/// Which stored files are searched.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct FileSearch {
    /// The ids or names of the provider's stores.
    pub stores: Vec<String>,
    /// Most passages that are found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_results: Option<u32>,
}

/// The screen of a computer, in pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Computer {
    /// Its width.
    pub width: u32,
    /// Its height.
    pub height: u32,
}

/// A server of the Model Context Protocol that the provider calls.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct RemoteMcp {
    /// What it is called: letters, digits, `_` and `-`.
    pub name: String,
    /// Where it is.
    pub url: String,
    /// A bearer token for it. It is in no log, and kept nowhere.
    #[serde(skip)]
    pub authorization: Option<Secret>,
    /// Headers for it. Their values are in no log, and kept nowhere.
    #[serde(skip)]
    pub headers: BTreeMap<String, Secret>,
    /// The only tools of it that may be called; all if none is said.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allowed_tools: Vec<String>,
    /// Whether it was given a token or headers, which are not kept: whoever reads it back has to give them again. Set by
    /// [`authorization`](Self::authorization()) and [`header`](Self::header).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub has_secrets: bool,
    /// Whether calls wait for an approval, for providers that can be answered. No wire that comes with `agent-llm` can give
    /// one, so they refuse it. Default: calls do not wait.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub approval: bool,
}

/// A text that `Debug` does not show.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// The text.
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
    /// What it is called: `web_search`, `code_execution` and so on; the server's own name for one of the Model Context Protocol.
    pub fn name(&self) -> &str {
        match self {
            Self::Mcp(server) => &server.name,
            other => other.kind(),
        }
    }

    /// What it is: `web_search`, `web_fetch`, `code_execution`, `file_search`, `image_generation`, `computer` or `mcp`.
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
    /// A search of the whole web.
    pub fn new() -> Self {
        Self::default()
    }

    /// Allows a domain, and no other but those that are allowed too.
    #[must_use]
    pub fn allow(mut self, domain: impl Into<String>) -> Self {
        self.allowed_domains.push(domain.into());
        self
    }

    /// Blocks a domain.
    #[must_use]
    pub fn block(mut self, domain: impl Into<String>) -> Self {
        self.blocked_domains.push(domain.into());
        self
    }

    /// Sets the most searches of one answer.
    #[must_use]
    pub fn max_uses(mut self, most: u32) -> Self {
        self.max_uses = Some(most);
        self
    }

    /// Says where the user is.
    #[must_use]
    pub fn near(mut self, location: Location) -> Self {
        self.location = Some(location);
        self
    }
}

impl Location {
    /// A city of a country, which is said by its two letters.
    pub fn city(city: impl Into<String>, country: impl Into<String>) -> Self {
        Self { city: Some(city.into()), country: Some(country.into()), ..Self::default() }
    }
}

impl FileSearch {
    /// A search of these stores.
    pub fn new(stores: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self { stores: stores.into_iter().map(Into::into).collect(), max_results: None }
    }

    /// Sets the most passages that are found.
    #[must_use]
    pub fn max_results(mut self, most: u32) -> Self {
        self.max_results = Some(most);
        self
    }
}

impl Computer {
    /// A screen of this size.
    pub fn new(width: u32, height: u32) -> Self {
        Self { width, height }
    }
}

impl RemoteMcp {
    /// The server at this address, with all of its tools.
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

    /// Sets a bearer token for the server.
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

    /// Allows a tool, and no other but those that are allowed too.
    #[must_use]
    pub fn allow(mut self, tool: impl Into<String>) -> Self {
        self.allowed_tools.push(tool.into());
        self
    }

    /// Has calls wait for an approval: see [`approval`](Self::approval).
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
