//! Summaries of sessions and runs, for lists over many sessions.
//!
//! A store with a projection answers these queries from an index. The functions of this module
//! answer them by folding the sessions one by one.

use std::{cmp::Reverse, collections::BTreeMap, sync::Arc};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{EDITED, Journal, RunRecord, SessionIndex, SessionInfo};
use crate::{
    error::Result,
    state::{Checkpoint, ExitReason, Question, RunStatus},
    usage::Usage,
};

/// Storage key of a session's metadata: an object whose values are strings. Clients set it, and
/// [`SessionQuery::metadata`] finds sessions by it.
pub const METADATA: &str = "agent/metadata";

/// Summary of a session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SessionSummary {
    /// Name of the session in the store.
    pub session: String,
    /// Metadata of the session.
    #[serde(flatten)]
    pub info: SessionInfo,
    /// Usage of all its runs, as of their ends, including sub-agents and what was undone.
    pub usage: Usage,
    /// Number of open questions.
    pub questions: u64,
}

/// Summary of a root run. Edits of a session are not runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RunSummary {
    /// Name of the session in the store.
    pub session: String,
    /// Id of the run.
    pub run: Arc<str>,
    /// Id of the agent.
    pub agent: Arc<str>,
    /// User on whose behalf the run began, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<Arc<str>>,
    /// Status with which the run ended or was suspended; `None` while it is running, or after a
    /// crash.
    pub status: Option<RunStatus>,
    /// Start time, in milliseconds since 1970, UTC.
    pub started: u64,
    /// Time at which the run ended or was suspended, if it did.
    pub ended: Option<u64>,
    /// Text of the error, if the run failed.
    pub error: Option<String>,
    /// Usage of the run itself, without its sub-agents; counted when it ends.
    pub usage: Usage,
    /// Number of steps; 0 while the run is running.
    pub steps: u32,
    /// True if the run was undone.
    pub undone: bool,
    /// True if the run is not finished and can be resumed: it is the newest of its agent.
    pub incomplete: bool,
    /// Questions that the run waits for; empty while it is running, and once it was cancelled.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub questions: Vec<Question>,
}

/// Query for [`Journal::recent`]: sessions, most recently [active](SessionInfo::active) first.
/// Default: the hundred newest of all.
///
/// ```
/// use agent_core::journal::SessionQuery;
///
/// let of_tenant = SessionQuery::default().prefix("teapots/").metadata("ticket", "A-17").limit(20);
/// # let _ = of_tenant;
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SessionQuery {
    /// Beginning of the names.
    pub prefix: String,
    /// Root agent that took part. Default: any.
    pub agents: Option<Vec<String>>,
    /// User on whose behalf a root run began. Default: any.
    pub user: Option<String>,
    /// Metadata that the sessions have.
    pub metadata: BTreeMap<String, String>,
    /// Time of activity and name of the last session of the page before.
    pub before: Option<(u64, String)>,
    /// Maximum number of sessions.
    pub limit: usize,
}

impl Default for SessionQuery {
    fn default() -> Self {
        let (prefix, metadata) = (String::new(), BTreeMap::new());
        Self { prefix, agents: None, user: None, metadata, before: None, limit: 100 }
    }
}

impl SessionQuery {
    /// Restricts to names with this beginning.
    #[must_use]
    pub fn prefix(mut self, prefix: impl Into<String>) -> Self {
        self.prefix = prefix.into();
        self
    }

    /// Restricts to sessions in which one of these root agents took part.
    #[must_use]
    pub fn agents(mut self, agents: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.agents = Some(agents.into_iter().map(Into::into).collect());
        self
    }

    /// Restricts to sessions with a root run on behalf of this user.
    #[must_use]
    pub fn user(mut self, user: impl Into<String>) -> Self {
        self.user = Some(user.into());
        self
    }

    /// Restricts to sessions with this metadata; all given pairs must match.
    #[must_use]
    pub fn metadata(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.metadata.insert(key.into(), value.into());
        self
    }

    /// Continues after this session, the last one of the page before.
    #[must_use]
    pub fn before(mut self, active: u64, session: impl Into<String>) -> Self {
        self.before = Some((active, session.into()));
        self
    }

    /// Sets the maximum number of sessions.
    #[must_use]
    pub fn limit(mut self, most: usize) -> Self {
        self.limit = most;
        self
    }
}

/// State of the runs that a [`RunQuery`] finds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum RunFilter {
    /// All runs.
    #[default]
    Any,
    /// Runs that are not finished and can be resumed.
    Incomplete,
    /// Runs that wait for answers.
    Waiting,
}

