//! Handle of a run, active or in the journal.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use agent::{
    Checkpoint, ErrorKind, Event, ExitReason, Message, Result as Outcome, RunEnd, SessionId, Usage,
    dispatch::{RunAddress, Signal},
    event::Position,
    journal::{RunRecord, RunStatus as Status, SessionIndex},
};
use futures::{
    StreamExt,
    stream::{self, BoxStream},
};

use super::{
    App, RunStatus, RunView,
    brought::{Over, PersistedRequest},
    live::{LiveRun, Phase},
    names,
    viewers::Viewers,
};
use crate::{caller::Caller, error::ApiError};

/// Run of the caller's tenant. Cheap to clone.
#[derive(Clone)]
pub struct FoundRun {
    app: App,
    id: Arc<str>,
    agent: Arc<str>,
    /// Name of the session in the store.
    store_name: Arc<str>,
    live: Option<Arc<LiveRun>>,
    is_new: bool,
}

impl App {
    /// Finds the run of this id: active, recent, or in the journal. The id of a run that the server
    /// started contains its session; for other runs the session must be given.
    ///
    /// # Errors
    /// 404 if the caller's tenant has no such run; the errors of the store.
    pub async fn run(&self, caller: &Caller, id: &str, session: Option<&str>) -> Result<FoundRun, ApiError> {
        let unknown = || ApiError::not_found(format!("unknown run '{id}'"));
        let store_name = session.map(|session| self.session_id(caller, session).to_string());
        let live = self.0.local.find(caller.tenant(), store_name.as_deref(), id);
        if let Some(live) = live.filter(|run| run.is_known() || !run.is_over()) {
            return if caller.may_use(live.agent()) {
                Ok(FoundRun::of_live(self.clone(), live))
            } else {
                Err(unknown())
            };
        }
        let named = session.map(str::to_owned).or_else(|| names::session_of(id)).ok_or_else(unknown)?;
        let store_name: Arc<str> = self.session_id(caller, &named).into();
        let agent_of = |index: &SessionIndex| {
            let begun = index.run(id).map(|(agent, _)| agent.clone());
            begun.or_else(|| PersistedRequest::of_run(index, id).map(|kept| kept.agent))
        };
        let agent = match self.look(&store_name, agent_of).await? {
            Some(agent) => agent,
            None => self.handed_over(caller, &store_name, id).await?.ok_or_else(unknown)?,
        };
        if !caller.may_use(&agent) {
            return Err(unknown());
        }
        Ok(FoundRun { app: self.clone(), id: id.into(), agent, store_name, live: None, is_new: false })
    }

    /// Returns the run at this address.
    pub(super) fn found(&self, at: &RunAddress) -> FoundRun {
        match self.0.local.find_at(at) {
            Some(live) => FoundRun::of_live(self.clone(), live),
            None => FoundRun::elsewhere_of(self.clone(), at.clone()),
        }
    }

    /// Returns the checkpoint of an agent's newest run in a session, unless the run is finished.
    ///
    /// # Errors
    /// The errors of the store.
    pub(crate) async fn open(&self, session: &SessionId, agent: &str) -> Result<Option<Checkpoint>, ApiError> {
        Ok(self.journal().index(&session.to_string()).await?.look(|index| open(index, agent)))
    }

    /// Looks into the index of a session; the whole index is read only where its newest part has no
    /// result.
    pub(super) async fn look<T>(
        &self,
        session: &str,
        find: impl Fn(&SessionIndex) -> Option<T>,
    ) -> Result<Option<T>, ApiError> {
        let newest = self.journal().index(session).await?;
        match newest.look(&find) {
            None if !newest.look(SessionIndex::is_whole) => Ok(self.journal().whole_index(session).await?.look(&find)),
            found => Ok(found),
        }
    }

    /// Returns the runs of the caller's tenant that are active in this process or ended recently,
    /// newest first.
    pub fn runs(&self, caller: &Caller) -> Vec<FoundRun> {
        let runs = self.0.local.of_tenant(caller.tenant()).into_iter().filter(|run| caller.may_use(run.agent()));
        runs.map(|run| FoundRun::of_live(self.clone(), run)).collect()
    }
}

impl FoundRun {
    pub(super) fn of_live(app: App, live: Arc<LiveRun>) -> Self {
        let store_name = live.session().clone();
        let at = &live.job.at;
        Self { app, id: at.run.clone(), agent: at.agent.clone(), store_name, live: Some(live), is_new: false }
    }

