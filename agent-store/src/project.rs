//! Projection: summaries of sessions and runs, kept beside the entries in the same transaction.
//!
//! An entry is translated into changes of the projection when it is encoded, and each store applies
//! them with its own statements. The projection can be rebuilt from the entries at any time.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::{Duration, Instant},
};

use agent_core::{
    ExitReason, Question, Result, Usage,
    journal::{EDITED, EntryBody, METADATA, RunStatus},
};
use sha2::{Digest, Sha256};

/// Change of the projection by an entry of a run.
pub(crate) enum Change {
    /// The run began.
    Began { agent: Arc<str>, is_root: bool, user: Option<Arc<str>> },
    /// The run resumed.
    Resumed,
    /// The run ended or was suspended.
    Ended {
        status: &'static str,
        outcome: String,
        is_edit: bool,
        usage: Usage,
        /// Number of steps; none if the run took none since it resumed.
        steps: Option<i64>,
        error: Option<String>,
    },
    /// The run asked a question, which replaces one of the same id.
    Asked { id: String, digest: String, body: String },
    /// Questions of the run are over, and so are those of its ancestors with the same digests.
    Over(Over),
    /// All runs of the agent since this one are undone.
    Undone { run: Arc<str> },
    /// The session has this metadata now.
    Labelled(BTreeMap<String, String>),
}

/// Questions that are over.
pub(crate) enum Over {
    All,
    /// The question of this id.
    One(String),
    /// Questions whose ids begin with this text, which ends in a slash.
    Within(String),
}

/// Runs of one writer.
#[derive(Default)]
pub(crate) struct Tracked {
    /// Runs that may have open questions: only they can lose one.
    asking: BTreeSet<Arc<str>>,
    /// Number of steps of the runs in progress.
    steps: BTreeMap<Arc<str>, u32>,
}

impl Change {
    /// Returns the changes by an entry of `run`.
    pub(crate) fn of(run: &Arc<str>, body: &EntryBody, tracked: &mut Tracked) -> Vec<Self> {
        let mut changes = Self::all(body);
        match (body, &mut changes[..]) {
            (EntryBody::ModelAccepted { step, .. }, _) if *step > 0 => drop(tracked.steps.insert(run.clone(), *step)),
            (_, [Self::Ended { steps, .. }]) => *steps = tracked.steps.remove(run).map(i64::from),
            (_, [Self::Began { .. }]) => drop(tracked.steps.remove(run)),
            _ => {}
        }
        let may_ask = |change: &Self| matches!(change, Self::Asked { .. } | Self::Resumed);
        if changes.iter().any(may_ask) {
            tracked.asking.insert(run.clone());
        }
        let is_known = tracked.asking.contains(run);
        if matches!(changes[..], [Self::Over(Over::All)]) {
            tracked.asking.remove(run);
        }
        changes.retain(|change| is_known || !matches!(change, Self::Over(_)));
        changes
    }

    fn all(body: &EntryBody) -> Vec<Self> {
        let within = |place: &str| Self::Over(Over::Within(format!("{place}/")));
        let change = match body {
            EntryBody::RunStarted { ids, .. } => Self::Began {
                agent: ids.agent_id.clone(),
                is_root: ids.parent_run_id.is_none(),
                user: ids.user.clone(),
            },
            EntryBody::RunResumed { .. } => Self::Resumed,
            EntryBody::RunEnded { status, usage, error, .. } => Self::Ended {
                status: kind(status),
                outcome: serde_json::to_string(status).expect("a status serializes to JSON"),
                is_edit: matches!(status, RunStatus::Finished(ExitReason::Stopped(why)) if why == EDITED),
                usage: **usage,
                steps: None,
                error: error.as_deref().map(Into::into),
            },
            EntryBody::Asked { question } => Self::asked(question),
            EntryBody::Answered { id, .. } => Self::Over(Over::One(id.to_string())),
            EntryBody::ToolAnswered { call_id, .. } => within(call_id),
            EntryBody::SubAgentReported { run, .. } => within(run),
            EntryBody::ModelAccepted { .. } | EntryBody::TurnEnded { .. } => Self::Over(Over::All),
            EntryBody::Imported { state } => {
                return [Self::Over(Over::All)].into_iter().chain(state.questions.iter().map(Self::asked)).collect();
            }
            EntryBody::Undone { before_run } => Self::Undone { run: before_run.clone() },
            EntryBody::StateChanged { globals, .. } => match globals.get(METADATA) {
                Some(value) => {
                    let fields = value.as_ref().and_then(serde_json::Value::as_object).into_iter().flatten();
                    let labels = fields.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())));
                    Self::Labelled(labels.collect())
                }
                None => return Vec::new(),
            },
            _ => return Vec::new(),
        };
        vec![change]
    }

    fn asked(question: &Question) -> Self {
        let body = serde_json::to_string(question).expect("a question serializes to JSON");
        Self::Asked { id: question.id.clone(), digest: question.digest.clone(), body }
    }

    /// True if the change makes the session active.
    pub(crate) fn is_activity(&self) -> bool {
        !matches!(self, Self::Over(_) | Self::Undone { .. })
    }
}