/// Query for [`Journal::runs`]: root runs, newest first. Default: the hundred newest of all.
///
/// ```
/// use agent_core::journal::RunQuery;
///
/// let questions = RunQuery::waiting().prefix("teapots/").limit(20);
/// # let _ = questions;
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RunQuery {
    /// Beginning of the sessions' names.
    pub prefix: String,
    /// Name of the session. Default: any.
    pub session: Option<String>,
    /// Agents of the runs. Default: any.
    pub agents: Option<Vec<String>>,
    /// User on whose behalf the runs began. Default: any.
    pub user: Option<String>,
    /// State of the runs.
    pub state: RunFilter,
    /// Start time, session and id of the last run of the page before.
    pub before: Option<(u64, String, String)>,
    /// Maximum number of runs.
    pub limit: usize,
}

impl Default for RunQuery {
    fn default() -> Self {
        let (prefix, state) = (String::new(), RunFilter::Any);
        Self { prefix, session: None, agents: None, user: None, state, before: None, limit: 100 }
    }
}

impl RunQuery {
    /// Finds runs that are not finished and can be resumed.
    pub fn incomplete() -> Self {
        Self { state: RunFilter::Incomplete, ..Self::default() }
    }

    /// Finds runs that wait for answers.
    pub fn waiting() -> Self {
        Self { state: RunFilter::Waiting, ..Self::default() }
    }

    /// Restricts to sessions whose names have this beginning.
    #[must_use]
    pub fn prefix(mut self, prefix: impl Into<String>) -> Self {
        self.prefix = prefix.into();
        self
    }

    /// Restricts to runs of this session, by its name in the store.
    #[must_use]
    pub fn session(mut self, session: impl Into<String>) -> Self {
        self.session = Some(session.into());
        self
    }

    /// Restricts to runs of these agents.
    #[must_use]
    pub fn agents(mut self, agents: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.agents = Some(agents.into_iter().map(Into::into).collect());
        self
    }

    /// Restricts to runs on behalf of this user.
    #[must_use]
    pub fn user(mut self, user: impl Into<String>) -> Self {
        self.user = Some(user.into());
        self
    }

    /// Continues after this run, the last one of the page before.
    #[must_use]
    pub fn before(mut self, last: &RunSummary) -> Self {
        self.before = Some((last.started, last.session.clone(), last.run.to_string()));
        self
    }

    /// Sets the maximum number of runs.
    #[must_use]
    pub fn limit(mut self, most: usize) -> Self {
        self.limit = most;
        self
    }
}

impl RunSummary {
    /// Creates the summary of a run that has just begun.
    pub fn new(session: impl Into<String>, run: impl Into<Arc<str>>, agent: impl Into<Arc<str>>, started: u64) -> Self {
        Self {
            session: session.into(),
            run: run.into(),
            agent: agent.into(),
            user: None,
            status: None,
            started,
            ended: None,
            error: None,
            usage: Usage::default(),
            steps: 0,
            undone: false,
            incomplete: true,
            questions: Vec::new(),
        }
    }

    /// True if a run with this status may wait for answers.
    fn may_wait(&self) -> bool {
        self.incomplete && !matches!(self.status, None | Some(RunStatus::Cancelled))
    }

    /// Creates the summary of a recorded run; `open` is the incomplete run of its agent.
    fn of(session: &str, agent: &Arc<str>, record: &RunRecord, open: Option<&Checkpoint>) -> Self {
        let mut summary = Self::new(session, record.run_id.clone(), agent.clone(), record.started);
        summary.user.clone_from(&record.user);
        summary.status.clone_from(&record.status);
        (summary.ended, summary.error) = (record.ended, record.error.clone());
        (summary.usage, summary.undone) = (record.usage, record.undone);
        summary.steps = if record.status.is_some() { record.steps } else { 0 };
        let open = open.filter(|open| open.ids.run_id == record.run_id);
        summary.incomplete = open.is_some();
        if let Some(open) = open.filter(|_| summary.may_wait()) {
            summary.questions.clone_from(&open.questions);
        }
        summary
    }
}

impl SessionSummary {
    /// Creates the summary of a session without runs.
    pub fn new(session: impl Into<String>, info: SessionInfo) -> Self {
        Self { session: session.into(), info, usage: Usage::default(), questions: 0 }
    }
}

