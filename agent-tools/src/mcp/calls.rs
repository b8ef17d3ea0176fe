//! Running calls at one server, to route the server's requests and notifications to their call.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
};

use agent_core::{Error, Result, ToolRequest};
use rmcp::{
    model::{Extensions, ProgressToken, RequestId},
    service::InboundStreamOrigin,
};
use serde::Serialize;
use serde_json::Value;
use sha2::{Digest, Sha256};
use tokio::sync::Notify;
use tokio_util::sync::{CancellationToken, DropGuard};

/// Running calls at one server.
#[derive(Debug, Default)]
pub(super) struct Calls {
    calls: Mutex<Vec<(RequestId, ProgressToken, Arc<Call>)>>,
    /// Held while a call is sent and registered, so that the server's reactions always find it.
    pub(super) sending: tokio::sync::Mutex<()>,
    /// Set once a call was cancelled: a late server request may still belong to it.
    given_up: AtomicBool,
    /// True once a request arrived that did not identify its call.
    unnamed: AtomicBool,
}

/// Maximum of elicitation and sampling requests per call.
const QUESTIONS: u32 = 100;

/// Maximum of forwarded progress notifications per call.
const PROGRESS: u32 = 10_000;

/// Reports of progress of a call, which extend its timeout.
#[derive(Debug, Default)]
pub(super) struct Progress(pub(super) Notify);

/// A call that is under way.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) req: ToolRequest,
    /// Number of times that the server made each request.
    asked: Mutex<BTreeMap<String, u32>>,
    /// Number of progress notifications so far.
    told: AtomicU32,
    progress: Arc<Progress>,
    /// Cancelled when the call is over, so that nothing is done for it any more.
    pub(super) over: CancellationToken,
    /// Reason why the call must end immediately: it has to wait for an answer.
    stopped: Mutex<Option<Error>>,
    pub(super) stop: CancellationToken,
}

/// Registers a call while it lives.
#[derive(Debug)]
pub(super) struct Noted<'a> {
    calls: &'a Calls,
    id: RequestId,
    _over: DropGuard,
}

impl Call {
    pub(super) fn new(req: ToolRequest, progress: Arc<Progress>) -> Arc<Self> {
        let (over, stop) = (CancellationToken::new(), CancellationToken::new());
        let (asked, told, stopped) = (Mutex::default(), AtomicU32::new(0), Mutex::default());
        Arc::new(Self { req, asked, told, progress, over, stopped, stop })
    }

    /// Names a request of the server by its content and its repetition count: stable when the call
    /// is repeated, whatever the order of requests then.
    ///
    /// # Errors
    /// If the server exceeds the maximum of requests.
    pub(super) fn name_of(&self, asks: &impl Serialize) -> Result<String> {
        let text =
            serde_json::to_vec(asks).map_err(|e| Error::tool("A question of the server is none.").with_source(e))?;
        let digest: String = Sha256::digest(text).iter().take(8).map(|byte| format!("{byte:02x}")).collect();
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        if asked.values().sum::<u32>() >= QUESTIONS {
            return Err(Error::tool(format!("The server asked more than {QUESTIONS} times in one call.")));
        }
        let times = asked.entry(digest.clone()).or_default();
        *times += 1;
        Ok(format!("{digest}-{times}"))
    }

    /// Forwards a progress notification to the run.
    pub(super) fn progress(&self, progress: Value) {
        self.progress.0.notify_one();
        if self.told.fetch_add(1, Ordering::Relaxed) < PROGRESS {
            self.req.progress(progress);
        }
    }

    /// Returns the reason why the call was ended.
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

    /// Returns the call that a progress token belongs to.
    pub(super) async fn of_token(&self, token: &ProgressToken) -> Option<Arc<Call>> {
        let _sent = self.sending.lock().await;
        let calls = self.lock();
        calls.iter().find(|(_, of, _)| of == token).map(|(_, _, call)| call.clone())
    }

    /// Records that a call was cancelled.
    pub(super) fn give_up(&self) {
        self.given_up.store(true, Ordering::Release);
    }

    /// Returns true if a request may belong to a cancelled call, since the server does not identify
    /// calls: it `never` does, or omitted it once.
    pub(super) fn may_be_confused(&self, never: bool) -> bool {
        self.given_up.load(Ordering::Acquire) && (never || self.unnamed.load(Ordering::Acquire))
    }

    /// Returns the call that the server's request belongs to: the one that its connection
    /// identifies, or the only one so far.
    pub(super) async fn that_asks(&self, extensions: &Extensions) -> Option<Arc<Call>> {
        let _sent = self.sending.lock().await;
        let calls = self.lock();
        let found = match extensions.get::<InboundStreamOrigin>() {
            Some(InboundStreamOrigin::OutboundRequest(asks)) => calls.iter().find(|(id, ..)| id == asks),
            _ => {
                self.unnamed.store(true, Ordering::Release);
                let is_clear = calls.len() == 1 && !self.given_up.load(Ordering::Acquire);
                calls.first().filter(|_| is_clear)
            }
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
