//! A run that was found, under way or in the journal.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use agent::{
    Checkpoint, Event, ExitReason, Message, Result as Outcome, RunEnd, RunHandle, Usage,
    engine::EventHub,
    event::Position,
    journal::{RunRecord, RunStatus as Kept},
    run::RunIds,
};
use futures::{
    StreamExt,
    stream::{self, BoxStream},
};

use super::{
    App, RunStatus, RunView,
    live::{LiveRun, Phase},
    names,
};
use crate::{caller::Caller, error::ApiError};

/// A run of the caller's tenant. Cheap to clone.
#[derive(Clone)]
pub struct FoundRun {
    app: App,
    id: Arc<str>,
    agent: Arc<str>,
    /// The session, by its name in the store.
    store_name: Arc<str>,
    live: Option<Arc<LiveRun>>,
    is_new: bool,
}

impl App {
    /// The run of this id: under way, recent, or in the journal. Its session is in the id of a run that the server started; of another
    /// it must be said.
    ///
    /// # Errors
    /// 404 if the caller's tenant has no such run; those of the store.
    pub async fn run(&self, caller: &Caller, id: &str, session: Option<&str>) -> Result<FoundRun, ApiError> {
        let unknown = || ApiError::not_found(format!("there is no run '{id}'"));
        let live = self.0.live.find(id).filter(|run| *run.tenant == *caller.tenant());
        if let Some(live) = live.filter(|run| run.begun().is_some() || !run.is_over()) {
            return if caller.may_use(&live.agent) {
                Ok(FoundRun::of_live(self.clone(), live))
            } else {
                Err(unknown())
            };
        }
        let named = session.map(str::to_owned).or_else(|| names::session_of(id)).ok_or_else(unknown)?;
        let store_name: Arc<str> = self.session_id(caller, &named).into();
        let index = self.journal().whole_index(&store_name).await?;
        let agent = index.look(|index| index.run(id).map(|(agent, _)| agent.clone())).ok_or_else(unknown)?;
        if !caller.may_use(&agent) {
            return Err(unknown());
        }
        Ok(FoundRun { app: self.clone(), id: id.into(), agent, store_name, live: None, is_new: false })
    }

    /// The runs of the caller's tenant that are under way in this process or ended lately, newest first.
    pub fn runs(&self, caller: &Caller) -> Vec<FoundRun> {
        let runs = self.0.live.of_tenant(caller.tenant()).into_iter().filter(|run| caller.may_use(&run.agent));
        runs.map(|run| FoundRun::of_live(self.clone(), run)).collect()
    }
}

impl FoundRun {
    pub(super) fn of_live(app: App, live: Arc<LiveRun>) -> Self {
        let store_name = live.session().clone();
        Self { app, id: live.id.clone(), agent: live.agent.clone(), store_name, live: Some(live), is_new: false }
    }

    pub(super) fn started(self) -> Self {
        Self { is_new: true, ..self }
    }

    /// Its id.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The agent.
    pub fn agent(&self) -> &str {
        &self.agent
    }

    /// The session, as the client names it.
    pub fn session(&self) -> Arc<str> {
        names::public(self.store_name())
    }

    /// The session's name in the store, which clients are not told.
    pub fn store_name(&self) -> &Arc<str> {
        self.live.as_ref().map_or(&self.store_name, |live| live.session())
    }

    /// False if it was there before it was asked for: its idempotency key came again.
    pub fn is_new(&self) -> bool {
        self.is_new
    }

    /// What steers it, while it is under way in this process.
    pub fn handle(&self) -> Option<&RunHandle> {
        let live = self.live.as_ref().filter(|live| !live.is_over());
        live.map(|live| &live.handle)
    }

    /// Cancels it, if it is under way in this process; false if it is not. No process goes on with it by itself.
    pub fn cancel(&self) -> bool {
        self.stop(RunHandle::cancel)
    }

    /// As [`cancel`](Self::cancel), at the next step.
    pub fn pause(&self) -> bool {
        self.stop(RunHandle::pause)
    }

    fn stop(&self, stop: impl FnOnce(&RunHandle)) -> bool {
        let live = self.live.as_ref().filter(|live| !live.is_over());
        live.inspect(|live| live.stop(stop)).is_some()
    }

    /// How it ended, if it did so in this process lately.
    pub fn end(&self) -> Option<Arc<Outcome<RunEnd>>> {
        match self.live.as_ref()?.phase() {
            Phase::Ended(end) => Some(end),
            _ => None,
        }
    }

    /// Waits until it is not under way in this process.
    pub async fn ended(&self) {
        if let Some(live) = &self.live {
            live.ends().await;
        }
    }

