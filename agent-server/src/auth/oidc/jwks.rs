//! Cache of the issuer's public keys.

use std::{
    collections::HashMap,
    sync::{PoisonError, RwLock, RwLockReadGuard},
    time::Duration,
};

use agent::Result;
use jsonwebtoken::jwk::Jwk;
use tokio::{sync::Mutex, time::Instant};

use super::document::Documents;

/// Minimum interval between two fetches, which protects the issuer from tokens with forged key ids.
const PAUSE: Duration = Duration::from_secs(30);
/// Maximum age of the keys, so that revoked keys are dropped.
const OLD: Duration = Duration::from_secs(3600);

/// Keys by id.
#[derive(Debug)]
pub(super) struct Jwks {
    documents: Documents,
    cached: RwLock<Cached>,
    /// Time of the last fetch, held while one is in progress.
    fetched: Mutex<Option<Instant>>,
}

#[derive(Debug, Default)]
struct Cached {
    keys: HashMap<String, Jwk>,
    /// Time of the last successful fetch.
    at: Option<Instant>,
}

impl Jwks {
    pub(super) fn new(documents: Documents) -> Self {
        Self { documents, cached: RwLock::default(), fetched: Mutex::default() }
    }

    /// Returns the key of this id; none if the issuer has no such key, as far as is known: fetches
    /// are at least a pause apart. A caller with a cached key never waits for the fetch of another
    /// caller.
    ///
    /// # Errors
    /// If no key was ever fetched and the issuer cannot be reached.
    pub(super) async fn key(&self, id: &str) -> Result<Option<Jwk>> {
        let (known, is_old) = self.known(id);
        if known.is_some() {
            let Some(mut fetched) = self.fetched.try_lock().ok().filter(|_| is_old) else { return Ok(known) };
            self.fetch(&mut fetched).await?;
            return Ok(self.known(id).0); // none if the issuer revoked it
        }
        let mut fetched = self.fetched.lock().await;
        if self.known(id).0.is_none() {
            self.fetch(&mut fetched).await?;
        }
        Ok(self.known(id).0)
    }

    /// Fetches the keys, unless that was tried a moment ago. Cached keys stay valid while the issuer
    /// cannot be reached.
    async fn fetch(&self, fetched: &mut Option<Instant>) -> Result<()> {
        if fetched.is_some_and(|at| at.elapsed() <= PAUSE) {
            return Ok(());
        }
        *fetched = Some(Instant::now());
        let mut cached = Cached { keys: HashMap::new(), at: *fetched };
        match self.documents.keys().await {
            Ok(keys) => cached.keys.extend(keys.into_iter().filter_map(|key| Some((key.common.key_id.clone()?, key)))),
            Err(error) if self.cached().at.is_some() => {
                tracing::warn!(%error, "the keys of the token issuer could not be fetched");
                return Ok(());
            }
            Err(error) => return Err(error),
        }
        *self.cached.write().unwrap_or_else(PoisonError::into_inner) = cached;
        Ok(())
    }

    /// Returns a cached key, and whether the cache is old.
    fn known(&self, id: &str) -> (Option<Jwk>, bool) {
        let cached = self.cached();
        (cached.keys.get(id).cloned(), cached.at.is_none_or(|at| at.elapsed() > OLD))
    }

    fn cached(&self) -> RwLockReadGuard<'_, Cached> {
        self.cached.read().unwrap_or_else(PoisonError::into_inner)
    }
}
