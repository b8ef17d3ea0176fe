//! Start of runs.

use std::{sync::Arc, time::Duration};

use agent::{
    Caps, ErrorKind, RunRequest, SessionId, WhenBusy,
    dispatch::{Job, Signal, Wanted},
};
use sha2::{Digest, Sha256};

use super::{
    App, FoundRun,
    dispatched::{DIGEST, Sent},
    live::LiveRun,
    names::{Key, Named},
};
use crate::{
    caller::{Caller, Scope},
    error::ApiError,
    trace,
    webhooks::{Hook, Webhook},
};

/// Request to start a run.
///
/// ```
/// use agent::RunRequest;
/// use agent_server::Start;
///
/// let start = Start::new("support", RunRequest::user("A-17 came broken.")).session("garden").key("7f3c");
/// # let _ = start;
/// ```
#[derive(Clone, Debug)]
pub struct Start {
    pub(super) agent: String,
    pub(super) request: RunRequest,
    pub(super) session: Option<String>,
    pub(super) key: Option<Key>,
    /// Digest of the body, in hexadecimal.
    pub(super) digest: Option<Arc<str>>,
    pub(super) hooks: Vec<Hook>,
}

impl Start {
    /// Creates a request for this agent. The server sets the session, run id and user of the
    /// request, and enables streaming unless the request disables it.
    pub fn new(agent: impl Into<String>, request: RunRequest) -> Self {
        Self { agent: agent.into(), request, session: None, key: None, digest: None, hooks: Vec::new() }
    }

    /// Sets the session, as the client names it. Default: a new one.
    #[must_use]
    pub fn session(mut self, name: impl Into<String>) -> Self {
        self.session = Some(name.into());
        self
    }

    /// Sets an idempotency key: a repeated request of the same subject with the same key yields the
    /// same run.
    #[must_use]
    pub fn key(self, key: impl Into<String>) -> Self {
        self.key_of("", key)
    }

    /// Like [`key`](Self::key), for a message id of a protocol, whose ids are independent of those
    /// of other protocols.
    #[must_use]
    pub(crate) fn key_of(mut self, protocol: &'static str, key: impl Into<String>) -> Self {
        self.key = Some(Key { protocol, key: key.into() });
        self
    }

    /// Adds a webhook for the run, if the server [supports them](crate::ServerBuilder::webhooks).
    #[must_use]
    pub fn webhook(self, webhook: Webhook) -> Self {
        self.hook(Hook::of("run", webhook))
    }

    /// Like [`webhook`](Self::webhook), for a webhook of a protocol.
    #[must_use]
    pub(crate) fn hook(mut self, hook: Hook) -> Self {
        self.hooks.push(hook);
        self
    }

    /// Sets the request's body, to detect a different request with the same key.
    #[must_use]
    pub fn body(mut self, body: &[u8]) -> Self {
        self.digest = Some(Sha256::digest(body).iter().map(|byte| format!("{byte:02x}")).collect::<String>().into());
        self
    }
}

impl App {
    /// Starts a run, and returns once its first entry is durable. A [queued](WhenBusy::Queue) run
    /// is acknowledged immediately. The run continues independently of the caller.
    ///
    /// # Errors
    /// 403 and 404 by the caller's permissions; 400 for an invalid webhook; 409 if the session is
    /// busy; other errors of starting the run.
    pub async fn start(&self, caller: &Caller, start: Start) -> Result<FoundRun, ApiError> {
        caller.require(Scope::Run)?;
        for hook in &start.hooks {
            self.check_hook(hook).await?;
        }
        let hooks = start.hooks.clone();
        let run = self.begin(caller, start).await?;
        if !run.is_new() && !hooks.is_empty() {
            self.hook(&run, hooks).await?;
        }
        Ok(run)
    }

    async fn begin(&self, caller: &Caller, start: Start) -> Result<FoundRun, ApiError> {
        let agent = self.agent(caller, &start.agent)?.agent().clone();
        let has_key = start.key.is_some();
        let named = Named::new(caller, agent.name(), start.session.as_deref(), start.key.as_ref())?;
        let session = SessionId::new(caller.tenant(), &named.session);
        let store_name = session.to_string();
        if let Some(there) = self.under_way(agent.name(), &start, &named, &store_name)? {
            return Ok(there);
        }
        self.allow()?;
        self.check_busy(start.request.when_busy)?;
        // A repeated request for an existing run spends nothing.
        if has_key
            && let Some(there) = self.started_before(caller, &named, &store_name, start.digest.as_deref()).await?
        {
            return Ok(there);
        }
        let request = self.of_caller(caller, start.request.session(session).run_id(named.run.clone()));
        self.check_spending(&request).await?;
        let (digest, hooks) = (start.digest.clone(), start.hooks);
        let sent = Sent { digest, hooks, began: None, may_be_known: has_key };
        match self.hand_over(caller, agent.name(), &request, sent).await {
            // The run of this key may have begun in another process.
            Err(error)
                if has_key
                    && matches!(error.kind(), Some(ErrorKind::Stale | ErrorKind::Busy))
                    && self.journal().has_run(&store_name, &named.run).await? =>
            {
                self.run(caller, &named.run, Some(&named.session)).await
            }
            started => started,
        }
    }

