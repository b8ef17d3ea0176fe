//! What is told of runs to programs elsewhere, and how it is kept safe: the settings, the signature, the seal.

mod hook;
mod secret;

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
};

/// How a server tells programs elsewhere what becomes of runs.
///
/// What is told is signed as [Standard Webhooks](https://www.standardwebhooks.com) say, with a secret of each tenant that follows from
/// the server's own. A message that is not taken is sent again, with the same id, also by the next process that has the store. Addresses
/// of this machine and of private networks are refused unless they are [allowed](Self::allow).
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
    /// With this secret, at least 16 bytes that nobody guesses. Whoever has another one cannot go on with what was not told yet.
    pub fn new(secret: impl Into<String>) -> Self {
        let backoff = Backoff::new().retries(10).initial_delay(Duration::from_secs(5)).factor(3.0);
        Self {
            secret: secret.into(),
            urls: Vec::new(),
            outbound: Outbound::builder(),
            backoff: backoff.max_delay(Duration::from_secs(3600)).jitter(0.2),
        }
    }

    /// Tells this address of every run, whoever starts it.
    pub fn url(mut self, url: impl Into<String>) -> Self {
        self.urls.push(url.into());
        self
    }

    /// Lets an address be reached that is not of the public internet: `10.1.2.3:8080`, `10.1.2.3` or `10.1.0.0/16`.
    pub fn allow(mut self, address: impl Into<String>) -> Self {
        self.outbound = self.outbound.allow(address);
        self
    }

    /// Sets how often a message is sent again that was not taken, and after which time. Default: ten times, after 5 seconds at first and an
    /// hour at last.
    pub fn backoff(mut self, backoff: Backoff) -> Self {
        self.backoff = backoff;
        self
    }

    /// What it takes to tell.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](agent::ErrorKind::Config) for a secret that is too short, or an address that is none.
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

/// What it takes to tell programs elsewhere of runs.
#[derive(Debug)]
pub(crate) struct Teller {
    pub(crate) secrets: Secrets,
    /// Those of every run.
    pub(crate) hooks: Vec<Hook>,
    pub(crate) outbound: Outbound,
    pub(crate) backoff: Backoff,
}