    /// Returns the run at this address, whether or not it is active in this process.
    pub(super) fn elsewhere_of(app: App, at: RunAddress) -> Self {
        Self { app, id: at.run, agent: at.agent, store_name: at.session, live: None, is_new: false }
    }

    pub(super) fn started(self) -> Self {
        Self { is_new: true, ..self }
    }

    /// Returns the run's id.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Returns the name of the agent.
    pub fn agent(&self) -> &str {
        &self.agent
    }

    /// Returns the session's name, as the client knows it.
    pub fn session(&self) -> Arc<str> {
        names::public(self.store_name())
    }

    /// Returns the session's name in the store, which clients do not see.
    pub fn store_name(&self) -> &Arc<str> {
        self.live.as_ref().map_or(&self.store_name, |live| live.session())
    }

    /// True unless the run was started in this process and has not begun.
    pub(super) fn has_begun(&self) -> bool {
        self.live.as_ref().is_none_or(|live| live.begun().is_some())
    }

    /// False if the run already existed: its idempotency key was used before.
    pub fn is_new(&self) -> bool {
        self.is_new
    }

    /// True if the run is queued or active in this process.
    pub fn is_live(&self) -> bool {
        self.live.as_ref().is_some_and(|live| !live.is_over())
    }

    /// Cancels the run, if it is active in this process, and returns whether it is. No process
    /// resumes it automatically.
    pub fn cancel(&self) -> bool {
        self.live.as_ref().is_some_and(|live| live.signal(Signal::Cancel).unwrap_or(false))
    }

    /// Returns the end of the run, if it ended in this process recently.
    pub fn end(&self) -> Option<Arc<Outcome<RunEnd>>> {
        self.live.as_ref()?.end().cloned()
    }

    /// Waits until the run is not active in this process.
    pub(super) async fn ended_here(&self) {
        if let Some(live) = &self.live {
            live.reaches(Phase::Ended).await;
        }
    }

    /// Returns the viewers of the run, while it is active in this process.
    pub(super) fn viewers(&self) -> Option<&Viewers> {
        self.live.as_ref().map(|live| &live.viewers)
    }

    /// Returns the state shared by the handlers.
    pub(super) fn app(&self) -> &App {
        &self.app
    }

    /// Waits until the run stops, in any process, or until this process shuts down.
    pub async fn ended(&self) {
        if let Some(live) = &self.live {
            live.reaches(Phase::Ended).await;
            if live.end().is_some_and(|end| !goes_on(end)) {
                return;
            }
        }
        if let Err(error) = self.rests().await {
            tracing::warn!(run = self.id(), %error, "the state of a run could not be read");
        }
    }

