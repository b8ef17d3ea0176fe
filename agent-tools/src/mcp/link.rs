//! Lazily connected, automatically reconnecting session with one MCP server.

use std::{sync::Arc, time::Duration};

use agent_core::{Error, Result, RunCx, ToolRequest};
use rmcp::{
    ServiceError,
    model::{CallToolRequestParams, CallToolResult, SubscribeRequestParams},
};
use tokio::{
    sync::{Mutex, OwnedMutexGuard},
    time::Instant,
};

use super::{
    calls::Progress,
    connection::Connection,
    failure::{away, within},
    handler::News,
    listen::{Listener, Subscribed},
    settings::Settings,
};

/// Minimum lifetime of a successful connection: a shorter one counts as failed, so that a crashing
/// server is not restarted in a loop.
const SHORT: Duration = Duration::from_secs(10);

/// Lazily connected, automatically reconnecting session.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) settings: Arc<Settings>,
    pub(super) news: Arc<News>,
    slot: Arc<Mutex<Slot>>,
    pub(super) subscribed: Arc<Subscribed>,
}

#[derive(Debug, Default)]
struct Slot {
    connection: Option<Arc<Connection>>,
    failed: u32,
    why: String,
    /// End of the back-off delay.
    until: Option<Instant>,
}

impl Link {
    pub(super) fn new(settings: Settings) -> Arc<Self> {
        let (settings, news) = (Arc::new(settings), Arc::default());
        Arc::new(Self { settings, news, slot: Arc::default(), subscribed: Arc::default() })
    }

    /// Returns the current connection, or a new one. Waits up to `patience` for the end of a
    /// back-off delay.
    ///
    /// # Errors
    /// Of kind [`Tool`](agent_core::ErrorKind::Tool) if the server is unreachable.
    pub(super) async fn connection(self: &Arc<Self>, patience: Duration) -> Result<Arc<Connection>> {
        let mut slot = self.slot.clone().lock_owned().await;
        if let Some(connection) = slot.connection.take() {
            if !connection.is_gone() && !connection.is_spent() {
                return Ok(slot.connection.insert(connection).clone());
            }
            if connection.is_gone() {
                tracing::warn!(server = &*self.settings.name, "an MCP server went away");
                slot.failed = if connection.since.elapsed() < SHORT { slot.failed + 1 } else { 0 };
                slot.leave_alone(&self.settings, "it went away");
            }
        }
        if let Some(left) = slot.until.and_then(|until| until.checked_duration_since(Instant::now())) {
            if left > patience {
                return Err(away(&self.settings, &slot.why, Some(left)));
            }
            tokio::time::sleep(left).await;
        }
        // The caller may be cancelled before a slow server has started: the next caller then finds
        // the connection.
        let opened = tokio::spawn(self.clone().open(slot)).await;
        opened.unwrap_or_else(|panic| Err(Error::tool("The server cannot be reached.").with_source(panic)))
    }

    async fn open(self: Arc<Self>, mut slot: OwnedMutexGuard<Slot>) -> Result<Arc<Connection>> {
        let most = self.settings.reach_timeout();
        let opened = tokio::time::timeout(most, Connection::open(&self.settings, &self.news)).await;
        let late = || Err(Error::tool(format!("it did not say hello within {} seconds", most.as_secs_f64())));
        match opened.unwrap_or_else(|_| late()) {
            Ok(connection) => {
                slot.until = None;
                self.subscribe_again(&connection);
                self.news.tools_changed();
                Ok(slot.connection.insert(Arc::new(connection)).clone())
            }
            Err(failed) => {
                tracing::warn!(server = &*self.settings.name, error = %failed, "an MCP server cannot be reached");
                slot.failed += 1;
                slot.leave_alone(&self.settings, failed.message());
                Err(away(&self.settings, failed.message(), None).with_source(failed))
            }
        }
    }

    /// Sends a request, with a timeout of `most` within the run's deadline.
    pub(super) async fn ask<T>(
        self: &Arc<Self>,
        cx: Option<&RunCx>,
        most: Duration,
        request: impl AsyncFnOnce(&Connection) -> Result<T, ServiceError>,
    ) -> Result<T> {
        let asked = async {
            let connection = self.connection(most).await?;
            Box::pin(request(&connection)).await.map_err(|e| connection.failed(e))
        };
        within(&self.settings, cx, most, asked).await
    }

    /// Calls a tool, on a connection on which the server's requests can be attributed to this call.
    pub(super) async fn call(
        self: &Arc<Self>,
        patience: Duration,
        (req, progress): (&ToolRequest, &Arc<Progress>),
        params: &CallToolRequestParams,
    ) -> Result<CallToolResult> {
        loop {
            let connection = self.connection(patience).await?;
            if let Some(answer) = connection.call((req, progress), params.clone()).await? {
                return Ok(answer);
            }
        }
    }

    /// Closes the connection, if there is one.
    pub(super) async fn close(&self) {
        let connection = std::mem::take(&mut *self.slot.lock().await).connection;
        if let Some(connection) = connection {
            connection.close().await;
        }
    }

    /// Renews all subscriptions on a new connection.
    #[expect(deprecated, reason = "servers with a handshake know no other way")]
    fn subscribe_again(&self, connection: &Connection) {
        if connection.is_stateless {
            let listener = Listener {
                server: self.settings.name.clone(),
                peer: connection.peer.clone(),
                news: self.news.clone(),
                subscribed: self.subscribed.clone(),
            };
            tokio::spawn(listener.run(connection.gone()));
            return;
        }
        for uri in self.subscribed.all() {
            let (peer, name) = (connection.peer.clone(), self.settings.name.clone());
            tokio::spawn(async move {
                if let Err(error) = peer.subscribe(SubscribeRequestParams::new(uri)).await {
                    tracing::warn!(server = &*name, %error, "an MCP server does not tell of a resource any more");
                }
            });
        }
    }
}

impl Slot {
    /// Starts a back-off delay after a failure.
    fn leave_alone(&mut self, settings: &Settings, why: &str) {
        why.clone_into(&mut self.why);
        self.until = settings.leave_until(self.failed);
    }
}
