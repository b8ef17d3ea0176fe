//! Cache of session indexes.

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use super::{Journal, SessionIndex};
use crate::error::Result;

/// A session's [index](SessionIndex), shared with other readers. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct SharedIndex(Arc<Mutex<SessionIndex>>);

impl SharedIndex {
    /// Calls `look` with the index, under a lock: `look` must not block.
    pub fn look<R>(&self, look: impl FnOnce(&SessionIndex) -> R) -> R {
        look(&self.lock())
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, SessionIndex> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl From<SessionIndex> for SharedIndex {
    fn from(index: SessionIndex) -> Self {
        Self(Arc::new(Mutex::new(index)))
    }
}

/// Cache of the most recently used session indexes, for a store: an access reads only the
/// entries written since the previous one, regardless of the session's length.
///
/// A store holds one, and uses it in [`Journal::index`] and [`Journal::whole_index`]:
///
/// ```
/// use agent_core::{
///     Journal,
///     MemoryJournal,
///     Result,
///     async_trait,
///     journal::{Entry, IndexCache, JournalWriter, SharedIndex},
/// };
/// use std::sync::Arc;
///
/// struct MyStore {
///     entries: MemoryJournal,
///     indexes: IndexCache,
/// }
///
/// #[async_trait]
/// impl Journal for MyStore {
///     async fn index(&self, session: &str) -> Result<SharedIndex> {
///         self.indexes.index(self, session).await
///     }
///
///     async fn whole_index(&self, session: &str) -> Result<SharedIndex> {
///         self.indexes.whole_index(self, session).await
///     }
/// #   async fn open(&self, session: &str, agent: &str) -> Result<Arc<dyn JournalWriter>> {
/// #       self.entries.open(session, agent).await
/// #   }
/// #   async fn read(&self, session: &str, after: u64, limit: usize) -> Result<Vec<Arc<Entry>>> {
/// #       self.entries.read(session, after, limit).await
/// #   }
/// #   async fn sessions(&self) -> Result<Vec<String>> {
/// #       self.entries.sessions().await
/// #   }
/// #   async fn delete(&self, session: &str) -> Result<bool> {
/// #       self.entries.delete(session).await
/// #   }
/// }
/// ```
///
/// The cache detects a session that was deleted and recreated: the newest known entry differs.
pub struct IndexCache {
    /// Maximum number of cached sessions.
    most: usize,
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    sessions: HashMap<Arc<str>, Session>,
    looks: u64,
}

struct Session {
    /// Held while a task reads new entries.
    index: Arc<tokio::sync::Mutex<SharedIndex>>,
    /// Number of the session's last access, for eviction.
    look: u64,
}

impl IndexCache {
    /// Creates a cache for the indexes of at most `most` sessions. The default is 128.
    pub fn new(most: usize) -> Self {
        Self { most, kept: Mutex::default() }
    }

    /// Returns the up-to-date index of a session, possibly without runs older than its newest
    /// [anchor](Journal::anchor).
    ///
    /// # Errors
    /// Those of [`Journal::read`] and [`Journal::anchor`].
    pub async fn index(&self, journal: &(impl Journal + ?Sized), session: &str) -> Result<SharedIndex> {
        let kept = self.session(session);
        let mut index = kept.lock().await;
        if index.look(SessionIndex::seq) == 0 {
            *index = SessionIndex::anchored(journal, session, u64::MAX).await?.into();
        }
        refresh(&mut index, journal, session).await?;
        if !index.look(SessionIndex::is_sound) {
            *index = SessionIndex::read(journal, session).await?.into();
        }
        Ok(index.clone())
    }

    /// Returns the up-to-date index of a session, including all runs.
    ///
    /// # Errors
    /// Those of [`Journal::read`].
    pub async fn whole_index(&self, journal: &(impl Journal + ?Sized), session: &str) -> Result<SharedIndex> {
        let kept = self.session(session);
        let mut index = kept.lock().await;
        if !index.look(SessionIndex::is_whole) {
            *index = SharedIndex::default();
        }
        refresh(&mut index, journal, session).await?;
        Ok(index.clone())
    }

    fn session(&self, session: &str) -> Arc<tokio::sync::Mutex<SharedIndex>> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.looks += 1;
        let look = kept.looks;
        if let Some(known) = kept.sessions.get_mut(session) {
            known.look = look;
            return known.index.clone();
        }
        if kept.sessions.len() >= self.most
            && let Some(oldest) = kept.sessions.iter().min_by_key(|(_, known)| known.look).map(|(name, _)| name.clone())
        {
            kept.sessions.remove(&oldest);
        }
        let index = Arc::<tokio::sync::Mutex<SharedIndex>>::default();
        kept.sessions.insert(session.into(), Session { index: index.clone(), look });
        index
    }
}

/// Applies the entries written since. An index of a deleted session of the same name is discarded.
async fn refresh(index: &mut SharedIndex, journal: &(impl Journal + ?Sized), session: &str) -> Result<()> {
    let newest = index.look(SessionIndex::seq);
    // The newest known entry is read again, together with those after it.
    let mut page = journal.read(session, newest.saturating_sub(1), PAGE).await?;
    if newest > 0 && !page.first().is_some_and(|first| index.look(|index| index.is_newest(first))) {
        *index = SharedIndex::default();
        page = journal.read(session, 0, PAGE).await?;
    } else if newest > 0 {
        page.remove(0);
    }
    let mut is_whole = page.len() < PAGE - 1;
    page.iter().for_each(|entry| index.lock().apply(entry));
    while !is_whole {
        let page = journal.read(session, index.look(SessionIndex::seq), PAGE).await?;
        page.iter().for_each(|entry| index.lock().apply(entry));
        is_whole = page.len() < PAGE;
    }
    Ok(())
}

/// Number of entries per read from the journal.
const PAGE: usize = 500;

impl Default for IndexCache {
    fn default() -> Self {
        Self::new(128)
    }
}

impl fmt::Debug for IndexCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IndexCache").field("most", &self.most).finish_non_exhaustive()
    }
}
