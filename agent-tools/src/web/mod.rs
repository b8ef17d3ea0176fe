//! Tools for the web: `web_fetch` reads a page, `web_search` finds some.
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
//! # What is refused
//!
//! A model that reads the web can be told by a page what to read next. So no address is connected to that is not of the public
//! internet: private, loopback, link-local, shared, multicast, reserved and documentation addresses, those of IPv6 that hold one of
//! IPv4, and servers of metadata. Names are resolved first, and what was judged is what is connected to, at each redirect anew.
//! [`allow_private`](WebBuilder::allow_private) makes exceptions. Proxies are not used: it would be they that resolve.
//!
//! Only `http` and `https` are read, without a user name, on the ports 80, 443, 8080 and 8443 and those that an exception or an
//! [allowed](WebBuilder::allow) host names. No cookie and no key is sent.
//!
//! # What the model is shown
//!
//! What comes from outside stands between delimiters with an id that its author cannot know. Content that a reader would not see is
//! left out where the page itself says so (`hidden`, `aria-hidden`, the style of an element); what a style sheet hides is shown. This
//! keeps honest pages honest; against hostile ones, `PromptInjection` of `agent-middleware` keeps what is secret apart from what is
//! not trusted.

mod bounded_dom;
mod builder;
mod charset;
mod dom;
mod fence;
mod fetch;
mod fetch_tool;
mod html;
mod page;
mod pattern;
mod polite;
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

/// How requests name their sender, unless the application says otherwise.
const USER_AGENT: &str = concat!("agent-tools/", env!("CARGO_PKG_VERSION"));

/// Tools for the web; see the [module](self). Cheap to clone: clones share their cache.
#[derive(Clone)]
pub struct Web {
    shared: Arc<Shared>,
    engine: Option<Arc<dyn SearchEngine>>,
}

/// What the tools have in common.
#[derive(Debug)]
struct Shared {
    fetcher: Fetcher,
}

impl Web {
    /// Builds the tools.
    pub fn builder() -> WebBuilder {
        WebBuilder::default()
    }

    /// The tools: `web_fetch`, and `web_search` if there is an engine.
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
