//! The calls that are under way at one server, so that what the server sends finds the call that it is about.

use std::sync::{
    Arc, Mutex, MutexGuard, PoisonError,
    atomic::{AtomicU32, Ordering},
};

use agent_core::{Error, ToolRequest};
use rmcp::{
    model::{Extensions, ProgressToken, RequestId},
    service::InboundStreamOrigin,
};
use tokio_util::sync::{CancellationToken, DropGuard};

/// The calls that are under way at one server.
#[derive(Debug, Default)]
pub(super) struct Calls {
    calls: Mutex<Vec<(RequestId, ProgressToken, Arc<Call>)>>,
    /// Held while a call is sent and noted, so that nothing that it causes comes before it is known.
    pub(super) sending: tokio::sync::Mutex<()>,
}

/// A call that is under way.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) req: ToolRequest,
    /// How often the server asked.
    asked: AtomicU32,
    /// Cancelled when the call is over, so that nothing is done for it any more.
    pub(super) over: CancellationToken,
    /// Why the call must end at once: it is to wait for an answer.
    stopped: Mutex<Option<Error>>,
    pub(super) stop: CancellationToken,
}

/// Notes a call for as long as it lives.
#[derive(Debug)]
pub(super) struct Noted<'a> {
    calls: &'a Calls,
    id: RequestId,
    _over: DropGuard,
}

impl Call {
    pub(super) fn new(req: ToolRequest) -> Arc<Self> {
        let (over, stop) = (CancellationToken::new(), CancellationToken::new());
        Arc::new(Self { req, asked: AtomicU32::new(0), over, stopped: Mutex::default(), stop })
    }

    /// Numbers the server's questions. They come in the same order when the call is made again.
    pub(super) fn number(&self) -> String {
        self.asked.fetch_add(1, Ordering::Relaxed).to_string()
    }

    /// Why the call was ended.
    pub(super) fn why(&self) -> Error {
        let why = self.stopped.lock().unwrap_or_else(PoisonError::into_inner).take();
        why.unwrap_or_else(|| Error::tool("The call was ended."))
    }

    /// Ends the call.
    pub(super) fn end(&self, why: Error) {
        self.stopped.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(why);
        self.stop.cancel();
    }
}

impl Calls {
    pub(super) fn note(&self, id: RequestId, token: ProgressToken, call: &Arc<Call>) -> Noted<'_> {
        self.lock().push((id.clone(), token, call.clone()));
        Noted { calls: self, id, _over: call.over.clone().drop_guard() }
    }

    /// The call that this is the progress of.
    pub(super) async fn of_token(&self, token: &ProgressToken) -> Option<Arc<Call>> {
        let _sent = self.sending.lock().await;
        let calls = self.lock();
        calls.iter().find(|(_, of, _)| of == token).map(|(_, _, call)| call.clone())
    }

    /// The call that the server asks about: the one that its connection names, or the only one.
    pub(super) async fn that_asks(&self, extensions: &Extensions) -> Option<Arc<Call>> {
        let _sent = self.sending.lock().await;
        let calls = self.lock();
        let found = match extensions.get::<InboundStreamOrigin>() {
            Some(InboundStreamOrigin::OutboundRequest(asks)) => calls.iter().find(|(id, ..)| id == asks),
            _ => calls.first().filter(|_| calls.len() == 1),
        };
        found.map(|(_, _, call)| call.clone())
    }

    fn lock(&self) -> MutexGuard<'_, Vec<(RequestId, ProgressToken, Arc<Call>)>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Noted<'_> {
    fn drop(&mut self) {
        self.calls.lock().retain(|(id, ..)| *id != self.id);
    }
}
