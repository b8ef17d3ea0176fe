//! State of one client's connection, and its pending notifications.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};

use agent_core::run::new_id;
use rmcp::{
    RoleServer,
    model::ResourceUpdatedNotificationParam,
    service::{Peer, SubscriptionSendError, SubscriptionSink},
};
use tokio::sync::Notify;

use super::{LogLevel, offers::Offers};

/// Maximum of resource subscriptions of one client.
pub(super) const SUBSCRIPTIONS: usize = 1000;

/// State of one client's connection.
#[derive(Debug)]
pub(super) struct Connection {
    /// Session of the client's calls, unique to the client.
    pub(super) session: Arc<str>,
    state: Mutex<State>,
    /// Notified when notifications are pending.
    news: Arc<Notify>,
}

#[derive(Debug, Default)]
struct State {
    level: LogLevel,
    subscribed: BTreeSet<String>,
    untold: News,
}

/// Pending notifications. Repeated changes are coalesced, so that a slow client costs no more than
/// a fast one.
#[derive(Debug, Default)]
struct News {
    tools: bool,
    resources: bool,
    prompts: bool,
    updated: BTreeSet<String>,
}

/// Open connections of a server.
#[derive(Debug, Default)]
pub(super) struct Connections(Mutex<Vec<Weak<Connection>>>);

impl Connections {
    pub(super) fn add(&self, connection: &Arc<Connection>) {
        let mut all = self.lock();
        all.retain(|known| known.strong_count() > 0);
        all.push(Arc::downgrade(connection));
    }

    pub(super) fn each(&self, tell: impl Fn(&Connection)) {
        let open: Vec<_> = self.lock().iter().filter_map(Weak::upgrade).collect();
        open.iter().for_each(|connection| tell(connection));
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Weak<Connection>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for Connection {
    fn default() -> Self {
        Self { session: new_id().into(), state: Mutex::default(), news: Arc::default() }
    }
}

impl Connection {
    pub(super) fn id(&self) -> &str {
        &self.session
    }

    /// Returns the minimum log level that the client requested.
    pub(super) fn level(&self) -> LogLevel {
        self.lock().level
    }

    pub(super) fn set_level(&self, level: LogLevel) {
        self.lock().level = level;
    }

    /// Subscribes the client to a resource; returns false if the client has the maximum of
    /// subscriptions.
    pub(super) fn subscribe(&self, uri: String) -> bool {
        let subscribed = &mut self.lock().subscribed;
        if subscribed.len() >= SUBSCRIPTIONS && !subscribed.contains(&uri) {
            return false;
        }
        subscribed.insert(uri);
        true
    }

    pub(super) fn unsubscribe(&self, uri: &str) {
        let mut state = self.lock();
        state.subscribed.remove(uri);
        state.untold.updated.remove(uri);
    }

    pub(super) fn resource_updated(&self, uri: &str) {
        let mut state = self.lock();
        if state.subscribed.contains(uri) {
            state.untold.updated.insert(uri.to_owned());
            self.news.notify_one();
        }
    }

    pub(super) fn lists_changed(&self, old: &Offers, new: &Offers) {
        let (old, new, untold) = (&old.lists, &new.lists, &mut self.lock().untold);
        untold.tools |= old.tools != new.tools;
        untold.resources |= old.resources != new.resources || old.templates != new.templates;
        untold.prompts |= old.prompts != new.prompts;
        self.news.notify_one();
    }

    /// Sends pending notifications to the client while the connection is open.
    pub(super) fn tell(self: &Arc<Self>, peer: Peer<RoleServer>) {
        let (connection, news) = (Arc::downgrade(self), self.news.clone());
        tokio::spawn(async move {
            loop {
                news.notified().await;
                let Some(connection) = connection.upgrade() else { return };
                let untold = std::mem::take(&mut connection.lock().untold);
                drop(connection);
                if untold.tell(&peer).await.is_err() {
                    return;
                }
            }
        });
    }

    /// Sends pending notifications to one subscription, until it is closed.
    pub(super) async fn tell_listener(&self, sink: &SubscriptionSink) {
        loop {
            self.news.notified().await;
            let untold = std::mem::take(&mut self.lock().untold);
            if untold.tell_listener(sink).await.is_err() {
                return;
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl News {
    async fn tell(self, peer: &Peer<RoleServer>) -> Result<(), rmcp::ServiceError> {
        if self.tools {
            peer.notify_tool_list_changed().await?;
        }
        if self.resources {
            peer.notify_resource_list_changed().await?;
        }
        if self.prompts {
            peer.notify_prompt_list_changed().await?;
        }
        for uri in self.updated {
            peer.notify_resource_updated(ResourceUpdatedNotificationParam::new(uri)).await?;
        }
        Ok(())
    }
}

impl News {
    /// As [`tell`](Self::tell), for what the subscription covers.
    async fn tell_listener(self, sink: &SubscriptionSink) -> Result<(), SubscriptionSendError> {
        let accepted = sink.accepted();
        if self.tools && accepted.tools_list_changed == Some(true) {
            sink.notify_tool_list_changed().await?;
        }
        if self.resources && accepted.resources_list_changed == Some(true) {
            sink.notify_resource_list_changed().await?;
        }
        if self.prompts && accepted.prompts_list_changed == Some(true) {
            sink.notify_prompt_list_changed().await?;
        }
        for uri in self.updated {
            sink.notify_resource_updated(uri).await?;
        }
        Ok(())
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        // Wakes the task, which ends as there is no receiver.
        self.news.notify_one();
    }
}
