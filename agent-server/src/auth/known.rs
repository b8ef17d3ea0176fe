//! Keys of a running server, reloaded when their file changes.

use std::{
    fs,
    path::Path,
    sync::{Mutex, PoisonError, RwLock},
    time::{Duration, SystemTime},
};

use tokio::time::Instant;

use super::{AUDIT, Keys};
use crate::{caller::Caller, spending::Allowance};

/// Interval between two checks of the file.
const PAUSE: Duration = Duration::from_secs(1);

/// Current keys.
#[derive(Debug)]
pub(super) struct Known {
    keys: RwLock<Keys>,
    /// Time of the last check, and the state of the file then.
    looked: Mutex<(Instant, Option<State>)>,
}

/// State of a file: modification time and size.
type State = (SystemTime, u64);

impl Known {
    pub(super) fn new(keys: Keys) -> Self {
        let state = keys.file().and_then(state);
        Self { keys: RwLock::new(keys), looked: Mutex::new((Instant::now(), state)) }
    }

    /// Returns the caller with this key.
    pub(super) fn caller(&self, secret: &str) -> Option<Caller> {
        self.look();
        self.keys.read().unwrap_or_else(PoisonError::into_inner).caller(secret)
    }

    /// Returns the spending allowances of all keys.
    pub(super) fn allowances(&self) -> Vec<Allowance> {
        self.look();
        self.keys.read().unwrap_or_else(PoisonError::into_inner).allowances()
    }

    /// Reloads the file if it changed. An unreadable file keeps the current keys.
    fn look(&self) {
        let mut looked = self.looked.lock().unwrap_or_else(PoisonError::into_inner);
        if looked.0.elapsed() < PAUSE {
            return;
        }
        looked.0 = Instant::now();
        let file = self.keys.read().unwrap_or_else(PoisonError::into_inner).file().map(Path::to_owned);
        let Some(file) = file else { return };
        let now = state(&file);
        if now == looked.1 {
            return;
        }
        match Keys::read(&file) {
            Ok(keys) => {
                looked.1 = now;
                *self.keys.write().unwrap_or_else(PoisonError::into_inner) = keys;
                tracing::info!(target: AUDIT, file = %file.display(), "the key file was reloaded");
            }
            Err(error) => tracing::error!(%error, "the key file could not be reloaded: the current keys stay valid"),
        }
    }
}

fn state(file: &Path) -> Option<State> {
    let of = fs::metadata(file).ok()?;
    Some((of.modified().ok()?, of.len()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::Key;

    #[tokio::test(start_paused = true)]
    async fn a_key_whose_row_is_gone_opens_nothing_and_a_broken_file_changes_nothing() {
        let dir = tempfile::tempdir().expect("a directory");
        let file = dir.path().join("keys.json");
        let write = |keys: &[Key]| {
            let keys = Keys::new(keys.to_vec()).expect("keys");
            fs::write(&file, serde_json::to_string(&keys).expect("JSON")).expect("it is written");
        };
        let ((ada, of_ada), (bob, of_bob)) =
            (Key::generate("ada", "t").expect("a key"), Key::generate("bob", "t").expect("a key"));
        write(&[of_ada.clone(), of_bob]);
        let known = Known::new(Keys::read(&file).expect("keys"));
        assert!(known.caller(&ada).is_some() && known.caller(&bob).is_some());
        write(&[of_ada]);
        assert!(known.caller(&bob).is_some(), "it was looked at a moment ago");
        tokio::time::advance(PAUSE).await;
        assert!(known.caller(&ada).is_some() && known.caller(&bob).is_none());
        fs::write(&file, "{").expect("it is written");
        tokio::time::advance(PAUSE).await;
        assert!(known.caller(&ada).is_some());
    }
}