    /// Streams all events of the run and its descendants after a position, over all its attempts,
    /// from the journal and live. Ends when the run stops. Session names are those of the store:
    /// see [`App::public`].
    ///
    /// # Errors
    /// The errors of the store.
    pub async fn events(&self, after: Option<Position>) -> Result<BoxStream<'static, Event>, ApiError> {
        let after = after.unwrap_or_default();
        let Some((live, seq)) = self.begun().await else { return self.elsewhere(after).await };
        let told = live.handle().ok_or_else(ApiError::internal)?.events_after(seq, after);
        let went_on = live.end().is_some_and(|end| goes_on(end));
        if !went_on {
            return Ok(told.boxed());
        }
        // The run stopped here: later events of other processes are in the journal.
        let last = Arc::new(AtomicU64::new(after.seq));
        let (seen, run) = (last.clone(), self.clone());
        let told = told.inspect(move |event| seen.store(event.position.seq, Ordering::Relaxed));
        let since = stream::once(async move {
            let after = Position { seq: last.load(Ordering::Relaxed), after: u32::MAX };
            run.elsewhere(after).await.unwrap_or_else(|error| {
                tracing::error!(run = run.id(), %error, "the events of a run in another process could not be read");
                stream::empty().boxed()
            })
        });
        Ok(told.chain(since.flatten()).boxed())
    }

    /// Waits until the run has begun in this process, and returns it with its position.
    async fn begun(&self) -> Option<(&Arc<LiveRun>, u64)> {
        let live = self.live.as_ref()?;
        live.reaches(Phase::Begun).await;
        Some((live, live.begun()?.seq))
    }

    /// Returns the run's checkpoint with its open questions, if it is its agent's newest run in the
    /// session and not finished. A cancelled run has no checkpoint.
    ///
    /// # Errors
    /// The errors of the store.
    pub async fn checkpoint(&self) -> Result<Option<Checkpoint>, ApiError> {
        let index = self.app.journal().index(self.store_name()).await?;
        Ok(index.look(|index| open(index, &self.agent)).filter(|open| open.ids.run_id == self.id))
    }

    /// Returns the run's record in the journal.
    ///
    /// # Errors
    /// The errors of the store.
    pub async fn record(&self) -> Result<Option<RunRecord>, ApiError> {
        self.app.look(self.store_name(), |index| index.run(&self.id).map(|(_, record)| record.clone())).await
    }

    /// Returns the public view of the run.
    ///
    /// # Errors
    /// The errors of the store.
    pub async fn view(&self) -> Result<RunView, ApiError> {
        let record = self.record().await?;
        let is_live = self.is_live();
        let kept = match (&record, is_live) {
            (None, false) => self.app.kept(self.store_name(), &self.id).await?,
            _ => None,
        };
        let status = match (&record, is_live) {
            (None, true) => RunStatus::Queued,
            (_, true) => RunStatus::Running,
            (None, false) => RunStatus::of_kept(kept.as_ref()),
            (Some(record), false) => RunStatus::of(record.status.as_ref()),
        };
        let standing = match status {
            RunStatus::Finished | RunStatus::Running => None,
            _ if is_live => None,
            // A run that the journal shows as stopped may continue in the backend: it was requeued,
            // is retried, or has its answers.
            _ => self.standing(record.is_some()).await?,
        };
        let never_began = record.is_none() && matches!(standing, Some((RunStatus::Paused | RunStatus::Cancelled, _)));
        if never_began && self.record().await?.is_some() {
            return Box::pin(self.view()).await; // it began and stopped in between
        }
        let (status, given_up) = standing.unwrap_or((status, None));
        let (given_up, given_up_at) = given_up.map(|given_up| (given_up.error, given_up.at)).unzip();
        let refused = kept.as_ref().and_then(|kept| match &kept.over {
            Some(Over::Refused(why)) => Some(why.replace(&**self.store_name(), &self.session())),
            _ => None,
        });
        let questions = match status {
            RunStatus::Waiting => self.checkpoint().await?.map(|open| open.questions).unwrap_or_default(),
            _ => Vec::new(),
        };
        let asked = self.live.as_ref().map(|live| live.asked).or(kept.map(|kept| kept.asked)).unwrap_or_default();
        Ok(RunView {
            run: self.id.to_string(),
            agent: self.agent.to_string(),
            session: self.session().to_string(),
            status,
            live: is_live,
            started: record.as_ref().map_or(asked, |record| record.started),
            ended: given_up_at.flatten().or(record.as_ref().and_then(|record| record.ended)).filter(|_| !is_live),
            steps: record.as_ref().map_or(0, |record| record.steps),
            usage: record.as_ref().map_or_else(Usage::default, |record| record.usage),
            reason: record.as_ref().and_then(reason),
            error: record
                .as_ref()
                .and_then(|record| record.error.clone())
                .or(refused)
                .or(given_up)
                .filter(|_| !is_live),
            answer: if status == RunStatus::Finished { self.answer().await? } else { None },
            questions,
        })
    }

    /// Returns the final text: from the run's end, or else the agent's last message before the next
    /// run.
    async fn answer(&self) -> Result<Option<String>, ApiError> {
        if let Some(end) = self.end()
            && let Ok(RunEnd::Finished(finished)) = &*end
        {
            return Ok(Some(finished.answer.clone()));
        }
        let history = self.app.look(self.store_name(), |index| index.history_after(&self.id)).await?;
        let said = history.as_ref().and_then(|history| history.iter().next_back());
        Ok(said.filter(|message| matches!(message, Message::Assistant(_))).map(Message::text))
    }
}

/// Returns the checkpoint of an agent's newest run in a session, unless it is finished or
/// cancelled.
pub(super) fn open(index: &SessionIndex, agent: &str) -> Option<Checkpoint> {
    let mut open = index.unfinished(agent)?;
    if index.run(&open.ids.run_id).is_some_and(|(_, record)| record.status == Some(Status::Cancelled)) {
        open.questions.clear();
    }
    Some(open)
}

/// True if a run with this end may resume in another process.
fn goes_on(end: &Outcome<RunEnd>) -> bool {
    match end {
        Ok(end) => end.checkpoint().is_some(),
        Err(error) => error.kind() == ErrorKind::Stale,
    }
}

fn reason(record: &RunRecord) -> Option<ExitReason> {
    match &record.status {
        Some(Status::Finished(reason)) => Some(reason.clone()),
        _ => None,
    }
}

impl fmt::Debug for FoundRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FoundRun").field("id", &self.id).field("agent", &self.agent).finish_non_exhaustive()
    }
}
