//! Starting runs.

use std::{sync::Arc, time::Duration};

use agent::{Caps, ErrorKind, RunRequest, SessionId, WhenBusy};
use sha2::{Digest, Sha256};

use super::{
    App, FoundRun,
    brought::Kept,
    live::{Asked, LiveRun, Phase, TooMany},
    names::Named,
};
use crate::{
    caller::{Caller, Scope},
    error::ApiError,
    webhooks::{Hook, Webhook},
};

/// A run that is wanted.
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
    pub(super) key: Option<String>,
    pub(super) digest: Option<[u8; 32]>,
    pub(super) hooks: Vec<Hook>,
}

impl Start {
    /// A run of this agent. Of the request, the session, the run's id and the user are the server's to say; what it does not say of
    /// streaming is yes.
    pub fn new(agent: impl Into<String>, request: RunRequest) -> Self {
        Self { agent: agent.into(), request, session: None, key: None, digest: None, hooks: Vec::new() }
    }

    /// Sets the session, as the client names it. Default: one of its own.
    #[must_use]
    pub fn session(mut self, name: impl Into<String>) -> Self {
        self.session = Some(name.into());
        self
    }

    /// Sets a key of the client's that makes it safe to send the request again: the same key gives the same run.
    #[must_use]
    pub fn key(mut self, key: impl Into<String>) -> Self {
        self.key = Some(key.into());
        self
    }

    /// Has a program elsewhere told what becomes of the run, if the server [does that](crate::ServerBuilder::webhooks).
    #[must_use]
    pub fn webhook(self, webhook: Webhook) -> Self {
        self.hook(Hook::of("run", webhook))
    }

    /// As [`webhook`](Self::webhook), in the way of a protocol.
    #[must_use]
    pub(crate) fn hook(mut self, hook: Hook) -> Self {
        self.hooks.push(hook);
        self
    }

    /// Sets the request's body, to tell whether a key comes with another request than before.
    #[must_use]
    pub fn body(mut self, body: &[u8]) -> Self {
        self.digest = Some(Sha256::digest(body).into());
        self
    }
}

impl App {
    /// Starts a run, and answers when it has begun: when its first entry is durable. One that [queues](WhenBusy::Queue) is answered
    /// at once. The run goes on by itself.
    ///
    /// # Errors
    /// 403 and 404 as the caller may; 400 for a webhook that cannot be; 409 if the session is busy; what else kept the run from beginning.
    pub async fn start(&self, caller: &Caller, start: Start) -> Result<FoundRun, ApiError> {
        caller.require(Scope::Run)?;
        for hook in &start.hooks {
            self.check_hook(hook).await?;
        }
        let (hooks, has_key) = (start.hooks.clone(), start.key.is_some());
        let run = self.begin(caller, start).await?;
        if self.dispatch().is_some() {
            return Ok(run); // who is told was noted before it was handed over
        }
        // The process may have ended after the run had begun, and before that was noted: then the key comes again.
        if run.is_new() || has_key {
            self.hook_usual(caller, &run, hooks).await?;
        } else if !hooks.is_empty() {
            self.hook(&run, hooks).await?;
        }
        Ok(run)
    }

    async fn begin(&self, caller: &Caller, start: Start) -> Result<FoundRun, ApiError> {
        let agent = self.agent(caller, &start.agent)?.agent().clone();
        let has_key = start.key.is_some();
        let named = Named::new(caller, agent.name(), start.session.as_deref(), start.key.as_deref())?;
        let session = SessionId::new(caller.tenant(), &named.session);
        let store_name = session.to_string();
        if let Some(there) = self.under_way(agent.name(), &start, &named, &store_name)? {
            return Ok(there);
        }
        self.allow()?;
        self.check_busy(start.request.when_busy)?;
        let request = self.of_caller(caller, start.request.session(session).run_id(named.run.clone()));
        // Who asks for a run again that there is spends nothing.
        let request = match has_key && self.journal().has_run(&store_name, &named.run).await? {
            true => self.charge_unchecked(request)?,
            false => self.charge(request).await?,
        };
        if let Some(dispatch) = self.dispatch() {
            return self.hand_over(&**dispatch, caller, agent.name().into(), &request, start.hooks).await;
        }
        let is_queued = matches!(request.when_busy, Some(WhenBusy::Queue { .. }));
        let asked = Asked {
            caller,
            id: named.run.as_str().into(),
            agent: agent.name().into(),
            session: store_name.as_str().into(),
            digest: start.digest,
            began: None,
            kept: self.keep_first(agent.name(), &request, is_queued, &store_name).await?,
            is_kept: is_queued,
        };
        let (live, is_new) = match self.0.live.drive(asked, || agent.start(request)) {
            Ok(driven) => driven,
            Err(too_many) => {
                if is_queued {
                    Kept::forget(&**self.journal(), &store_name, &named.run).await?;
                }
                return Err(too_many.into());
            }
        };
        let found = FoundRun::of_live(self.clone(), live.clone());
        if !is_new {
            return self.again(live.digest, start.digest, found);
        }
        match is_queued {
            true => Ok(found.started()),
            false => self.new_begun(caller, &live, &named, has_key).await,
        }
    }