/// Kind of a status; the text of the finished one is used in SQL.
fn kind(status: &RunStatus) -> &'static str {
    match status {
        RunStatus::Finished(_) => "finished",
        RunStatus::Interrupted => "interrupted",
        RunStatus::Paused => "paused",
        RunStatus::Cancelled => "cancelled",
        RunStatus::Failed => "failed",
        _ => "other",
    }
}

/// Columns of a [`Usage`].
pub(crate) const USAGE: [&str; 9] =
    ["calls", "input", "cached", "cache_write", "cache_write_long", "output", "reasoning", "cost", "priced"];

/// Returns the values of the [columns](USAGE).
pub(crate) fn usage_values(usage: &Usage) -> [i64; 9] {
    let Usage { calls, input, cached, cache_write, cache_write_long, output, reasoning, cost, priced, .. } = *usage;
    [calls, input, cached, cache_write, cache_write_long, output, reasoning, cost, priced]
        .map(|value| i64::try_from(value).unwrap_or(i64::MAX))
}

/// Reads the [columns](USAGE).
pub(crate) fn usage_of<E>(mut column: impl FnMut(usize) -> Result<i64, E>) -> Result<Usage, E> {
    let mut next = 0..;
    let mut value = || column(next.next().unwrap_or_default()).map(i64::cast_unsigned);
    let mut usage = Usage::default();
    (usage.calls, usage.input, usage.cached) = (value()?, value()?, value()?);
    (usage.cache_write, usage.cache_write_long, usage.output) = (value()?, value()?, value()?);
    (usage.reasoning, usage.cost, usage.priced) = (value()?, value()?, value()?);
    Ok(usage)
}

/// Returns the part of a session's name that lists select by: up to and including the first slash,
/// as tenants are in the names of a [`SessionId`](https://docs.rs/agent-exec).
pub(crate) fn space(session: &str) -> &str {
    session.find('/').map_or("", |at| &session[..=at])
}

/// Beginning of sessions' names in a query.
pub(crate) enum Prefix<'a> {
    All,
    /// All names with this [space].
    Space(&'a str),
    Other(&'a str),
}

impl<'a> Prefix<'a> {
    pub(crate) fn of(prefix: &'a str) -> Self {
        match prefix {
            "" => Self::All,
            _ if space(prefix) == prefix => Self::Space(prefix),
            _ => Self::Other(prefix),
        }
    }
}

/// Digest of a text of any length, for an index.
pub(crate) fn short(text: &str) -> [u8; 16] {
    Sha256::digest(text)[..16].try_into().expect("a SHA-256 has 32 bytes")
}

/// Digest of a key and a value of a session's metadata, for an index.
pub(crate) fn label((key, value): (&String, &String)) -> [u8; 16] {
    short(&format!("{}:{key}={value}", key.len()))
}

/// Time of the last search for sessions whose projection is missing or behind, because an earlier
/// release wrote to them.
#[derive(Default)]
pub(crate) struct Searched(tokio::sync::Mutex<Option<Instant>>);

impl Searched {
    /// Runs `search`, unless it ran a moment ago. Concurrent callers wait for the same search.
    pub(crate) async fn search(&self, search: impl Future<Output = Result<()>>) -> Result<()> {
        const PAUSE: Duration = Duration::from_secs(60);
        let mut last = self.0.lock().await;
        if last.is_none_or(|at| at.elapsed() >= PAUSE) {
            search.await?;
            *last = Some(Instant::now());
        }
        Ok(())
    }

    /// Lets the next caller search.
    pub(crate) async fn forget(&self) {
        *self.0.lock().await = None;
    }
}