/// Root runs of a session, without edits.
fn runs_of(session: &str, index: &SessionIndex) -> Vec<RunSummary> {
    let mut runs = Vec::new();
    for agent in &index.info().agents {
        let open = index.unfinished(agent);
        for record in index.runs(agent) {
            let is_newest = index.run(&record.run_id).is_some_and(|(_, newest)| newest.seq == record.seq);
            if record.is_root && is_newest && !is_edit(record.status.as_ref()) {
                runs.push(RunSummary::of(session, agent, record, open.as_ref()));
            }
        }
    }
    runs
}

/// True for the status of an edit.
fn is_edit(status: Option<&RunStatus>) -> bool {
    matches!(status, Some(RunStatus::Finished(ExitReason::Stopped(why))) if why == EDITED)
}

/// Parses a session's metadata; values that are not strings are ignored.
pub(crate) fn metadata_of(value: Option<&Value>) -> BTreeMap<String, String> {
    let fields = value.and_then(Value::as_object).into_iter().flatten();
    fields.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))).collect()
}

/// Calls `take` with the index of each session with this prefix.
async fn each_session(
    journal: &(impl Journal + ?Sized),
    prefix: &str,
    mut take: impl FnMut(&str, &SessionIndex) + Send,
) -> Result<()> {
    const PAGE: usize = 500;
    let mut after = String::new();
    loop {
        let names = journal.list(prefix, &after, PAGE).await?;
        for name in &names {
            let index = journal.whole_index(name).await?;
            index.look(|index| take(name, index));
        }
        match names.into_iter().next_back() {
            Some(last) => after = last,
            None => return Ok(()),
        }
    }
}

/// Answers [`Journal::recent`] by folding every session.
pub(super) async fn recent(journal: &(impl Journal + ?Sized), query: &SessionQuery) -> Result<Vec<SessionSummary>> {
    let mut found = Vec::new();
    each_session(journal, &query.prefix, |name, index| {
        let runs = runs_of(name, index);
        let mut summary = SessionSummary::new(name, index.info().clone());
        let records = index.agent_ids().flat_map(|agent| index.runs(agent));
        for record in records.filter(|record| index.run(&record.run_id).is_some_and(|(_, run)| run.seq == record.seq)) {
            summary.usage += record.usage;
        }
        summary.questions = runs.iter().map(|run| run.questions.len() as u64).sum();
        let (info, named) = (&summary.info, query.agents.as_ref());
        let has_agent =
            named.is_none_or(|named| info.agents.iter().any(|agent| named.iter().any(|one| **one == **agent)));
        let of_user = |user: &String| runs.iter().any(|run| run.user.as_deref() == Some(user));
        let has_metadata = query.metadata.iter().all(|(key, value)| info.metadata.get(key) == Some(value));
        let is_later = |(active, session): &(u64, String)| (info.active, &summary.session) < (*active, session);
        if has_agent
            && query.user.as_ref().is_none_or(of_user)
            && has_metadata
            && query.before.as_ref().is_none_or(is_later)
        {
            found.push(summary);
        }
    })
    .await?;
    found.sort_by(|a, b| (b.info.active, &b.session).cmp(&(a.info.active, &a.session)));
    found.truncate(query.limit);
    Ok(found)
}

/// Answers [`Journal::runs`] by folding every session that the query allows.
pub(super) async fn runs(journal: &(impl Journal + ?Sized), query: &RunQuery) -> Result<Vec<RunSummary>> {
    let mut found = Vec::new();
    let mut take = |name: &str, index: &SessionIndex| {
        found.extend(runs_of(name, index).into_iter().filter(|run| query.fits(run)));
    };
    match &query.session {
        Some(session) if session.starts_with(&query.prefix) => {
            journal.whole_index(session).await?.look(|index| take(session, index));
        }
        Some(_) => {}
        None => each_session(journal, &query.prefix, take).await?,
    }
    found.sort_by_key(|run| Reverse((run.started, run.session.clone(), run.run.clone())));
    found.truncate(query.limit);
    Ok(found)
}

impl RunQuery {
    fn fits(&self, run: &RunSummary) -> bool {
        let is_wanted = match self.state {
            RunFilter::Any => true,
            RunFilter::Incomplete => run.incomplete,
            RunFilter::Waiting => !run.questions.is_empty(),
        };
        let is_later = |(started, session, id): &(u64, String, String)| {
            (run.started, &*run.session, &*run.run) < (*started, &**session, &**id)
        };
        is_wanted
            && self.agents.as_ref().is_none_or(|agents| agents.iter().any(|agent| **agent == *run.agent))
            && self.user.as_ref().is_none_or(|user| run.user.as_deref() == Some(user))
            && self.before.as_ref().is_none_or(is_later)
    }
}
