//! Cache of credentials until shortly before they expire.

use std::{
    sync::{Mutex, PoisonError},
    time::{Duration, SystemTime},
};

use agent_core::Result;
use aws_credential_types::Credentials as Keys;
use tokio::time::Instant;

/// Time before expiry at which credentials are refreshed. AWS's servers offer the next ones by
/// then.
const AHEAD: Duration = Duration::from_secs(300);

/// Pause before the next fetch after one that found no credentials, or none that were newer.
const PAUSE: Duration = Duration::from_secs(60);

#[derive(Debug, Default)]
pub(super) struct Kept {
    held: Mutex<Option<Held>>,
    /// Held by the task that fetches; the others wait, or use credentials that are still valid.
    fetching: tokio::sync::Mutex<()>,
}

#[derive(Clone, Debug)]
struct Held {
    keys: Option<Keys>,
    since: Instant,
    /// Refresh time and expiry; `None` if the credentials do not expire.
    stale: Option<Instant>,
    dead: Option<Instant>,
}

impl Held {
    fn new(keys: Option<Keys>) -> Self {
        let now = Instant::now();
        let Some(keys) = keys else {
            return Self { keys: None, since: now, stale: Some(now + PAUSE), dead: Some(now + PAUSE) };
        };
        let left = keys.expiry().map(|expiry| expiry.duration_since(SystemTime::now()).unwrap_or_default());
        // Short-lived credentials are refreshed after half of their lifetime.
        let fresh = left.map(|left| left.saturating_sub(AHEAD).max(left / 2));
        let after = |wait: Duration| now.checked_add(wait);
        Self { keys: Some(keys), since: now, stale: fresh.and_then(after), dead: left.and_then(after) }
    }

    fn is_fresh(&self) -> bool {
        self.stale.is_none_or(|stale| Instant::now() < stale)
    }

    fn is_good(&self) -> bool {
        self.dead.is_none_or(|dead| Instant::now() < dead)
    }
}

impl Kept {
    /// Returns the credentials, from `fetch` if the cached ones are about to expire. Of several
    /// concurrent callers one fetches.
    pub(super) async fn get<F: Future<Output = Result<Option<Keys>>>>(
        &self,
        fetch: impl Fn() -> F,
    ) -> Result<Option<Keys>> {
        let held = self.held();
        if let Some(held) = held.as_ref().filter(|held| held.is_fresh()) {
            return Ok(held.keys.clone());
        }
        let Some(old) = held.filter(Held::is_good) else {
            let _alone = self.fetching.lock().await;
            return match self.held().filter(Held::is_fresh) {
                Some(held) => Ok(held.keys),
                None => Ok(self.keep(Held::new(fetch().await?)).keys),
            };
        };
        let Ok(_alone) = self.fetching.try_lock() else { return Ok(old.keys) };
        match fetch().await {
            Ok(Some(keys)) => Ok(self.keep(Held::new(Some(keys))).keys),
            // The cached credentials remain valid for a while.
            _ => {
                let again = Some(Instant::now() + PAUSE);
                Ok(self.keep(Held { stale: again, ..old }).keys)
            }
        }
    }

    /// Refreshes credentials that the provider rejected, unless they are new; returns true if there
    /// are different ones now.
    pub(super) async fn renewed<F: Future<Output = Result<Option<Keys>>>>(&self, fetch: impl Fn() -> F) -> bool {
        let Some(old) = self.held().filter(|held| held.since.elapsed() >= PAUSE) else { return false };
        let _alone = self.fetching.lock().await;
        let now = match self.held() {
            Some(held) if held.since > old.since => held,
            _ => match fetch().await {
                Ok(keys) => self.keep(Held::new(keys)),
                Err(_) => return false,
            },
        };
        let proof = |held: &Held| {
            let keys = held.keys.as_ref()?;
            Some((keys.access_key_id().to_owned(), keys.session_token().map(str::to_owned)))
        };
        now.keys.is_some() && proof(&now) != proof(&old)
    }

    fn held(&self) -> Option<Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn keep(&self, held: Held) -> Held {
        *self.held.lock().unwrap_or_else(PoisonError::into_inner) = Some(held.clone());
        held
    }
}