    /// The run under way that a request is for: one that it steers, or that came of its key before.
    fn under_way(
        &self,
        agent: &str,
        start: &Start,
        named: &Named,
        session: &str,
    ) -> Result<Option<FoundRun>, ApiError> {
        let (has_key, busy) = (start.key.is_some(), start.request.when_busy);
        if has_key && matches!(busy, Some(WhenBusy::Steer | WhenBusy::Fork)) {
            let message = "what steers or forks a run is another request each time: it takes no Idempotency-Key";
            return Err(ApiError::invalid(message));
        }
        if busy == Some(WhenBusy::Steer)
            && let Some(there) = self.0.live.in_session(agent, session)
            && steer(&there.handle, &start.request)
        {
            return Ok(Some(FoundRun::of_live(self.clone(), there)));
        }
        let there = has_key.then(|| self.0.live.find(&named.run)).flatten();
        let again =
            |there: Arc<LiveRun>| self.again(there.digest, start.digest, FoundRun::of_live(self.clone(), there));
        there.map(again).transpose()
    }

    /// The request as the caller's: with what the caller may use.
    pub(super) fn of_caller(&self, caller: &Caller, mut request: RunRequest) -> RunRequest {
        request.stream = request.stream.or(Some(true));
        request.caps = caps(caller, request.caps);
        request.traceparent = request.traceparent.or_else(|| caller.traceparent());
        let user = SessionId::new(caller.tenant(), caller.subject()).to_string();
        self.allow_spending(caller, request.on_behalf_of(user))
    }

    /// A new run, as soon as it has begun.
    async fn new_begun(
        &self,
        caller: &Caller,
        live: &Arc<LiveRun>,
        named: &Named,
        has_key: bool,
    ) -> Result<FoundRun, ApiError> {
        match live.begins().await {
            Phase::Ended(end) if live.begun().is_none() => match &*end {
                // The run of this key began in another process, or long ago.
                Err(error) if error.kind() == ErrorKind::Stale && has_key => self.run(caller, &named.run, None).await,
                Err(error) => Err(ApiError::of(error).renamed(live.session(), &named.session)),
                Ok(_) => Err(ApiError::conflict("busy", "another run took the messages in its place")),
            },
            _ => Ok(FoundRun::of_live(self.clone(), live.clone()).started()),
        }
    }

    /// What is to be kept of a request. One that waits for its turn is kept at once, unless it was before: it is answered as soon as
    /// that is durable.
    async fn keep_first(
        &self,
        agent: &str,
        request: &RunRequest,
        is_queued: bool,
        session: &str,
    ) -> Result<Option<Kept>, ApiError> {
        let Some(run) = request.run_id.as_deref().filter(|_| is_queued) else {
            return Ok(Kept::lasting(agent, request));
        };
        let before = self.kept(session, run).await?;
        if before.is_none() && !self.journal().has_run(session, run).await? {
            let kept = Kept::new(agent, request).queued(request)?;
            kept.keep(&**self.journal(), session, run).await?;
            return Ok(Some(kept));
        }
        Ok(before)
    }

    /// Starts a run that waited for its turn in a process that is no more.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub(super) fn start_again(&self, caller: &Caller, kept: Kept) -> Result<Option<FoundRun>, ApiError> {
        let agent = self.agent(caller, &kept.agent)?.agent().clone();
        let Some(job) = &kept.queued else { return Ok(None) };
        let request = self.charge_unchecked(kept.brought.first(job.request(), agent.tools())?)?;
        let asked = Asked {
            caller,
            id: job.at.run.clone(),
            agent: kept.agent.clone(),
            session: job.at.session.clone(),
            digest: None,
            began: None,
            kept: Some(kept),
            is_kept: true,
        };
        let (live, _) = self.0.live.drive(asked, || agent.start(request))?;
        Ok(Some(FoundRun::of_live(self.clone(), live)))
    }

    /// Checks that runs begin here.
    pub(super) fn allow(&self) -> Result<(), ApiError> {
        if self.is_draining() { Err(draining()) } else { Ok(()) }
    }

    /// The run that a key gave before.
    fn again(&self, then: Option<[u8; 32]>, now: Option<[u8; 32]>, found: FoundRun) -> Result<FoundRun, ApiError> {
        // A run that went on in another request is not known by what it was asked for.
        if then.is_some() && now.is_some() && then != now {
            return Err(ApiError::idempotency_mismatch());
        }
        Ok(found)
    }
}

impl From<TooMany> for ApiError {
    fn from(TooMany(most): TooMany) -> Self {
        let message = format!("{most} runs are under way, and the key allows no more: wait for one to end");
        Self::too_many("too_many_runs", message, Duration::from_secs(5))
    }
}

/// 503: the server is about to end.
fn draining() -> ApiError {
    let message = "the server is about to end: ask another one, or come back in a moment";
    ApiError::new(http::StatusCode::SERVICE_UNAVAILABLE, "draining", message).after(Duration::from_secs(2))
}

/// What a run of the caller's may use.
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

/// Puts the messages of a request into a run under way; false if it takes none any more.
fn steer(handle: &agent::RunHandle, request: &RunRequest) -> bool {
    match &request.input {
        agent::run::RunInput::Messages(messages) => {
            messages.iter().all(|message| handle.steer(message.clone()).is_ok())
        }
        _ => false,
    }
}
