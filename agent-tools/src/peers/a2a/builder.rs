//! [`A2aBuilder`].

use std::{sync::Arc, time::Duration};

use agent_core::{Error, Result, tool::Secret};
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use tokio::sync::OnceCell;
use url::Url;

use super::{
    A2aAgent, Inner,
    client::{Client, Secrets},
};
use crate::http::{Http, Reach, System};

/// How requests name their sender.
const USER_AGENT: &str = concat!("agent-tools/", env!("CARGO_PKG_VERSION"));

/// Builds an [`A2aAgent`]. What is wrong with the settings is said by [`build`](Self::build).
#[derive(Clone, Debug)]
#[must_use]
pub struct A2aBuilder {
    url: String,
    name: String,
    headers: Vec<(String, Secret)>,
    private: Vec<String>,
    deduplicates: bool,
    #[cfg(feature = "workspace")]
    workspace: Option<crate::Workspace>,
    time: Duration,
    patience: Duration,
    poll: Duration,
    bytes: usize,
}

impl A2aBuilder {
    pub(super) fn new(url: String) -> Self {
        Self {
            url,
            name: "a2a".to_owned(),
            headers: Vec::new(),
            private: Vec::new(),
            deduplicates: false,
            #[cfg(feature = "workspace")]
            workspace: None,
            time: Duration::from_secs(3600),
            patience: Duration::from_secs(60),
            poll: Duration::from_secs(2),
            bytes: 4 << 20,
        }
    }

    /// Sets the name of the tool. Default: `a2a`.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// Sets a header of every request, such as a key. The value is in no log, no error and no journal, and goes to the agent's own
    /// origin alone.
    pub fn header(mut self, name: impl Into<String>, value: impl Into<Secret>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Sets a bearer token: a header `authorization`.
    pub fn bearer(self, token: impl Into<String>) -> Self {
        self.header("authorization", format!("Bearer {}", token.into()))
    }

    /// Lets the agent be at an address that is not of the public internet: `10.1.2.3:8080`, `10.1.2.3` or `10.1.0.0/16`.
    pub fn allow_private(mut self, address: impl Into<String>) -> Self {
        self.private.push(address.into());
        self
    }

    /// Lets a call hand over files of this workspace. They are sent whole. Default: a call is text.
    #[cfg(feature = "workspace")]
    pub fn workspace(mut self, workspace: crate::Workspace) -> Self {
        self.workspace = Some(workspace);
        self
    }

    /// Says that the agent takes a message only once, however often it comes under one `messageId`. After a crash, a message of which
    /// nothing is known is then sent again, and nobody is asked. Default: false, since the protocol does not promise it.
    pub fn deduplicates(mut self) -> Self {
        self.deduplicates = true;
        self
    }

    /// Sets the longest time of a call; the run's deadline may end it before. Default: 1 hour.
    pub fn timeout(mut self, longest: Duration) -> Self {
        self.time = longest;
        self
    }

    /// Sets the longest time of one request, and that a stream may be silent before the task is looked at in another way. Default:
    /// 60 seconds.
    pub fn patience(mut self, longest: Duration) -> Self {
        self.patience = longest;
        self
    }

    /// Sets how often a task is looked at that cannot be followed as a stream. Default: every 2 seconds.
    pub fn poll_every(mut self, time: Duration) -> Self {
        self.poll = time;
        self
    }

    /// Sets the most bytes of an answer, and of all that one stream tells. Default: 4 MiB.
    pub fn max_bytes(mut self, most: usize) -> Self {
        self.bytes = most;
        self
    }

    /// The agent. Nothing is sent yet.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](agent_core::ErrorKind::Config) if the URL, a header or an address is none.
    pub fn build(self) -> Result<A2aAgent> {
        let url = Url::parse(&self.url).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
        let url =
            url.ok_or_else(|| Error::config("an agent's address is a URL that begins with http:// or https://"))?;
        let mut headers = HeaderMap::new();
        for (name, value) in &self.headers {
            let parsed = HeaderName::try_from(name).ok().zip(HeaderValue::try_from(value.expose()).ok());
            let (header, mut value) = parsed.ok_or_else(|| Error::config(format!("'{name}' is no valid header")))?;
            value.set_sensitive(true);
            headers.append(header, value);
        }
        let values = self.headers.iter().map(|(_, value)| value.expose());
        let secrets = values.map(|value| value.strip_prefix("Bearer ").unwrap_or(value).to_owned()).collect();
        let mut reach = Reach::public(Arc::new(System));
        self.private.iter().try_for_each(|address| reach.allow(address))?;
        let http = Http::new(reach, USER_AGENT)?;
        let client = Client { http, headers, patience: self.patience, bytes: self.bytes, secrets: Secrets(secrets) };
        let inner = Inner {
            url,
            name: self.name,
            client,
            deduplicates: self.deduplicates,
            #[cfg(feature = "workspace")]
            workspace: self.workspace,
            time: self.time,
            poll: self.poll,
            site: OnceCell::new(),
        };
        Ok(A2aAgent(Arc::new(inner)))
    }
}
