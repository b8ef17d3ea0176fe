//! Tools for the web: `web_fetch` reads a page, `web_search` searches.
//!
//! ```
//! use std::time::Duration;
//!
//! use agent_tools::web::{Searxng, Web};
//!
//! let web = Web::builder()
//!     .search(Searxng::new("http://localhost:8888")?)
//!     .deny("*.example.net")
//!     .timeout(Duration::from_secs(20))
//!     .user_agent("acme-agent/1.0 (+https://acme.example/agent)")
//!     .build()?;
//! assert_eq!(web.tools().names(), ["web_fetch", "web_search"]);
//! # Ok::<(), agent_core::Error>(())
//! ```
//!
//! # Address policy
//!
//! A page can instruct the model which address to read next (SSRF). Therefore only addresses of the
//! public internet are connected to: private, loopback, link-local, shared, multicast, reserved and
//! documentation addresses are refused, as are IPv6 addresses that embed IPv4 addresses, and
//! metadata servers. Names are resolved first, and only checked addresses are connected to, again
//! at each redirect. [`allow_private`](WebBuilder::allow_private) makes exceptions. Proxies are not
//! used, since a proxy would resolve names itself. Only `http` and `https` addresses are read,
//! without user information, on the ports 80, 443, 8080 and 8443 and those that an exception or an
//! [allowed](WebBuilder::allow) host names. No cookie and no key is sent.
//!
//! # Output for the model
//!
//! Untrusted content is wrapped in delimiters with an id that its author cannot know. Hidden
//! content is left out if the page itself marks it (`hidden`, `aria-hidden`, the style of an
//! element); content that a style sheet hides is shown. This suffices for honest pages; against
//! hostile ones, `PromptInjection` of `agent-middleware` keeps secrets apart from untrusted
//! content.

mod bounded_dom;
mod builder;
mod charset;
mod dom;
mod fence;
mod fetch;
mod fetch_tool;
mod host_throttle;
mod html;
mod page;
mod pattern;
mod robots;
mod rules;
mod search;
mod search_tool;
mod table;

use std::{fmt, sync::Arc};

pub use self::{
    builder::WebBuilder,
    search::{Brave, DuckDuckGo, Hit, LocalIndex, Query, SearchEngine, Searxng, Tavily},
};
use self::{fetch::Fetcher, fetch_tool::WebFetch, search_tool::WebSearch};
use crate::ToolSet;
pub use crate::http::Resolver;

/// Default `User-Agent` header.
const USER_AGENT: &str = concat!("agent-tools/", env!("CARGO_PKG_VERSION"));

/// Tools for the web; see the [module](self). Cheap to clone: clones share their cache.
#[derive(Clone)]
pub struct Web {
    shared: Arc<Shared>,
    engine: Option<Arc<dyn SearchEngine>>,
}

/// State shared by the tools.
#[derive(Debug)]
struct Shared {
    fetcher: Fetcher,
}

impl Web {
    /// Returns a builder of the tools.
    pub fn builder() -> WebBuilder {
        WebBuilder::default()
    }

    /// Returns the tools: `web_fetch`, and `web_search` if there is an engine.
    pub fn tools(&self) -> ToolSet {
        let tools = ToolSet::new("web").tool(WebFetch(self.shared.clone()));
        match &self.engine {
            Some(engine) => tools.tool(WebSearch { shared: self.shared.clone(), engine: engine.clone() }),
            None => tools,
        }
    }
}

impl fmt::Debug for Web {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Web").field("shared", &self.shared).field("search", &self.engine.is_some()).finish()
    }
}
