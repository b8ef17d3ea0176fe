//! [`WebBuilder`].

use std::{fmt, sync::Arc, time::Duration};

use agent_core::{Error, Result};
use moka::sync::Cache;

use super::{
    SearchEngine, Shared, USER_AGENT, Web,
    fetch::{Fetcher, Limits},
    host_throttle::HostThrottle,
    page::Page,
    rules::Rules,
};
use crate::{
    documents::parser_pool::ParserPool,
    http::{AddressPolicy, Http, Resolver, System},
};

/// Maximum of sites whose `robots.txt` is cached, and time to live.
const ROBOTS: (u64, Duration) = (1_000, Duration::from_secs(3600));

/// Builds [`Web`]. [`build`](Self::build) reports invalid settings.
#[derive(Clone)]
#[must_use]
pub struct WebBuilder {
    engine: Option<Arc<dyn SearchEngine>>,
    resolver: Arc<dyn Resolver>,
    allowed: Vec<String>,
    denied: Vec<String>,
    private: Vec<String>,
    user_agent: String,
    limits: Limits,
    ignore_robots: bool,
    apart: Duration,
    cache_bytes: u64,
    cache_time: Duration,
}

impl Default for WebBuilder {
    fn default() -> Self {
        Self {
            engine: None,
            resolver: Arc::new(System),
            allowed: Vec::new(),
            denied: Vec::new(),
            private: Vec::new(),
            user_agent: USER_AGENT.to_owned(),
            limits: Limits { bytes: 5 << 20, time: Duration::from_secs(30), images: false, pdf: true },
            ignore_robots: false,
            apart: Duration::from_millis(500),
            cache_bytes: 32 << 20,
            cache_time: Duration::from_secs(15 * 60),
        }
    }
}

impl WebBuilder {
    /// Sets the search engine of `web_search`. Without an engine, there is no such tool.
    pub fn search(mut self, engine: impl SearchEngine) -> Self {
        self.engine = Some(Arc::new(engine));
        self
    }

    /// Allows a host, and denies all others that are not allowed too: `example.org`,
    /// `*.example.org`, `example.org:8000`. A `*` matches anything. Default: all hosts.
    pub fn allow(mut self, host: impl Into<String>) -> Self {
        self.allowed.push(host.into());
        self
    }

    /// Denies a host, in the syntax of [`allow`](Self::allow). Takes precedence over `allow`.
    pub fn deny(mut self, host: impl Into<String>) -> Self {
        self.denied.push(host.into());
        self
    }

    /// Allows addresses outside the public internet, for an intranet or a test: `10.1.2.3:8080`,
    /// `10.1.2.3` or `10.1.0.0/16`. Only the address matters, not the host name.
    pub fn allow_private(mut self, address: impl Into<String>) -> Self {
        self.private.push(address.into());
        self
    }

    /// Sets the resolver of host names. Default: the operating system's.
    pub fn resolver(mut self, resolver: impl Resolver) -> Self {
        self.resolver = Arc::new(resolver);
        self
    }

    /// Sets the `User-Agent` header: `acme-agent/1.0 (+https://acme.example/agent)`. The product
    /// name before the `/` is matched against `robots.txt` files. Default: `agent-tools` with its
    /// version.
    pub fn user_agent(mut self, agent: impl Into<String>) -> Self {
        self.user_agent = agent.into();
        self
    }

    /// Sets the maximum size of a page in bytes, decompressed. Default: 5 MiB.
    pub fn max_bytes(mut self, most: usize) -> Self {
        self.limits.bytes = most;
        self
    }

    /// Sets the timeout of a call, including redirects, `robots.txt` and throttling; the run's
    /// deadline applies too. Default: 30 seconds.
    pub fn timeout(mut self, longest: Duration) -> Self {
        self.limits.time = longest;
        self
    }

    /// Shows images to the model (PNG, JPEG, GIF, WebP). Default: images are refused.
    pub fn images(mut self, shown: bool) -> Self {
        self.limits.images = shown;
        self
    }

    /// Enables text extraction from PDFs. Default: enabled. A malicious PDF can use much memory
    /// before its parser reaches its limits: where that matters and pages may come from other than
    /// [allowed](Self::allow) hosts, disable it.
    pub fn pdf(mut self, read: bool) -> Self {
        self.limits.pdf = read;
        self
    }

    /// Reads pages that `robots.txt` disallows: for the application's own sites, or where a person
    /// requests each page.
    pub fn ignore_robots(mut self) -> Self {
        self.ignore_robots = true;
        self
    }

    /// Sets the minimum interval between two requests to one host. Default: half a second.
    pub fn apart(mut self, least: Duration) -> Self {
        self.apart = least;
        self
    }

    /// Sets the maximum size of the page cache in bytes, and its time to live. Default: 32 MiB, 15
    /// minutes.
    pub fn cache(mut self, most_bytes: u64, time: Duration) -> Self {
        (self.cache_bytes, self.cache_time) = (most_bytes, time);
        self
    }

    /// Builds the tools.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](agent_core::ErrorKind::Config) if an address, a host or the user agent
    /// is invalid, or a limit is zero.
    pub fn build(self) -> Result<Web> {
        if self.limits.bytes == 0 || self.limits.time.is_zero() {
            return Err(Error::config(
                "with no bytes or no time, nothing can be read: set a max_bytes and a timeout above zero",
            ));
        }
        let (mut rules, mut reach) = (Rules::default(), AddressPolicy::public(self.resolver));
        self.allowed.iter().try_for_each(|host| rules.allow(host))?;
        self.denied.iter().try_for_each(|host| rules.deny(host))?;
        self.private.iter().try_for_each(|address| reach.allow(address))?;
        let robot = self.user_agent.split(['/', ' ']).next().unwrap_or_default();
        if robot.is_empty() {
            return Err(Error::config("the user agent needs a name: write one such as acme-agent/1.0"));
        }
        let weight = |key: &String, page: &Arc<Page>| u32::try_from(key.len() + page.bytes()).unwrap_or(u32::MAX);
        let pages =
            Cache::builder().max_capacity(self.cache_bytes).time_to_live(self.cache_time).weigher(weight).build();
        let fetcher = Fetcher {
            http: Http::new(reach, &self.user_agent)?,
            rules,
            host_throttle: HostThrottle::new(self.apart),
            apart: ParserPool::new(self.limits.time),
            limits: self.limits,
            robot: (!self.ignore_robots).then(|| robot.to_owned()),
            robots: Cache::builder().max_capacity(ROBOTS.0).time_to_live(ROBOTS.1).build(),
            pages,
        };
        Ok(Web { shared: Arc::new(Shared { fetcher }), engine: self.engine })
    }
}

impl fmt::Debug for WebBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WebBuilder")
            .field("search", &self.engine.is_some())
            .field("allowed", &self.allowed)
            .field("denied", &self.denied)
            .field("private", &self.private)
            .field("user_agent", &self.user_agent)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}
