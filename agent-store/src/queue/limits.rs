//! How much a queue takes, and how much of it is out at once.

use std::collections::BTreeMap;

use agent_core::{Error, ErrorKind, Result, Retry};

/// How much a queue takes, and how many of its jobs run at once, on all machines together.
///
/// Limits are not kept with the queue: who sends brings those for sending, who works those for working, so give all of them the same.
///
/// ```
/// use agent_store::QueueLimits;
///
/// let limits = QueueLimits::default().queued(10_000).queued_per_tenant(500).running_per_tenant(8).running_of_agent("researcher", 2);
/// # let _ = limits;
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[must_use]
pub struct QueueLimits {
    pub(crate) queued: Option<u64>,
    pub(crate) queued_per_tenant: Option<u64>,
    pub(crate) per_tenant: Option<u64>,
    pub(crate) tenants: BTreeMap<String, u64>,
    pub(crate) agents: BTreeMap<String, u64>,
}

impl QueueLimits {
    /// Sets how many jobs may be queued; one more is refused with [`ErrorKind::RateLimited`]. Senders who come at the same moment may pass it by a
    /// few. Default: any number.
    pub fn queued(mut self, most: u64) -> Self {
        self.queued = Some(most);
        self
    }

    /// As [`queued`](Self::queued), of each tenant. Default: any number.
    pub fn queued_per_tenant(mut self, most: u64) -> Self {
        self.queued_per_tenant = Some(most);
        self
    }

    /// Sets how many jobs of each tenant run at once. Default: any number.
    pub fn running_per_tenant(mut self, most: u64) -> Self {
        self.per_tenant = Some(most);
        self
    }

    /// Sets how many jobs of one tenant run at once, whatever holds for the others.
    pub fn running_of_tenant(mut self, tenant: impl Into<String>, most: u64) -> Self {
        self.tenants.insert(tenant.into(), most);
        self
    }

    /// Sets how many jobs of an agent run at once. Default: any number.
    pub fn running_of_agent(mut self, agent: impl Into<String>, most: u64) -> Self {
        self.agents.insert(agent.into(), most);
        self
    }

    pub(crate) fn of_tenant(&self, tenant: &str) -> u64 {
        self.tenants.get(tenant).copied().or(self.per_tenant).unwrap_or(u64::MAX)
    }

    pub(crate) fn of_agent(&self, agent: &str) -> u64 {
        self.agents.get(agent).copied().unwrap_or(u64::MAX)
    }

    /// Refuses one more job if so many are queued, in all and of its tenant.
    pub(crate) fn admit(&self, queued: u64, of_tenant: u64) -> Result<()> {
        let full = |most: Option<u64>, now: u64| most.filter(|most| now >= *most);
        let message = match (full(self.queued, queued), full(self.queued_per_tenant, of_tenant)) {
            (Some(most), _) => {
                format!("{most} runs are queued, and no more are taken: try again later, or add workers")
            }
            (None, Some(most)) => {
                format!("{most} runs of the tenant are queued, and no more are taken: try again later")
            }
            (None, None) => return Ok(()),
        };
        Err(Error::new(ErrorKind::RateLimited, message).with_retry(Retry::Temporary(None)))
    }
}