    /// All events of the run and those below it after a place, over all its attempts, from the journal and as they come. It ends when
    /// the run is at rest. Sessions have the names of the store: see [`App::public`].
    ///
    /// # Errors
    /// Those of the store.
    pub async fn events(&self, after: Option<Position>) -> Result<BoxStream<'static, Event>, ApiError> {
        let after = after.unwrap_or_default();
        let Some((live, seq)) = self.begun().await else { return self.recorded(after).await };
        let told = live.handle.events_after(seq, after);
        let went_on =
            matches!(live.phase(), Phase::Ended(end) if matches!(&*end, Ok(end) if end.checkpoint().is_some()));
        if !went_on {
            return Ok(told.boxed());
        }
        // It stopped here: what came since, in another process, is in the journal.
        let last = Arc::new(AtomicU64::new(after.seq));
        let (seen, run) = (last.clone(), self.clone());
        let told = told.inspect(move |event| seen.store(event.position.seq, Ordering::Relaxed));
        let since = stream::once(async move {
            let after = Position { seq: last.load(Ordering::Relaxed), after: u32::MAX };
            run.recorded(after).await.unwrap_or_else(|error| {
                tracing::error!(run = run.id(), %error, "what came of a run elsewhere was not read");
                stream::empty().boxed()
            })
        });
        Ok(told.chain(since.flatten()).boxed())
    }

    /// The run in this process, and where it began, as soon as it has.
    async fn begun(&self) -> Option<(&Arc<LiveRun>, u64)> {
        let live = self.live.as_ref()?;
        if let Phase::Waiting = live.phase() {
            live.begins().await;
        }
        Some((live, live.begun()?.seq))
    }

    /// The events after a place that the journal has.
    async fn recorded(&self, after: Position) -> Result<BoxStream<'static, Event>, ApiError> {
        let journal = self.app.journal();
        let Some(record) = self.record().await? else { return Ok(stream::empty().boxed()) };
        let newest = journal.newest(self.store_name()).await?.map_or(0, |entry| entry.seq);
        let mut ids = RunIds::root(self.agent.clone(), self.store_name().clone());
        (ids.run_id, ids.root_run_id) = (self.id.clone(), self.id.clone());
        let hub = EventHub::at_rest(journal.clone(), &Arc::new(ids), record.seq, newest);
        Ok(hub.subscribe_after(record.seq, after).boxed())
    }

    /// Where it stands, if it is its agent's newest run in the session and not finished: with the questions that it waits for.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn checkpoint(&self) -> Result<Option<Checkpoint>, ApiError> {
        let index = self.app.journal().index(self.store_name()).await?;
        let open = index.look(|index| index.unfinished(&self.agent));
        Ok(open.filter(|open| open.ids.run_id == self.id))
    }

    /// What the journal has of it.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn record(&self) -> Result<Option<RunRecord>, ApiError> {
        let index = self.app.journal().whole_index(self.store_name()).await?;
        Ok(index.look(|index| index.run(&self.id).map(|(_, record)| record.clone())))
    }

    /// The run as clients see it.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn view(&self) -> Result<RunView, ApiError> {
        let record = self.record().await?;
        let is_live = self.handle().is_some();
        let status = match (&record, is_live) {
            (None, true) => RunStatus::Queued,
            (_, true) => RunStatus::Running,
            (record, false) => RunStatus::of(record.as_ref().and_then(|record| record.status.as_ref())),
        };
        let questions = match status {
            RunStatus::Waiting => self.checkpoint().await?.map(|open| open.questions).unwrap_or_default(),
            _ => Vec::new(),
        };
        let asked = self.live.as_ref().map_or(0, |live| live.asked);
        Ok(RunView {
            run: self.id.to_string(),
            agent: self.agent.to_string(),
            session: self.session().to_string(),
            status,
            live: is_live,
            started: record.as_ref().map_or(asked, |record| record.started),
            ended: record.as_ref().and_then(|record| record.ended).filter(|_| !is_live),
            steps: record.as_ref().map_or(0, |record| record.steps),
            usage: record.as_ref().map_or_else(Usage::default, |record| record.usage),
            reason: record.as_ref().and_then(reason),
            error: record.as_ref().and_then(|record| record.error.clone()).filter(|_| !is_live),
            answer: if status == RunStatus::Finished { self.answer().await? } else { None },
            questions,
        })
    }

    /// The final text: as the run gave it, or else what was said last in the session, if this was its newest run.
    async fn answer(&self) -> Result<Option<String>, ApiError> {
        if let Some(end) = self.end()
            && let Ok(RunEnd::Finished(finished)) = &*end
        {
            return Ok(Some(finished.answer.clone()));
        }
        let index = self.app.journal().index(self.store_name()).await?;
        let view = index.look(|index| index.view(&self.agent));
        let is_newest = view.last_run.is_some_and(|(run, _)| run == self.id);
        let said =
            view.history.iter().next_back().filter(|message| is_newest && matches!(message, Message::Assistant(_)));
        Ok(said.map(Message::text))
    }
}

fn reason(record: &RunRecord) -> Option<ExitReason> {
    match &record.status {
        Some(Kept::Finished(reason)) => Some(reason.clone()),
        _ => None,
    }
}

impl fmt::Debug for FoundRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FoundRun").field("id", &self.id).field("agent", &self.agent).finish_non_exhaustive()
    }
}
