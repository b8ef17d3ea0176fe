//! Erasure of all data of a session, a user or a tenant.

use agent_core::{Error, ErrorKind, Journal, Result, budget::Ledger, journal::SessionQuery};
use agent_dispatch::{QueueAdmin, Wanted};

/// Owner of the data to erase. Sessions have names of the form `tenant/session`, as a server gives
/// them, and users names of the form `tenant/user`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Owner {
    /// A session, by its name in the store.
    Session(String),
    /// All sessions with a run on behalf of a user, by the user's name in the store.
    User(String),
    /// All sessions, jobs, schedules and accounts of a tenant.
    Tenant(String),
}

/// Erasure of all data of an [`Owner`].
///
/// Erases the sessions with their content, including large texts that no other session shares; their
/// jobs, whatever their status; and for a tenant its schedules and the accounts of its budgets.
/// Uploaded files, memories and vectors are in stores of their own.
///
/// ```
/// use agent_core::MemoryJournal;
/// use agent_store::{Erasure, Owner};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), agent_core::Error> {
/// let journal = MemoryJournal::default();
/// let erased = Erasure::of(Owner::Tenant("teapots".into())).apply(&journal).await?;
/// assert!(erased.is_empty());
/// # Ok(())
/// # }
/// ```
#[must_use]
pub struct Erasure<'a> {
    owner: Owner,
    queue: Option<&'a dyn QueueAdmin>,
    ledger: Option<&'a dyn Ledger>,
}

/// Number of sessions and jobs that are read at once.
const PAGE: usize = 500;

impl<'a> Erasure<'a> {
    /// Prepares the erasure of all data of this owner.
    pub fn of(owner: Owner) -> Self {
        Self { owner, queue: None, ledger: None }
    }

    /// Erases from this queue too.
    pub fn queue(mut self, queue: &'a dyn QueueAdmin) -> Self {
        self.queue = Some(queue);
        self
    }

    /// Erases from this ledger too.
    pub fn ledger(mut self, ledger: &'a dyn Ledger) -> Self {
        self.ledger = Some(ledger);
        self
    }

    /// Erases the data and returns the names of the erased sessions, sorted. Can be repeated.
    ///
    /// # Errors
    /// [`ErrorKind::Busy`] if a session or a job is in use, once everything else is erased; the
    /// errors of the stores.
    pub async fn apply(&self, journal: &dyn Journal) -> Result<Vec<String>> {
        let (mut erased, mut busy) = (Vec::new(), Vec::new());
        let sessions = self.sessions(journal).await?;
        // Jobs first: none of them begins again once its session is gone.
        for session in &sessions {
            self.erase_jobs(Wanted::default().session(session.as_str()), &mut busy).await?;
        }
        if let Owner::Tenant(tenant) = &self.owner {
            self.erase_jobs(Wanted::default().tenant(tenant.as_str()), &mut busy).await?;
            self.erase_tenant(tenant).await?;
        }
        for session in sessions {
            match journal.delete(&session).await {
                Ok(true) => erased.push(session),
                Ok(false) => {}
                Err(e) if e.kind() == ErrorKind::Busy => busy.push(format!("session '{session}'")),
                Err(e) => return Err(e),
            }
        }
        if let Some(queue) = self.queue {
            queue.purge(std::time::Duration::MAX).await?; // deletes tenants without jobs
        }
        erased.sort();
        match &busy[..] {
            [] => Ok(erased),
            busy => {
                let message = format!("{} in use: cancel its run, and erase again", busy.join(", "));
                Err(Error::new(ErrorKind::Busy, message))
            }
        }
    }

    /// Returns the names of the owner's sessions.
    async fn sessions(&self, journal: &dyn Journal) -> Result<Vec<String>> {
        let mut query = match &self.owner {
            Owner::Session(session) => return Ok(vec![session.clone()]),
            Owner::User(user) => SessionQuery::default().user(user.as_str()),
            Owner::Tenant(tenant) => SessionQuery::default().prefix(format!("{}/", escaped(tenant))),
        };
        query = query.limit(PAGE);
        let mut sessions = Vec::new();
        loop {
            let page = journal.recent(&query).await?;
            let Some(last) = page.last() else { return Ok(sessions) };
            query = query.before(last.info.active, last.session.as_str());
            sessions.extend(page.into_iter().map(|one| one.session));
        }
    }

    async fn erase_jobs(&self, wanted: Wanted, busy: &mut Vec<String>) -> Result<()> {
        let Some(queue) = self.queue else { return Ok(()) };
        for job in queue.jobs(&wanted.most(usize::MAX)).await? {
            if !queue.remove(&job.job.at).await? {
                busy.push(format!("run '{}'", job.job.at.run));
            }
        }
        Ok(())
    }

    /// Erases the schedules and accounts of a tenant.
    async fn erase_tenant(&self, tenant: &str) -> Result<()> {
        if let Some(queue) = self.queue {
            for (schedule, _) in queue.schedules().await? {
                if schedule.job.tenant == tenant {
                    queue.remove_schedule(&schedule.name).await?;
                }
            }
        }
        if let Some(ledger) = self.ledger {
            for prefix in [format!("tenant/{tenant}/"), format!("key/{}/", escaped(tenant))] {
                ledger.forget(&prefix, &format!("{prefix}\u{10ffff}"));
            }
        }
        Ok(())
    }
}

/// Escapes a tenant as in the names of sessions.
fn escaped(tenant: &str) -> String {
    tenant.replace('%', "%25").replace('/', "%2F")
}

impl std::fmt::Debug for Erasure<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Erasure").field("owner", &self.owner).finish_non_exhaustive()
    }
}
