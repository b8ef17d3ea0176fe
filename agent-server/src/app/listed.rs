//! List of runs.

use std::collections::HashSet;

use agent::{
    SessionId,
    dispatch::{JobStatusKind, RunAddress, Wanted},
    journal::{RunQuery, RunSummary},
};
use futures::future;

use super::{App, FoundRun, RunStatus, RunView, names};
use crate::{caller::Caller, error::ApiError};

/// Filter of a list of runs.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RunsQuery<'a> {
    pub(crate) session: Option<&'a str>,
    pub(crate) agent: Option<&'a str>,
    /// Name of the user, as the client knows it.
    pub(crate) user: Option<&'a str>,
    pub(crate) status: Option<RunStatus>,
    pub(crate) limit: usize,
}

impl App {
    /// Lists runs of the caller's tenant, newest first: those that have begun, from the store's
    /// summaries, and those that are queued. Active runs have their current status.
    ///
    /// # Errors
    /// The errors of the store and of the queue.
    pub(crate) async fn list(&self, caller: &Caller, wanted: RunsQuery<'_>) -> Result<Vec<RunView>, ApiError> {
        let unbegun = self.unbegun(caller, &wanted).await?;
        let mut query = RunQuery::default().prefix(names::prefix(caller.tenant())).limit(wanted.limit);
        query.agents = caller.among(wanted.agent);
        query.session = wanted.session.map(|name| self.session_id(caller, name).to_string());
        query.user = wanted.user.map(|user| SessionId::new(caller.tenant(), user).to_string());
        if let Some(RunStatus::Waiting) = wanted.status {
            query.state = RunQuery::waiting().state;
        }
        let mut views = future::try_join_all(unbegun.iter().map(FoundRun::view)).await?;
        let mut listed: HashSet<_> = unbegun.iter().map(FoundRun::address).collect();
        let fits = |view: &RunView| wanted.status.is_none_or(|status| status == view.status);
        views.retain(fits);
        while views.len() < wanted.limit {
            let page = self.journal().runs(&query).await?;
            let Some(last) = page.last() else { break };
            let is_last = page.len() < query.limit;
            query = query.before(last);
            let new = page.into_iter().filter(|run| listed.insert(address(run)));
            let page = future::try_join_all(new.map(|run| self.viewed(caller, run))).await?;
            views.extend(page.into_iter().filter(fits));
            // Without a filter, the first page is the list.
            if is_last || wanted.status.is_none() {
                break;
            }
        }
        views.sort_by(|one, two| (two.started, &two.run).cmp(&(one.started, &one.run)));
        views.truncate(wanted.limit);
        Ok(views)
    }

    /// Returns the queued runs, and those that ended here before they began.
    async fn unbegun(&self, caller: &Caller, wanted: &RunsQuery<'_>) -> Result<Vec<FoundRun>, ApiError> {
        if wanted.user.is_some() {
            return Ok(Vec::new());
        }
        let Some(queue) = &self.0.queue else {
            let fits = |run: &FoundRun| {
                wanted.session.is_none_or(|session| *run.session() == *session)
                    && wanted.agent.is_none_or(|agent| run.agent() == agent)
                    && !run.has_begun()
            };
            return Ok(self.runs(caller).into_iter().filter(fits).take(wanted.limit).collect());
        };
        let mut jobs = Wanted::default().tenant(caller.tenant()).most(wanted.limit).standing(JobStatusKind::Queued);
        jobs.agents = caller.among(wanted.agent);
        jobs.session = wanted.session.map(|name| self.session_id(caller, name).to_string());
        let jobs = queue.jobs(&jobs).await?;
        Ok(jobs.into_iter().map(|job| FoundRun::elsewhere_of(self.clone(), job.job.at)).collect())
    }

    /// Returns the view of a run that has begun. One that may be active is looked at more closely.
    async fn viewed(&self, caller: &Caller, run: RunSummary) -> Result<RunView, ApiError> {
        if self.is_live(&run)
            && let Some(live) = self.runs(caller).into_iter().find(|live| live.address() == address(&run))
        {
            return live.view().await;
        }
        match self.remote() {
            // The backend knows whether it was requeued, is retried, or has its answers.
            Some(_) if run.incomplete => {
                let mut view = FoundRun::elsewhere_of(self.clone(), address(&run)).view().await?;
                view.answer = None;
                Ok(view)
            }
            _ => Ok(RunView::of_summary(run)),
        }
    }
}

fn address(run: &RunSummary) -> RunAddress {
    RunAddress::new(run.agent.clone(), run.session.as_str(), run.run.clone())
}
