//! Connection to a server.

use std::{sync::Arc, time::Duration};

use agent_core::{Error, Result, ToolRequest};
use rmcp::{
    RoleClient, ServiceError,
    model::{
        CallToolRequest, CallToolRequestParams, CancelledNotificationParam, ClientRequest, RequestId, ServerResult,
    },
    service::{Peer, PeerRequestOptions, serve_client_with_ct},
};
use tokio::{runtime::Handle, sync::Mutex, time::Instant};
use tokio_util::sync::CancellationToken;

use super::{
    calls::{Call, Calls, Progress},
    endpoint::Kind,
    failure,
    handler::{Handler, News},
    http,
    lines::Lines,
    oauth::Access,
    settings::Settings,
    sse::Sse,
};
use crate::program::Process;

/// Timeout for sending a cancellation notice.
const NOTICE: Duration = Duration::from_secs(5);

/// Connection to a server. It is closed when dropped.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) peer: Peer<RoleClient>,
    pub(super) since: Instant,
    pub(super) settings: Arc<Settings>,
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
        let (stop, name, limit) = (CancellationToken::new(), settings.name.clone(), settings.message_limit());
        let (mut says_who_asks, mut last_words) = (false, None);
        let service = match &settings.endpoint.0 {
            Kind::Stdio(stdio) => {
                let (process, streams) = Process::start(&name, stdio)?;
                last_words = Some(process.last_words());
                let lines = Lines::new(name, streams, limit).of(process);
                serve_client_with_ct(handler, lines, stop.clone()).await
            }
            Kind::Streams(streams) => {
                let lines = Lines::new(name, (streams.0)().await?, limit);
                serve_client_with_ct(handler, lines, stop.clone()).await
            }
            Kind::Http(server) => {
                let access = server
                    .oauth
                    .as_ref()
                    .map(|oauth| settings.access.get_or_init(|| Arc::new(Access::new(oauth, &server.url))).clone());
                let streamable = http::transport(server, access, limit)?;
                match serve_client_with_ct(handler.clone(), streamable, stop.clone()).await {
                    Err(error) if !failure::wants_to_know_who_asks(&error) => {
                        // An older server does not support streamable HTTP. If it is not an SSE
                        // server either, the first error is reported.
                        match Sse::open(name, server, limit).await {
                            Some(sse) => serve_client_with_ct(handler, sse, stop.clone()).await,
                            None => Err(error),
                        }
                    }
                    opened => {
                        says_who_asks = true;
                        opened
                    }
                }
            }
        };
        let service = match service {
            Ok(service) => service,
            Err(e) => {
                let last_words = match last_words {
                    Some(last_words) => last_words.read().await,
                    None => None,
                };
                return Err(failure::of_connection(settings, &e, last_words));
            }
        };
        let (peer, gone) = (service.peer().clone(), CancellationToken::new());
        let ended = gone.clone().drop_guard();
        tokio::spawn(async move {
            // The result is irrelevant: pending requests failed with it.
            let _ = service.waiting().await;
            drop(ended);
        });
        let turn = (settings.may_ask() && !says_who_asks).then(Mutex::default);
        Ok(Self { peer, since: Instant::now(), settings: settings.clone(), calls, turn, gone, stop })
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

    /// Makes a call of a tool. If it is given up, the server is told. There is no answer from a connection that is
    /// [spent](Self::is_spent).
    pub(super) async fn call(
        &self,
        (req, progress): (&ToolRequest, &Arc<Progress>),
        params: CallToolRequestParams,
    ) -> Result<Option<ServerResult>> {
        let _turn = match &self.turn {
            Some(turn) => Some(turn.lock().await),
            None => None,
        };
        if self.is_spent() {
            return Ok(None);
        }
        let call = Call::new(req.clone(), progress.clone());
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
        let sending = self.calls.sending.lock().await;
        let sent = self.peer.send_cancellable_request(request, PeerRequestOptions::no_options()).await;
        let handle = sent.map_err(|e| self.failed(e))?;
        let _noted = self.calls.note(handle.id.clone(), handle.progress_token.clone(), &call);
        drop(sending);
        let mut unwanted = Unwanted(Some((self.peer.clone(), handle.id.clone(), self.calls.clone())));
        let answer = tokio::select! {
            answer = handle.await_response() => answer.map_err(|e| self.failed(e)),
            () = call.stop.cancelled() => return Err(call.why()),
        };
        unwanted.0 = None;
        // The reason of an ended call takes precedence over the server's response.
        if call.stop.is_cancelled() { Err(call.why()) } else { answer.map(Some) }
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
