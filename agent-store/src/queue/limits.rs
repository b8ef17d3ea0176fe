//! Limits on queued and running jobs.

use std::collections::BTreeMap;

use agent_core::{Error, ErrorKind, Result, Retry};

/// Limits on the jobs that a queue accepts and on the jobs that run at once, across all machines.
///
/// The queue does not store its limits: senders enforce the limits on queued jobs, workers those on
/// running jobs, so pass the same limits to all of them.
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
    /// Sets the maximum number of queued jobs; further jobs are rejected with
    /// [`ErrorKind::RateLimited`]. Concurrent senders may exceed it slightly. Default: unlimited.
    pub fn queued(mut self, most: u64) -> Self {
        self.queued = Some(most);
        self
    }

    /// Sets the maximum number of queued jobs per tenant; see [`queued`](Self::queued). Default:
    /// unlimited.
    pub fn queued_per_tenant(mut self, most: u64) -> Self {
        self.queued_per_tenant = Some(most);
        self
    }

    /// Sets the maximum number of running jobs per tenant. Default: unlimited.
    pub fn running_per_tenant(mut self, most: u64) -> Self {
        self.per_tenant = Some(most);
        self
    }

    /// Sets the maximum number of running jobs of one tenant, which overrides
    /// [`running_per_tenant`](Self::running_per_tenant).
    pub fn running_of_tenant(mut self, tenant: impl Into<String>, most: u64) -> Self {
        self.tenants.insert(tenant.into(), most);
        self
    }

    /// Sets the maximum number of running jobs of an agent. Default: unlimited.
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

    /// Rejects one more job if the limits on queued jobs, in all or of its tenant, are reached.
    pub(crate) fn admit(&self, queued: u64, of_tenant: u64) -> Result<()> {
        let full = |most: Option<u64>, now: u64| most.filter(|most| now >= *most);
        let message = match (full(self.queued, queued), full(self.queued_per_tenant, of_tenant)) {
            (Some(most), _) => {
                format!("the queue is full with {most} runs: retry later, or add workers")
            }
            (None, Some(most)) => {
                format!("the queue is full with {most} runs of the tenant: retry later")
            }
            (None, None) => return Ok(()),
        };
        Err(Error::new(ErrorKind::RateLimited, message).with_retry(Retry::Temporary(None)))
    }
}
