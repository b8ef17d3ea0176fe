//! Cache of the issuer's public keys.

use std::{collections::HashMap, time::Duration};

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
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    keys: HashMap<String, Jwk>,
    /// Time of the last fetch.
    asked: Option<Instant>,
}

impl Jwks {
    pub(super) fn new(documents: Documents) -> Self {
        Self { documents, kept: Mutex::default() }
    }

    /// Returns the key of this id. Concurrent callers wait for the same fetch.
    pub(super) async fn key(&self, id: &str) -> Result<Option<Jwk>> {
        let mut kept = self.kept.lock().await;
        let age = kept.asked.map(|at| at.elapsed());
        let is_wanted = match kept.keys.contains_key(id) {
            true => age.is_none_or(|age| age > OLD),
            false => age.is_none_or(|age| age > PAUSE),
        };
        if is_wanted {
            kept.asked = Some(Instant::now());
            match self.documents.keys().await {
                Ok(keys) => {
                    kept.keys = keys.into_iter().filter_map(|key| Some((key.common.key_id.clone()?, key))).collect();
                }
                // Cached keys stay valid while the issuer cannot be reached.
                Err(error) if kept.keys.contains_key(id) => {
                    tracing::warn!(%error, "the keys of the token issuer could not be refreshed");
                }
                Err(error) => return Err(error),
            }
        }
        Ok(kept.keys.get(id).cloned())
    }
}
