//! The end of a program's standard error.

#[cfg(feature = "mcp")]
use std::time::Duration;
use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, PoisonError},
};

use tokio_util::sync::{CancellationToken, DropGuard};

/// Number of lines that are kept.
const LINES: usize = 3;

/// Maximum length of a kept line, in characters.
const LONGEST: usize = 200;

/// Time to wait for the end of standard error.
#[cfg(feature = "mcp")]
const PATIENCE: Duration = Duration::from_secs(1);

/// The last lines that a program wrote to its standard error.
#[derive(Clone, Debug, Default)]
pub(crate) struct LastWords {
    lines: Arc<Mutex<VecDeque<String>>>,
    ended: CancellationToken,
}

impl LastWords {
    /// Adds a line; blank ones are skipped.
    pub(super) fn add(&self, line: &str) {
        if line.is_empty() {
            return;
        }
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.len() == LINES {
            lines.pop_front();
        }
        lines.push_back(line.chars().take(LONGEST).collect());
    }

    /// Standard error ends when the guard is dropped.
    pub(super) fn until_dropped(&self) -> DropGuard {
        self.ended.clone().drop_guard()
    }

    /// Returns the last lines of a program that ends now; `None` if it goes on or wrote nothing.
    #[cfg(feature = "mcp")]
    pub(crate) async fn read(&self) -> Option<String> {
        tokio::time::timeout(PATIENCE, self.ended.cancelled()).await.ok()?;
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        let lines: Vec<_> = lines.iter().map(String::as_str).collect();
        (!lines.is_empty()).then(|| lines.join(" | "))
    }
}
