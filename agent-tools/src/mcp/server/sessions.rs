//! HTTP sessions of clients, and their expiry.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use http::{HeaderMap, HeaderValue};
use rmcp::transport::streamable_http_server::{SessionId, SessionManager, session::local::LocalSessionManager};
use tokio::time::Instant;

/// Header that carries the session id.
const HEADER: &str = "mcp-session-id";

/// Idle time after which a session without open responses expires.
const IDLE: Duration = Duration::from_secs(300);

/// Interval of the expiry check.
const ROUND: Duration = Duration::from_secs(30);

/// Sessions of clients. A session expires only without open responses: a call of an hour keeps its
/// session alive while its client waits.
#[derive(Debug)]
pub(super) struct Sessions {
    pub(super) manager: Arc<LocalSessionManager>,
    seen: Mutex<HashMap<SessionId, Seen>>,
    /// Maximum of concurrent sessions; another one is refused.
    most: usize,
}

/// Activity of a session.
#[derive(Debug)]
struct Seen {
    /// Number of open responses.
    open: usize,
    last: Instant,
}

impl Seen {
    fn now() -> Self {
        Self { open: 0, last: Instant::now() }
    }
}

/// Open response to a client.
#[derive(Debug)]
pub(super) struct Answering(Arc<Sessions>, SessionId);

impl Sessions {
    pub(super) fn new(most: usize) -> Arc<Self> {
        let mut manager = LocalSessionManager::default();
        // This timeout counts from the last message, even during a call.
        manager.session_config.keep_alive = None;
        Arc::new(Self { manager: Arc::new(manager), seen: Mutex::default(), most })
    }

    /// Returns true if the maximum of sessions is reached.
    pub(super) async fn are_full(&self) -> bool {
        self.manager.sessions.read().await.len() >= self.most
    }

    /// Marks the session active while the returned guard lives; `None` if the session is unknown.
    pub(super) async fn answering(self: &Arc<Self>, id: SessionId) -> Option<Answering> {
        if !self.manager.sessions.read().await.contains_key(&id) {
            return None;
        }
        self.seen().entry(id.clone()).or_insert_with(Seen::now).open += 1;
        Some(Answering(self.clone(), id))
    }

    /// Closes expired sessions periodically.
    pub(super) async fn watch(self: Arc<Self>) {
        loop {
            tokio::time::sleep(ROUND).await;
            let known: Vec<SessionId> = self.manager.sessions.read().await.keys().cloned().collect();
            self.seen().retain(|id, _| known.contains(id));
            for id in known {
                let is_over = {
                    let mut seen = self.seen();
                    let seen = seen.entry(id.clone()).or_insert_with(Seen::now);
                    seen.open == 0 && seen.last.elapsed() >= IDLE
                };
                if is_over && let Err(error) = self.manager.close_session(&id).await {
                    tracing::debug!(%error, "a session of an MCP client did not end well");
                }
            }
        }
    }

    fn seen(&self) -> MutexGuard<'_, HashMap<SessionId, Seen>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Answering {
    fn drop(&mut self) {
        if let Some(seen) = self.0.seen().get_mut(&self.1) {
            (seen.open, seen.last) = (seen.open.saturating_sub(1), Instant::now());
        }
    }
}

/// Returns the session id in the headers.
pub(super) fn of(headers: &HeaderMap) -> Option<SessionId> {
    headers.get(HEADER).map(HeaderValue::to_str)?.ok().map(Into::into)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_session_is_over_when_nobody_listens_and_not_while_a_call_takes_an_hour() {
        let sessions = Sessions::new(2);
        tokio::spawn(sessions.clone().watch());
        let (busy, _worker) = sessions.manager.create_session().await.expect("a session");
        let (idle, _worker) = sessions.manager.create_session().await.expect("a session");
        let answering = sessions.answering(busy.clone()).await.expect("known");
        tokio::time::sleep(Duration::from_secs(200)).await;
        assert!(sessions.manager.has_session(&idle).await.expect("told"), "five minutes are not over");
        tokio::time::sleep(Duration::from_secs(3600)).await;
        assert!(sessions.manager.has_session(&busy).await.expect("told"));
        assert!(!sessions.manager.has_session(&idle).await.expect("told"));
        drop(answering);
        tokio::time::sleep(Duration::from_secs(400)).await;
        assert!(!sessions.manager.has_session(&busy).await.expect("told"));
        assert!(sessions.answering(busy).await.is_none());
    }
}
