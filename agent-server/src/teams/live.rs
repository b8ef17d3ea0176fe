//! Runs of teams in this process.

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use agent::{
    Caps, Part, SessionId,
    journal::Journal,
    team::{LEADER, Team, TeamEvents, TeamHandle, TeamHistory, TeamRequest},
};
use tokio::sync::watch;

use super::Teams;
use crate::{app::App, caller::Caller, error::ApiError, spending::Allowance, trace};

/// Active runs by session.
#[derive(Clone, Default)]
pub(super) struct LiveRuns(Arc<Mutex<HashMap<Arc<str>, Live>>>);

/// An active run.
#[derive(Clone)]
pub(super) struct Live {
    pub(super) handle: TeamHandle,
    /// Subject that started the run.
    subject: Arc<str>,
    /// The error of the run once it has ended with one; closed at the end.
    ended: watch::Receiver<Option<String>>,
}

impl Live {
    /// Waits for the end of the run, and returns its error.
    pub(super) async fn ended(&self) -> Option<String> {
        let mut ended = self.ended.clone();
        while ended.changed().await.is_ok() {}
        ended.borrow().clone()
    }
}

impl LiveRuns {
    pub(super) fn get(&self, session: &str) -> Option<Live> {
        self.lock().get(session).cloned()
    }

    fn of_subject(&self, subject: &str) -> usize {
        self.lock().values().filter(|live| *live.subject == *subject).count()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Arc<str>, Live>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts a run on a task of its own, and returns it with all its events. A session has one at a time.
    fn spawn(&self, team: &Team, request: TeamRequest, subject: Arc<str>) -> Result<(Live, TeamEvents), ApiError> {
        let run = team.start(request);
        let handle = run.handle();
        let events = handle.events();
        let session = handle.session().name().clone();
        let (end, ended) = watch::channel(None);
        let live = Live { handle, subject, ended };
        {
            let mut all = self.lock();
            if all.contains_key(&session) {
                return Err(ApiError::conflict("busy", "the team is at work in this session: send it a message"));
            }
            all.insert(session.clone(), live.clone());
        }
        let runs = self.clone();
        tokio::spawn(async move {
            if let Err(error) = run.await {
                tracing::warn!(%error, "a run of a team stopped");
                end.send_replace(Some(error.message().to_owned()));
            }
            runs.lock().remove(&session);
        });
        Ok((live, events))
    }
}

impl Teams {
    /// Starts a run with a message to the leader, or sends the message to the run that is active.
    pub(super) async fn say(
        &self,
        app: &App,
        caller: &Caller,
        team: &Team,
        session: &Arc<str>,
        parts: Vec<Part>,
        key: Option<String>,
    ) -> Result<(Live, TeamEvents), ApiError> {
        if let Some(live) = self.live().get(session) {
            if team.pattern().is_some() {
                let message = "the pattern is at work in this session, and takes no further messages: wait for its end";
                return Err(ApiError::conflict("busy", message));
            }
            let events = live.handle.events();
            live.handle.session().send(LEADER, parts, key).await?;
            return Ok((live, events));
        }
        let request = TeamRequest::parts(parts).session(session.clone());
        let request = key.into_iter().fold(request, TeamRequest::run_id);
        self.start(app, caller, team, request)
    }

    /// Continues the open run of a session, unless it is active here.
    pub(super) fn resume(&self, app: &App, caller: &Caller, team: &Team, session: &Arc<str>) -> Result<Live, ApiError> {
        match self.live().get(session) {
            Some(live) => Ok(live),
            None => Ok(self.start(app, caller, team, TeamRequest::resume(session.clone()))?.0),
        }
    }

    fn start(
        &self,
        app: &App,
        caller: &Caller,
        team: &Team,
        mut request: TeamRequest,
    ) -> Result<(Live, TeamEvents), ApiError> {
        if app.is_draining() {
            let message = "the server is shutting down: retry the request in a moment";
            return Err(
                ApiError::new(http::StatusCode::SERVICE_UNAVAILABLE, "draining", message).after(Duration::from_secs(2))
            );
        }
        if !Allowance::of(caller).is_empty() {
            let message = "runs of teams are not counted per day and month: use a key without such limits";
            return Err(ApiError::forbidden(message));
        }
        let user = SessionId::new(caller.tenant(), caller.subject()).to_string();
        if caller.limited().runs.is_some_and(|most| self.live().of_subject(&user) >= most) {
            let message = "too many active runs: wait until one ends";
            return Err(ApiError::too_many("too_many_runs", message, Duration::from_secs(5)));
        }
        request.caps = caps(caller);
        request.traceparent = trace::current();
        let request = request.streaming(true).on_behalf_of(user.clone());
        self.live().spawn(team, request, user.into())
    }

    /// Pauses all active runs, and waits `within` this time until they are suspended.
    pub(crate) async fn drain(&self, within: Duration) {
        let all: Vec<_> = self.live().lock().values().cloned().collect();
        all.iter().for_each(|live| live.handle.pause());
        let ended = futures::future::join_all(all.iter().map(Live::ended));
        let _ = tokio::time::timeout(within, ended).await; // the others are resumed as after a crash
    }

    /// Resumes runs that an earlier process left open, in all sessions of the store. Runs that wait for
    /// answers are left alone.
    pub(crate) async fn recover(&self, journal: &dyn Journal) {
        if self.0.teams.is_empty() {
            return;
        }
        let sessions = match journal.sessions().await {
            Ok(sessions) => sessions,
            Err(error) => return tracing::warn!(%error, "the sessions of teams could not be read"),
        };
        for session in sessions {
            if let Err(error) = self.recover_session(journal, session.as_str()).await {
                tracing::warn!(%error, "a run of a team could not be resumed");
            }
        }
    }

    async fn recover_session(&self, journal: &dyn Journal, session: &str) -> agent::Result<()> {
        let Some(info) = journal.info(session).await? else { return Ok(()) };
        let mut names = info.agents.iter().filter_map(|agent| agent.strip_prefix("team:"));
        let Some(team) = names.find_map(|name| self.0.teams.get(name)) else { return Ok(()) };
        let state = TeamHistory::read(journal, session).await?.state;
        let waits = !state.questions().is_empty();
        if state.is_open() && !waits && self.live().get(session).is_none() {
            let request = TeamRequest::resume(session);
            let _ = self.live().spawn(&team.team, request, Arc::default()); // it is active already
        }
        Ok(())
    }
}

/// Limits of a run of the caller.
fn caps(caller: &Caller) -> Option<Caps> {
    let limits = caller.limited();
    let tokens = limits.tokens_per_run.map(|most| Caps::default().tokens(most));
    match limits.cost_per_run {
        Some(most) => Some(tokens.unwrap_or_default().cost(most)),
        None => tokens,
    }
}

impl fmt::Debug for LiveRuns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LiveRuns").field("active", &self.lock().len()).finish_non_exhaustive()
    }
}
