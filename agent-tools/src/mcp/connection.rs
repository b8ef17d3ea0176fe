//! Connection to a server.

use std::{sync::Arc, time::Duration};

use agent_core::{Error, Result, ToolRequest};
use rmcp::{
    RoleClient, ServiceError,
    model::{
        CallToolRequestParams, CallToolResult, CancelledNotificationParam, ClientRequest, RequestId, RequestMetaObject,
        ServerResult,
    },
    service::{ClientCacheConfig, Peer, PeerRequestOptions},
};
use tokio::{runtime::Handle, sync::Mutex, time::Instant};
use tokio_util::sync::CancellationToken;

use super::{
    calls::{Call, Calls, Progress},
    failure,
    handler::{Handler, News},
    open::{self, Opened},
    rounds,
    settings::Settings,
};

/// Timeout for sending a cancellation notice.
const NOTICE: Duration = Duration::from_secs(5);

/// Connection to a server. It is closed when dropped.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) peer: Peer<RoleClient>,
    pub(super) since: Instant,
    pub(super) settings: Arc<Settings>,
    /// True if the server speaks a revision without handshake.
    pub(super) is_stateless: bool,
    calls: Arc<Calls>,
    /// Held during a call, if the server may send requests that do not identify their call.
    turn: Option<Mutex<()>>,
    gone: CancellationToken,
    stop: CancellationToken,
}

impl Connection {
    /// Connects to the server, and initialises the session.
    pub(super) async fn open(settings: &Arc<Settings>, news: &Arc<News>) -> Result<Self> {
        let calls = Arc::<Calls>::default();
        let handler = Handler { settings: settings.clone(), calls: calls.clone(), news: news.clone() };
        let stop = CancellationToken::new();
        let Opened { service, names_calls, is_stateless } = open::open(settings, handler, &stop).await?;
        let (peer, gone) = (service.peer().clone(), CancellationToken::new());
        // Lists are kept here, and a change that the server announces must be seen at once.
        peer.set_response_cache_config(ClientCacheConfig::disabled()).await;
        let ended = gone.clone().drop_guard();
        tokio::spawn(async move {
            // The result is irrelevant: pending requests failed with it.
            let _ = service.waiting().await;
            drop(ended);
        });
        // Without a handshake, a server requests input by a result, which belongs to its call.
        let turn = (settings.may_ask() && !names_calls && !is_stateless).then(Mutex::default);
        Ok(Self { peer, since: Instant::now(), settings: settings.clone(), is_stateless, calls, turn, gone, stop })
    }

    /// Returns a token that is cancelled when the connection is closed.
    pub(super) fn gone(&self) -> CancellationToken {
        self.gone.clone()
    }

    /// Returns true if the connection is closed.
    pub(super) fn is_gone(&self) -> bool {
        self.gone.is_cancelled() || self.peer.is_transport_closed()
    }

    /// Returns true if the connection must not be used for further calls: a late request of a
    /// cancelled call would be indistinguishable from theirs.
    pub(super) fn is_spent(&self) -> bool {
        self.calls.may_be_confused(self.turn.is_some())
    }

    /// Closes the connection, and waits for its end.
    pub(super) async fn close(&self) {
        self.stop.cancel();
        let _ = tokio::time::timeout(NOTICE, self.gone.cancelled()).await;
    }

    /// Makes a call of a tool. A dropped call is cancelled at the server. There is no answer from a connection that is
    /// [spent](Self::is_spent).
    pub(super) async fn call(
        &self,
        (req, progress): (&ToolRequest, &Arc<Progress>),
        params: CallToolRequestParams,
    ) -> Result<Option<CallToolResult>> {
        let _turn = match &self.turn {
            Some(turn) => Some(turn.lock().await),
            None => None,
        };
        if self.is_spent() {
            return Ok(None);
        }
        let call = Call::new(req.clone(), progress.clone());
        rounds::call(self, &call, params).await.map(Some)
    }

    /// Sends a request of a call, and waits for its answer.
    pub(super) async fn send(&self, call: &Arc<Call>, request: ClientRequest) -> Result<ServerResult> {
        let options = PeerRequestOptions::no_options().with_meta(self.meta(&call.req));
        let sending = self.calls.sending.lock().await;
        let sent = self.peer.send_cancellable_request(request, options).await;
        let handle = sent.map_err(|e| self.failed(e))?;
        let _noted = self.calls.note(handle.id.clone(), handle.progress_token.clone(), call);
        drop(sending);
        let mut unwanted = Unwanted(Some((self.peer.clone(), handle.id.clone(), self.calls.clone())));
        let answer = tokio::select! {
            answer = handle.await_response() => answer.map_err(|e| self.failed(e)),
            () = call.stop.cancelled() => return Err(call.why()),
        };
        unwanted.0 = None;
        // The reason of an ended call takes precedence over the server's response.
        if call.stop.is_cancelled() { Err(call.why()) } else { answer }
    }

    /// Metadata of a request of a call: its trace context, and the level of the logs wanted.
    #[expect(deprecated, reason = "logging is on its way out of the protocol, and servers have it")]
    fn meta(&self, req: &ToolRequest) -> RequestMetaObject {
        let mut meta = RequestMetaObject::new();
        if let Some(trace) = &req.cx.ids().traceparent {
            meta.set_traceparent(&**trace);
        }
        let logs = self.peer.peer_info().is_some_and(|info| info.capabilities.logging.is_some());
        if self.is_stateless && logs {
            meta.set_log_level(rmcp::model::LoggingLevel::Info);
        }
        meta
    }

    /// Describes the failure of a request.
    pub(super) fn failed(&self, error: ServiceError) -> Error {
        failure::of_request(&self.settings, error)
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

/// Unanswered request. Dropping it sends a cancellation notice to the server.
struct Unwanted(Option<(Peer<RoleClient>, RequestId, Arc<Calls>)>);

impl Drop for Unwanted {
    fn drop(&mut self) {
        let Some((peer, id, calls)) = self.0.take() else { return };
        calls.give_up();
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(async move {
                let notice = CancelledNotificationParam::new(Some(id), Some("the call was given up".into()));
                let _ = tokio::time::timeout(NOTICE, peer.notify_cancelled(notice)).await;
            });
        }
    }
}
