//! The sessions of clients over HTTP, and when they are over.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use http::{HeaderMap, HeaderValue};
use rmcp::transport::streamable_http_server::{SessionId, SessionManager, session::local::LocalSessionManager};
use tokio::time::Instant;

/// The header that names a session.
const HEADER: &str = "mcp-session-id";

/// How long a session lives to which nobody listens and for which nothing is asked.
const IDLE: Duration = Duration::from_secs(300);

/// How often sessions are looked at.
const ROUND: Duration = Duration::from_secs(30);

/// The sessions of clients. One is over when nobody listens to it any more: a call of an hour is not silence, if its client waits.
#[derive(Debug)]
pub(super) struct Sessions {
    pub(super) manager: Arc<LocalSessionManager>,
    seen: Mutex<HashMap<SessionId, Seen>>,
    /// The most at once. Another one is refused.
    most: usize,
}

/// What is known of a session.
#[derive(Debug)]
struct Seen {
    /// How many answers are on their way.
    open: usize,
    last: Instant,
}

impl Seen {
    fn now() -> Self {
        Self { open: 0, last: Instant::now() }
    }
}

/// An answer on its way to a client.
#[derive(Debug)]
pub(super) struct Answering(Arc<Sessions>, SessionId);

impl Sessions {
    pub(super) fn new(most: usize) -> Arc<Self> {
        let mut manager = LocalSessionManager::default();
        // It would count the time since the last message, also of a call that is under way.
        manager.session_config.keep_alive = None;
        Arc::new(Self { manager: Arc::new(manager), seen: Mutex::default(), most })
    }

    /// True if there are as many as there may be.
    pub(super) async fn are_full(&self) -> bool {
        self.manager.sessions.read().await.len() >= self.most
    }

    /// Notes that the session is spoken to, for as long as what is given back lives. None if there is no such session.
    pub(super) async fn answering(self: &Arc<Self>, id: SessionId) -> Option<Answering> {
        if !self.manager.sessions.read().await.contains_key(&id) {
            return None;
        }
        self.seen().entry(id.clone()).or_insert_with(Seen::now).open += 1;
        Some(Answering(self.clone(), id))
    }

    /// Ends sessions that are over, again and again.
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

/// The session that the headers name.
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
