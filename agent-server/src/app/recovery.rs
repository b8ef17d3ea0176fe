//! Recovery of runs after the death of a process.

use std::{collections::HashMap, sync::Arc, time::Duration};

use agent::{SessionId, journal::RunStatus as Status};
use tokio::{sync::Semaphore, time::sleep};

use super::{App, FoundRun, brought::Kept, drained::is_drained};
use crate::{caller::Caller, error::ApiError};

/// Number of sessions that are read at once.
const PAGE: usize = 100;
/// Maximum number of concurrently resumed runs: a restart must not overload the models.
const AT_ONCE: usize = 32;
/// Pause between two resumptions.
const PACE: Duration = Duration::from_millis(20);
/// Interval of the search while a run may be leased by a dead process.
const SOON: Duration = Duration::from_secs(2);
/// Interval of the search otherwise.
const LATER: Duration = Duration::from_secs(60);

/// Run that no process drives, according to the journal.
enum Stopped {
    /// The run stopped without an end in the journal, or was stopped by a draining process.
    Begun(Caller, FoundRun),
    /// The run is queued.
    Queued(Caller, Kept),
}

impl App {
    /// Resumes stopped runs and delivers outstanding webhooks, periodically, until the server
    /// drains.
    pub(crate) async fn keep_recovering(&self) {
        if self.dispatch().is_some() && self.0.hooks.is_none() {
            return; // the backend resumes the runs, and there are no webhooks
        }
        let permits = Arc::new(Semaphore::new(AT_ONCE));
        let mut looked: HashMap<String, u64> = HashMap::new();
        while !self.is_draining() {
            let is_held = match self.recover(&permits, &mut looked).await {
                Ok(is_held) => is_held,
                Err(error) => {
                    tracing::warn!(%error, "the store could not be searched for stopped runs");
                    true
                }
            };
            sleep(if is_held { SOON } else { LATER }).await;
        }
    }

    /// Resumes the stopped runs. Returns `true` if another process may still drive one of them.
    /// `looked` contains the sessions without stopped runs, with the time of their last write.
    async fn recover(&self, permits: &Arc<Semaphore>, looked: &mut HashMap<String, u64>) -> Result<bool, ApiError> {
        let (mut after, mut is_held) = (String::new(), false);
        loop {
            let names = self.journal().list("", &after, PAGE).await?;
            let Some(last) = names.last() else { return Ok(is_held) };
            after.clone_from(last);
            for name in names {
                let Some(id) = SessionId::parse(&name) else { continue };
                let Some(info) = self.journal().info(&name).await? else { continue };
                if looked.get(&name) == Some(&info.entries) {
                    continue;
                }
                let mut is_quiet = true;
                // An unreadable session must not prevent the others from being resumed.
                let stopped = self.stopped(&id).await.unwrap_or_else(|error| {
                    tracing::warn!(session = &*name, %error, "a session could not be searched for stopped runs");
                    is_quiet = false;
                    Vec::new()
                });
                if self.tell_left(&Caller::new(id.user(), "recovery"), &id).await.unwrap_or(true) {
                    is_quiet = false;
                }
                for stopped in stopped {
                    if self.is_draining() {
                        return Ok(false);
                    }
                    is_quiet = false;
                    if !self.recover_one(stopped, permits).await {
                        is_held = true;
                        break; // queued runs of this session wait for this one
                    }
                }
                if is_quiet {
                    looked.insert(name, info.entries);
                }
            }
        }
    }

    /// Resumes a run. Returns `false` if another process may still drive it.
    async fn recover_one(&self, stopped: Stopped, permits: &Arc<Semaphore>) -> bool {
        let Ok(permit) = permits.clone().acquire_owned().await else { return true };
        sleep(PACE).await;
        let run = stopped.id().to_owned();
        let run = &*run;
        let recovered = match stopped {
            Stopped::Begun(caller, run) => self.go_on(&caller, &run, Vec::new(), |request| request).await.map(Some),
            Stopped::Queued(caller, kept) => self.start_again(&caller, kept),
        };
        match recovered {
            Ok(None) => true,
            Ok(Some(run)) => {
                tracing::info!(run = run.id(), agent = run.agent(), "a stopped run was resumed");
                tokio::spawn(async move {
                    run.ended_here().await;
                    drop(permit);
                });
                true
            }
            Err(error) if error.code() == "busy" => false,
            Err(error) => {
                tracing::warn!(run, %error, "a stopped run could not be resumed");
                true
            }
        }
    }

    /// Returns the runs of a session that are neither active here nor suspended: their process died
    /// or drained.
    async fn stopped(&self, id: &SessionId) -> Result<Vec<Stopped>, ApiError> {
        if self.dispatch().is_some() {
            return Ok(Vec::new()); // the backend resumes them
        }
        let name = id.to_string();
        let index = self.journal().index(&name).await?;
        let is_here = |run: &str| self.0.live.find(run).is_some_and(|run| !run.is_over());
        let mut stopped = Vec::new();
        for agent in &self.0.agents.names() {
            let Some(ids) = index.look(|index| index.unfinished(agent).map(|open| open.ids)) else { continue };
            let goes_on =
                index.look(|index| match index.run(&ids.run_id).and_then(|(_, record)| record.status.as_ref()) {
                    None => true,
                    Some(Status::Paused | Status::Cancelled) => is_drained(index, &ids.run_id),
                    Some(_) => false,
                });
            if goes_on && !is_here(&ids.run_id) {
                let caller = on_behalf_of(id, ids.user.as_deref());
                let run = self.run(&caller, &ids.run_id, Some(id.session())).await?;
                stopped.push(Stopped::Begun(caller, run));
            }
        }
        let waiting = index.look(Kept::waiting).into_iter();
        stopped.extend(waiting.filter(|(run, kept)| !is_here(run) && self.0.agents.find(&kept.agent).is_some()).map(
            |(_, kept)| {
                let user = kept.queued.as_ref().and_then(|job| job.user.as_deref());
                Stopped::Queued(on_behalf_of(id, user), kept)
            },
        ));
        Ok(stopped)
    }
}

impl Stopped {
    fn id(&self) -> &str {
        match self {
            Self::Begun(_, run) => run.id(),
            Self::Queued(_, kept) => kept.queued.as_ref().map_or("", |job| &job.at.run),
        }
    }
}

/// Derives the caller of a run from the recorded tenant and user.
fn on_behalf_of(session: &SessionId, user: Option<&str>) -> Caller {
    let subject = user.and_then(SessionId::parse).map_or_else(|| "recovery".to_owned(), |id| id.session().to_owned());
    Caller::new(session.user(), subject)
}
