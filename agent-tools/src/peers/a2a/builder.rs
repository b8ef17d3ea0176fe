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
use crate::http::{AddressPolicy, Http, System};

/// Value of the `User-Agent` header.
const USER_AGENT: &str = concat!("agent-tools/", env!("CARGO_PKG_VERSION"));

/// Builds an [`A2aAgent`]. [`build`](Self::build) reports invalid settings.
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

    /// Sets a header of every request, such as a key. The value appears in no log, no error and no
    /// journal, and is sent to the agent's own origin only.
    pub fn header(mut self, name: impl Into<String>, value: impl Into<Secret>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Sets a bearer token: an `authorization` header.
    pub fn bearer(self, token: impl Into<String>) -> Self {
        self.header("authorization", format!("Bearer {}", token.into()))
    }

    /// Allows the agent at an address outside the public internet: `10.1.2.3:8080`, `10.1.2.3` or
    /// `10.1.0.0/16`.
    pub fn allow_private(mut self, address: impl Into<String>) -> Self {
        self.private.push(address.into());
        self
    }

    /// Allows calls to attach files of this workspace, which are sent whole. Default: a call is
    /// text only.
    #[cfg(feature = "workspace")]
    pub fn workspace(mut self, workspace: crate::Workspace) -> Self {
        self.workspace = Some(workspace);
        self
    }

    /// Declares that the agent deduplicates messages by `messageId`. After a crash, a message whose
    /// fate is unknown is then sent again, without asking a person. Default: false, since the
    /// protocol does not guarantee deduplication.
    pub fn deduplicates(mut self) -> Self {
        self.deduplicates = true;
        self
    }

    /// Sets the timeout of a call; the run's deadline applies too. Default: 1 hour.
    pub fn timeout(mut self, longest: Duration) -> Self {
        self.time = longest;
        self
    }

    /// Sets the timeout of one request, and the idle time of a stream after which the client polls
    /// the task instead. Default: 60 seconds.
    pub fn patience(mut self, longest: Duration) -> Self {
        self.patience = longest;
        self
    }

    /// Sets the polling interval of a task without a stream. Default: 2 seconds.
    pub fn poll_every(mut self, time: Duration) -> Self {
        self.poll = time;
        self
    }

    /// Sets the maximum size in bytes of a response, and of all events of one stream. Default: 4
    /// MiB.
    pub fn max_bytes(mut self, most: usize) -> Self {
        self.bytes = most;
        self
    }

    /// Builds the agent. Sends nothing yet.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](agent_core::ErrorKind::Config) if the URL, a header or an address is
    /// invalid.
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
        let mut reach = AddressPolicy::public(Arc::new(System));
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
