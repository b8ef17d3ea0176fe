//! The issuer's public keys, which are kept.

use std::{collections::HashMap, time::Duration};

use agent::Result;
use jsonwebtoken::jwk::Jwk;
use tokio::{sync::Mutex, time::Instant};

use super::document::Documents;

/// Between two times that the issuer is asked: tokens with made-up keys do not make this server ask it again and again.
const PAUSE: Duration = Duration::from_secs(30);
/// After which the keys are read again, so that one that the issuer took back is not believed for ever.
const OLD: Duration = Duration::from_secs(3600);

/// The keys by their ids.
#[derive(Debug)]
pub(super) struct Jwks {
    documents: Documents,
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    keys: HashMap<String, Jwk>,
    /// When the issuer was asked the last time.
    asked: Option<Instant>,
}

impl Jwks {
    pub(super) fn new(documents: Documents) -> Self {
        Self { documents, kept: Mutex::default() }
    }

    /// The key of this id. Who comes while the issuer is asked waits for that answer.
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
                // Keys that are known hold on while the issuer cannot be reached.
                Err(error) if kept.keys.contains_key(id) => {
                    tracing::warn!(%error, "the keys of the issuer of tokens were not read again");
                }
                Err(error) => return Err(error),
            }
        }
        Ok(kept.keys.get(id).cloned())
    }
}
