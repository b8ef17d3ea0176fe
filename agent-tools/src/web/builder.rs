//! [`WebBuilder`].

use std::{fmt, sync::Arc, time::Duration};

use agent_core::{Error, Result};
use moka::sync::Cache;

use super::{
    SearchEngine, Shared, USER_AGENT, Web,
    fetch::{Fetcher, Limits},
    page::Page,
    polite::Polite,
    rules::Rules,
};
use crate::{
    documents::apart::Apart,
    http::{Http, Reach, Resolver, System},
};

/// Sites whose `robots.txt` is kept, and for how long.
const ROBOTS: (u64, Duration) = (1_000, Duration::from_secs(3600));

/// Builds [`Web`]. What is wrong with the settings is said by [`build`](Self::build).
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
    /// Sets what `web_search` asks. Without one, there is no such tool.
    pub fn search(mut self, engine: impl SearchEngine) -> Self {
        self.engine = Some(Arc::new(engine));
        self
    }

    /// Allows a host, and no other but those that are allowed too: `example.org`, `*.example.org`, `example.org:8000`. A `*` stands
    /// for anything. Default: all hosts.
    pub fn allow(mut self, host: impl Into<String>) -> Self {
        self.allowed.push(host.into());
        self
    }

    /// Denies a host, written as for [`allow`](Self::allow), also where it is allowed.
    pub fn deny(mut self, host: impl Into<String>) -> Self {
        self.denied.push(host.into());
        self
    }

    /// Lets addresses be read that are not of the public internet, for an intranet or a test: `10.1.2.3:8080`, `10.1.2.3` or
    /// `10.1.0.0/16`. It is the address that counts, whatever the host is called.
    pub fn allow_private(mut self, address: impl Into<String>) -> Self {
        self.private.push(address.into());
        self
    }

    /// Sets how names are resolved. Default: by the operating system.
    pub fn resolver(mut self, resolver: impl Resolver) -> Self {
        self.resolver = Arc::new(resolver);
        self
    }

    /// Sets how requests name their sender: `acme-agent/1.0 (+https://acme.example/agent)`. The word before the `/` is what
    /// `robots.txt` files call it. Default: `agent-tools` with its version.
    pub fn user_agent(mut self, agent: impl Into<String>) -> Self {
        self.user_agent = agent.into();
        self
    }

    /// Sets the most bytes of a page, decompressed. Default: 5 MiB.
    pub fn max_bytes(mut self, most: usize) -> Self {
        self.limits.bytes = most;
        self
    }

    /// Sets the longest time of a call, with redirects, `robots.txt` and waiting; the run's deadline may end it before. Default: 30
    /// seconds.
    pub fn timeout(mut self, longest: Duration) -> Self {
        self.limits.time = longest;
        self
    }

    /// Shows the model images (PNG, JPEG, GIF, WebP). Default: they are refused.
    pub fn images(mut self, shown: bool) -> Self {
        self.limits.images = shown;
        self
    }

    /// Reads the text of PDFs. Default: it does. A PDF that is made to do harm can take much memory before its reader gives it up: where
    /// that matters, and pages are not those of an [allowed](Self::allow) host, leave them out.
    pub fn pdf(mut self, read: bool) -> Self {
        self.limits.pdf = read;
        self
    }

    /// Reads pages that `robots.txt` does not let programs read: for one's own sites, or where a person asks for each page.
    pub fn ignore_robots(mut self) -> Self {
        self.ignore_robots = true;
        self
    }

    /// Sets the least time between two requests to one host. Default: half a second.
    pub fn apart(mut self, least: Duration) -> Self {
        self.apart = least;
        self
    }

    /// Sets the most bytes of pages that are kept, and for how long. Default: 32 MiB, a quarter of an hour.
    pub fn cache(mut self, most_bytes: u64, time: Duration) -> Self {
        (self.cache_bytes, self.cache_time) = (most_bytes, time);
        self
    }

    /// The tools.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](agent_core::ErrorKind::Config) if an address, a host or the user agent is none, or a limit is zero.
    pub fn build(self) -> Result<Web> {
        if self.limits.bytes == 0 || self.limits.time.is_zero() {
            return Err(Error::config(
                "with no bytes or no time, nothing can be read: set a max_bytes and a timeout above zero",
            ));
        }
        let (mut rules, mut reach) = (Rules::default(), Reach::public(self.resolver));
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
            polite: Polite::new(self.apart),
            apart: Apart::new(self.limits.time),
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
