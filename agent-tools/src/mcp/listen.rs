//! Subscription to a server's changes, for revisions without a connection of their own for them.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use futures::FutureExt;
use rmcp::{
    RoleClient,
    model::{ServerCapabilities, ServerNotification, SubscriptionFilter},
    service::{Peer, Subscription},
};
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;

use super::{changes::ListChange, handler::News};

/// Delays between attempts to subscribe.
const SHORTEST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(300);

/// Resources whose changes the program wants to know, across connections.
#[derive(Debug, Default)]
pub(super) struct Subscribed {
    wanted: Mutex<Wanted>,
    changed: Notify,
    settled: watch::Sender<Settled>,
}

#[derive(Debug, Default)]
struct Wanted {
    uris: BTreeSet<String>,
    /// Number of changes so far.
    changes: u64,
}

/// Resources of the current subscription.
#[derive(Debug, Default)]
struct Settled {
    uris: BTreeSet<String>,
    /// Number of the last change that the subscription takes into account.
    changes: u64,
}

impl Subscribed {
    /// Adds a resource; returns the number of this change.
    pub(super) fn add(&self, uri: &str) -> u64 {
        self.change(|uris| uris.insert(uri.to_owned()))
    }

    /// Removes a resource; returns the number of this change.
    pub(super) fn remove(&self, uri: &str) -> u64 {
        self.change(|uris| uris.remove(uri))
    }

    fn change(&self, change: impl FnOnce(&mut BTreeSet<String>) -> bool) -> u64 {
        let mut wanted = self.lock();
        change(&mut wanted.uris);
        wanted.changes += 1;
        self.changed.notify_one();
        wanted.changes
    }

    pub(super) fn all(&self) -> BTreeSet<String> {
        self.lock().uris.clone()
    }

    /// Waits until the server has answered to this change; returns true if its answer covers the
    /// resource.
    pub(super) async fn is_settled(&self, change: u64, uri: &str) -> bool {
        let mut settled = self.settled.subscribe();
        let settled = settled.wait_for(|settled| settled.changes >= change).await;
        settled.is_ok_and(|settled| settled.uris.contains(uri))
    }

    fn settle(&self, changes: u64, uris: BTreeSet<String>) {
        self.settled.send_replace(Settled { uris, changes });
    }

    fn lock(&self) -> MutexGuard<'_, Wanted> {
        self.wanted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One server's subscription.
pub(super) struct Listener {
    pub(super) server: Arc<str>,
    pub(super) peer: Peer<RoleClient>,
    pub(super) news: Arc<News>,
    pub(super) subscribed: Arc<Subscribed>,
}

impl Listener {
    /// Keeps the subscription until the connection is `gone`.
    pub(super) async fn run(self, gone: CancellationToken) {
        gone.run_until_cancelled_owned(self.listen()).await;
    }

    async fn listen(self) {
        let (mut delay, mut old) = (SHORTEST, None::<Subscription>);
        loop {
            let (filter, changes) = self.filter();
            if filter == SubscriptionFilter::new() {
                old = None;
                self.subscribed.settle(changes, BTreeSet::new());
                self.subscribed.changed.notified().await;
                continue;
            }
            match self.peer.listen(filter).await {
                Ok(mut subscription) => {
                    // Until now the old one covered what both cover.
                    if let Some(mut old) = old.take() {
                        while let Some(Ok(Some(notification))) = old.next().now_or_never() {
                            self.forward(notification);
                        }
                    }
                    let acknowledged = subscription.acknowledged().resource_subscriptions.clone();
                    self.subscribed.settle(changes, acknowledged.into_iter().flatten().collect());
                    delay = SHORTEST;
                    if self.told(&mut subscription).await {
                        old = Some(subscription);
                        continue;
                    }
                    // Changes may have been missed.
                    self.news.tools_changed();
                }
                Err(error) => {
                    tracing::debug!(server = &*self.server, %error, "an MCP server takes no subscription");
                    self.subscribed.settle(changes, BTreeSet::new());
                }
            }
            tokio::select! {
                () = tokio::time::sleep(delay) => {}
                () = self.subscribed.changed.notified() => {}
            }
            delay = (delay * 2).min(LONGEST);
        }
    }

    /// Forwards notifications; returns true once other resources are wanted, and false when the
    /// subscription ended.
    async fn told(&self, subscription: &mut Subscription) -> bool {
        loop {
            tokio::select! {
                told = subscription.next() => match told {
                    Ok(Some(notification)) => self.forward(notification),
                    _ => return false,
                },
                () = self.subscribed.changed.notified() => return true,
            }
        }
    }

    fn forward(&self, notification: ServerNotification) {
        match notification {
            ServerNotification::ToolListChangedNotification(_) => self.news.changed(ListChange::Tools),
            ServerNotification::ResourceListChangedNotification(_) => self.news.changed(ListChange::Resources),
            ServerNotification::PromptListChangedNotification(_) => self.news.changed(ListChange::Prompts),
            ServerNotification::ResourceUpdatedNotification(updated) => self.news.updated(updated.params.uri),
            _ => {}
        }
    }

    /// Everything that the server announces, and the resources that the program wants, with the
    /// number of the last change of these.
    fn filter(&self) -> (SubscriptionFilter, u64) {
        let info = self.peer.peer_info();
        let none = ServerCapabilities::default();
        let can = info.as_ref().map_or(&none, |info| &info.capabilities);
        let mut filter = SubscriptionFilter::new();
        let tools = can.tools.as_ref().and_then(|tools| tools.list_changed);
        let prompts = can.prompts.as_ref().and_then(|prompts| prompts.list_changed);
        let resources = can.resources.as_ref().and_then(|resources| resources.list_changed);
        filter.tools_list_changed = tools.filter(|told| *told);
        filter.prompts_list_changed = prompts.filter(|told| *told);
        filter.resources_list_changed = resources.filter(|told| *told);
        let can_subscribe = can.resources.as_ref().and_then(|resources| resources.subscribe) == Some(true);
        let wanted = self.subscribed.lock();
        let uris: Vec<_> = wanted.uris.iter().filter(|_| can_subscribe).cloned().collect();
        filter.resource_subscriptions = Some(uris).filter(|uris| !uris.is_empty());
        (filter, wanted.changes)
    }
}
