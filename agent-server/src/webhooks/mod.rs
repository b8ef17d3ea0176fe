//! Webhook settings, signatures and encryption.

mod hook;
mod secret;
mod version;

use std::{fmt, time::Duration};

use agent::{
    Result,
    model::Backoff,
    tools::outbound::{Outbound, OutboundBuilder},
};

pub use self::hook::{HookEvent, Webhook};
pub(crate) use self::{
    hook::{Authentication, Hook, Push},
    secret::Secrets,
    version::Version,
};

/// Webhook settings of a server.
///
/// Messages are signed according to [Standard Webhooks](https://www.standardwebhooks.com), with a
/// secret per tenant that is derived from the server's secret. A failed delivery is retried with
/// the same message id, also by the next process with the same store. Addresses of this machine and
/// of private networks are rejected unless they are [allowed](Self::allow).
///
/// ```
/// use agent_server::Webhooks;
///
/// let webhooks = Webhooks::new("at least 16 bytes that nobody guesses").url("https://hooks.example/agents");
/// # let _ = webhooks;
/// ```
#[derive(Clone)]
#[must_use]
pub struct Webhooks {
    secret: String,
    urls: Vec<String>,
    outbound: OutboundBuilder,
    backoff: Backoff,
}

impl Webhooks {
    /// Creates settings with this secret of at least 16 bytes. A process with another secret cannot
    /// deliver outstanding messages.
    pub fn new(secret: impl Into<String>) -> Self {
        let backoff = Backoff::new().retries(10).initial_delay(Duration::from_secs(5)).factor(3.0);
        Self {
            secret: secret.into(),
            urls: Vec::new(),
            outbound: Outbound::builder(),
            backoff: backoff.max_delay(Duration::from_secs(3600)).jitter(0.2),
        }
    }

    /// Adds a URL that receives the events of every run.
    pub fn url(mut self, url: impl Into<String>) -> Self {
        self.urls.push(url.into());
        self
    }

    /// Allows an address outside the public internet: `10.1.2.3:8080`, `10.1.2.3` or `10.1.0.0/16`.
    pub fn allow(mut self, address: impl Into<String>) -> Self {
        self.outbound = self.outbound.allow(address);
        self
    }

    /// Sets the retries of failed deliveries. Default: ten retries, with delays from 5 seconds up
    /// to one hour.
    pub fn backoff(mut self, backoff: Backoff) -> Self {
        self.backoff = backoff;
        self
    }

    /// Builds the webhook client.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](agent::ErrorKind::Config) if the secret is too short or a URL is
    /// invalid.
    pub(crate) fn build(self) -> Result<Teller> {
        let hooks =
            self.urls.into_iter().enumerate().map(|(n, url)| Hook::of(format!("server-{n}"), Webhook::new(url)));
        Ok(Teller {
            secrets: Secrets::new(&self.secret)?,
            hooks: hooks.collect(),
            outbound: self.outbound.build()?,
            backoff: self.backoff,
        })
    }
}

impl fmt::Debug for Webhooks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Webhooks")
            .field("urls", &self.urls.len())
            .field("outbound", &self.outbound)
            .finish_non_exhaustive()
    }
}

/// Webhook client.
#[derive(Debug)]
pub(crate) struct Teller {
    pub(crate) secrets: Secrets,
    /// Webhooks of every run.
    pub(crate) hooks: Vec<Hook>,
    pub(crate) outbound: Outbound,
    pub(crate) backoff: Backoff,
}
