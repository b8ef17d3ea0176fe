//! `web`: pages and search.

use agent_core::Result;
use agent_tools::{
    ToolSet,
    web::{Brave, DuckDuckGo, Searxng, Tavily, Web},
};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::config::{
    file::{SecretText, seconds},
    parts::change::Choice,
};

/// Pages of the web, and search. Without `search` there is `web_fetch` alone.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(super) struct WebConfig {
    /// Search engine.
    search: Option<Search>,
    #[serde(flatten)]
    reach: Reach,
    #[serde(flatten)]
    choice: Choice,
}

/// Search alone.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(super) struct SearchConfig {
    /// Search engine. Default: DuckDuckGo's pages, which need no key.
    search: Option<Search>,
    #[serde(flatten)]
    reach: Reach,
}

/// Pages that may be reached.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(super) struct Reach {
    /// Hosts that may be reached; `*.example.com` covers those below it. Default: all.
    allow: Vec<String>,
    /// Hosts that may not be reached.
    deny: Vec<String>,
    /// Private addresses to allow.
    allow_private: Vec<String>,
    /// Reads pages that disallow programs (robots.txt). Default: false.
    ignore_robots: bool,
    /// User agent of requests, such as `acme-agent/1.0`. Default: this library.
    user_agent: Option<String>,
    /// Shows images to the model. Default: false.
    images: bool,
    /// Reads the text of PDFs. Default: true.
    pdf: Option<bool>,
    /// Seconds between two requests to one host, at least. Default: 0.5.
    #[schemars(range(min = 0.0))]
    apart: Option<f64>,
    /// Cache of pages.
    cache: Cache,
    /// Most bytes of a page.
    max_bytes: Option<usize>,
    /// Seconds that a page may take.
    #[schemars(range(min = 0.001))]
    timeout: Option<f64>,
}

/// Cache of pages.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
struct Cache {
    /// Most bytes of all of them. Default: 32 MiB.
    max_bytes: u64,
    /// Seconds for which a page is kept. Default: 900.
    #[schemars(range(min = 0.001))]
    time: f64,
}

impl Default for Cache {
    fn default() -> Self {
        Self { max_bytes: 32 << 20, time: 900.0 }
    }
}

/// A search engine.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(tag = "engine", rename_all = "lowercase", deny_unknown_fields)]
enum Search {
    /// Brave's API.
    Brave {
        /// The key.
        api_key: SecretText,
    },
    /// Tavily's API.
    Tavily {
        /// The key.
        api_key: SecretText,
    },
    /// A server of SearXNG.
    Searxng {
        /// Its address.
        url: String,
    },
    /// DuckDuckGo's pages.
    Duckduckgo {},
}

pub(super) fn tools(config: WebConfig) -> Result<ToolSet> {
    config.choice.of(made(config.search, config.reach)?)
}

/// The tool that reads a page.
pub(super) fn fetch(reach: Reach) -> Result<ToolSet> {
    made(None, reach)
}

/// The tool that searches.
pub(super) fn search(config: SearchConfig) -> Result<ToolSet> {
    made(Some(config.search.unwrap_or(Search::Duckduckgo {})), config.reach)?.named(&["web_search"])
}

fn made(search: Option<Search>, reach: Reach) -> Result<ToolSet> {
    let mut web = Web::builder();
    web = match search {
        None => web,
        Some(Search::Brave { api_key }) => web.search(Brave::new(api_key.0)?),
        Some(Search::Tavily { api_key }) => web.search(Tavily::new(api_key.0)?),
        Some(Search::Searxng { url }) => web.search(Searxng::new(&url)?),
        Some(Search::Duckduckgo {}) => web.search(DuckDuckGo::new()?),
    };
    for host in reach.allow {
        web = web.allow(host);
    }
    for host in reach.deny {
        web = web.deny(host);
    }
    for address in reach.allow_private {
        web = web.allow_private(address);
    }
    if reach.ignore_robots {
        web = web.ignore_robots();
    }
    if let Some(name) = reach.user_agent {
        web = web.user_agent(name);
    }
    if let Some(least) = reach.apart {
        web = web.apart(seconds(least)?);
    }
    web = web.images(reach.images).pdf(reach.pdf.unwrap_or(true));
    web = web.cache(reach.cache.max_bytes, seconds(reach.cache.time)?);
    if let Some(most) = reach.max_bytes {
        web = web.max_bytes(most);
    }
    if let Some(time) = reach.timeout {
        web = web.timeout(seconds(time)?);
    }
    Ok(web.build()?.tools())
}
