//! View of a store as the sessions of a single tenant.

use std::sync::Arc;

use agent::{
    Result, SessionId, async_trait,
    journal::{
        Entry, Journal, JournalWriter, RunQuery, RunSummary, SessionInfo, SessionQuery, SessionSummary, SharedIndex,
    },
};

/// View of a store that no server wrote, as the sessions of the tenant `local`, which callers
/// without a key belong to.
///
/// A server separates the sessions of tenants by their names. In a store of the `agent` program, or
/// of an application of your own, session names have no tenant, so no tenant would find them. This
/// view exposes all of them.
///
/// ```
/// use std::sync::Arc;
/// use agent::journal::{Journal, MemoryJournal};
/// use agent_server::OneTenant;
///
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// let store: Arc<dyn Journal> = Arc::new(MemoryJournal::default());
/// let seen = OneTenant::new(store);
/// assert!(seen.sessions().await?.is_empty());
/// # Ok::<(), agent::Error>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct OneTenant {
    store: Arc<dyn Journal>,
}

/// Tenant of callers without a key.
const TENANT: &str = "local";

impl OneTenant {
    /// Creates a view of this store.
    pub fn new(store: Arc<dyn Journal>) -> Self {
        Self { store }
    }

    /// Returns the store's name of a session of the tenant.
    fn inner(name: &str) -> String {
        let of_tenant = SessionId::parse(name).filter(|id| id.user() == TENANT);
        of_tenant.map_or_else(|| name.to_owned(), |id| id.session().to_owned())
    }

    /// Returns the beginning of names in the store; none for those of other tenants.
    fn inner_prefix(prefix: &str) -> Option<String> {
        let of_tenant = Self::outer("");
        match prefix.strip_prefix(&of_tenant) {
            Some(rest) => Some(rest.to_owned()),
            None => of_tenant.starts_with(prefix).then(String::new),
        }
    }

    fn outer(name: &str) -> String {
        SessionId::new(TENANT, name).to_string()
    }
}

#[async_trait]
impl Journal for OneTenant {
    async fn open(&self, session: &str, agent: &str) -> Result<Arc<dyn JournalWriter>> {
        self.store.open(&Self::inner(session), agent).await
    }

    async fn read(&self, session: &str, after: u64, limit: usize) -> Result<Vec<Arc<Entry>>> {
        self.store.read(&Self::inner(session), after, limit).await
    }

    async fn sessions(&self) -> Result<Vec<String>> {
        let mut names: Vec<_> = self.store.sessions().await?.iter().map(|name| Self::outer(name)).collect();
        names.sort_unstable();
        Ok(names)
    }

    async fn newest(&self, session: &str) -> Result<Option<Arc<Entry>>> {
        self.store.newest(&Self::inner(session)).await
    }

    async fn info(&self, session: &str) -> Result<Option<SessionInfo>> {
        self.store.info(&Self::inner(session)).await
    }

    async fn anchor(&self, session: &str) -> Result<Option<Arc<Entry>>> {
        self.store.anchor(&Self::inner(session)).await
    }

    async fn whole_index(&self, session: &str) -> Result<SharedIndex> {
        self.store.whole_index(&Self::inner(session)).await
    }

    async fn index(&self, session: &str) -> Result<SharedIndex> {
        self.store.index(&Self::inner(session)).await
    }

    async fn has_run(&self, session: &str, run: &str) -> Result<bool> {
        self.store.has_run(&Self::inner(session), run).await
    }

    async fn recent(&self, query: &SessionQuery) -> Result<Vec<SessionSummary>> {
        let Some(prefix) = Self::inner_prefix(&query.prefix) else { return Ok(Vec::new()) };
        let mut query = query.clone().prefix(prefix);
        query.before = query.before.map(|(active, session)| (active, Self::inner(&session)));
        let mut found = self.store.recent(&query).await?;
        found.iter_mut().for_each(|one| one.session = Self::outer(&one.session));
        Ok(found)
    }

    async fn runs(&self, query: &RunQuery) -> Result<Vec<RunSummary>> {
        let Some(prefix) = Self::inner_prefix(&query.prefix) else { return Ok(Vec::new()) };
        let mut query = query.clone().prefix(prefix);
        query.session = query.session.map(|session| Self::inner(&session));
        query.before = query.before.map(|(started, session, run)| (started, Self::inner(&session), run));
        let mut found = self.store.runs(&query).await?;
        found.iter_mut().for_each(|one| one.session = Self::outer(&one.session));
        Ok(found)
    }

    async fn news(&self, session: &str, after: u64) -> Result<()> {
        self.store.news(&Self::inner(session), after).await
    }

    async fn delete(&self, session: &str) -> Result<bool> {
        self.store.delete(&Self::inner(session)).await
    }
}

impl std::fmt::Debug for OneTenant {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OneTenant").finish_non_exhaustive()
    }
}