    /// Returns the active run that a request refers to: one that it steers, or that its key
    /// started.
    fn under_way(
        &self,
        agent: &str,
        start: &Start,
        named: &Named,
        session: &str,
    ) -> Result<Option<FoundRun>, ApiError> {
        let (has_key, busy) = (start.key.is_some(), start.request.when_busy);
        if has_key && matches!(busy, Some(WhenBusy::Steer | WhenBusy::Fork)) {
            let message = "Idempotency-Key cannot be combined with when_busy 'steer' or 'fork'";
            return Err(ApiError::invalid(message));
        }
        if busy == Some(WhenBusy::Steer)
            && let Some(there) = self.0.local.in_session(agent, session)
            && steer(&there, &start.request)
        {
            return Ok(Some(FoundRun::of_live(self.clone(), there)));
        }
        let tenant = SessionId::parse(session).map_or_else(String::new, |id| id.user().to_owned());
        let there = has_key.then(|| self.0.local.find(&tenant, Some(session), &named.run)).flatten();
        let again = |there: Arc<LiveRun>| {
            let digest = there.digest.clone();
            again(digest.as_deref(), start.digest.as_deref(), FoundRun::of_live(self.clone(), there))
        };
        there.map(again).transpose()
    }

    /// Returns the run that this key started before, in any process: from the journal, or from the
    /// queue if it has not begun.
    ///
    /// # Errors
    /// 422 if that request was another one; the errors of the store and of the queue.
    async fn started_before(
        &self,
        caller: &Caller,
        named: &Named,
        session: &str,
        digest: Option<&str>,
    ) -> Result<Option<FoundRun>, ApiError> {
        if self.journal().has_run(session, &named.run).await? {
            let found = self.run(caller, &named.run, Some(&named.session)).await?;
            let then = self.job(session, &named.run).await?.and_then(|job| digest_of(&job));
            return again(then.as_deref(), digest, found).map(Some);
        }
        let Some(job) = self.job(session, &named.run).await? else { return Ok(None) };
        let found = FoundRun::elsewhere_of(self.clone(), job.at.clone());
        again(digest_of(&job).as_deref(), digest, found).map(Some)
    }

    /// Returns the job of a run, if there is a queue that has it.
    async fn job(&self, session: &str, run: &str) -> Result<Option<Job>, ApiError> {
        let Some(queue) = &self.0.queue else { return Ok(None) };
        let jobs = queue.jobs(&Wanted::default().session(session).run(run)).await?;
        Ok(jobs.into_iter().next().map(|queued| queued.job))
    }

    /// Applies the caller's limits and identity to the request.
    pub(super) fn of_caller(&self, caller: &Caller, mut request: RunRequest) -> RunRequest {
        request.stream = request.stream.or(Some(true));
        request.caps = caps(caller, request.caps);
        request.traceparent = request.traceparent.or_else(trace::current);
        let user = SessionId::new(caller.tenant(), caller.subject()).to_string();
        self.allow_spending(caller, request.on_behalf_of(user))
    }

    /// Checks that new runs are accepted.
    pub(super) fn allow(&self) -> Result<(), ApiError> {
        if self.is_draining() { Err(draining()) } else { Ok(()) }
    }
}

/// Returns the run that a key started before.
pub(super) fn again(then: Option<&str>, now: Option<&str>, found: FoundRun) -> Result<FoundRun, ApiError> {
    if is_other(then, now) { Err(ApiError::idempotency_mismatch()) } else { Ok(found) }
}

/// Returns the digest of the request that a job was made of.
fn digest_of(job: &Job) -> Option<String> {
    job.extra.get(DIGEST)?.as_str().map(str::to_owned)
}

/// True if the digests of two requests differ; not every run has one.
fn is_other(then: Option<&str>, now: Option<&str>) -> bool {
    then.zip(now).is_some_and(|(then, now)| then != now)
}

/// 429: the caller has as many active runs as the key allows.
pub(super) fn too_many(most: usize) -> ApiError {
    let message = format!("the key's limit of {most} active runs is reached: wait for one to end");
    ApiError::too_many("too_many_runs", message, Duration::from_secs(5))
}

/// 503: the server is draining.
fn draining() -> ApiError {
    let message = "the server is shutting down: retry the request in a moment";
    ApiError::new(http::StatusCode::SERVICE_UNAVAILABLE, "draining", message).after(Duration::from_secs(2))
}

/// Returns the limits of a run of the caller.
pub(super) fn caps(caller: &Caller, wanted: Option<Caps>) -> Option<Caps> {
    let limits = caller.limited();
    if limits.tokens_per_run.is_none() && limits.cost_per_run.is_none() {
        return wanted;
    }
    let mut caps = wanted.unwrap_or_default();
    if let Some(most) = limits.tokens_per_run {
        caps = caps.tokens(most);
    }
    if let Some(most) = limits.cost_per_run {
        caps = caps.cost(most);
    }
    Some(caps)
}

/// Delivers the messages of a request to an active run. Returns `false` if it accepts none any
/// more.
fn steer(run: &LiveRun, request: &RunRequest) -> bool {
    match &request.input {
        agent::run::RunInput::Messages(messages) => {
            messages.iter().all(|message| run.signal(Signal::Steer(message.clone())).is_ok_and(|taken| taken))
        }
        _ => false,
    }
}
