//! [`TeamHistory`]: what a team's journal tells of the past.

use std::sync::Arc;

use agent_core::{Journal, Result};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    event::{TeamChange, TeamEvent, TeamEventKind},
    log::{PAGE, parse},
    state::TeamState,
};

/// A change of a team with its place in the journal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TeamRecord {
    /// Sequence number of the entry in the team's session.
    pub seq: u64,
    /// Time of the change, in milliseconds since 1970, UTC.
    pub time: u64,
    /// Id of the member that the change belongs to; `None` for the team itself and for the user.
    pub member: Option<Arc<str>>,
    /// The change.
    pub change: TeamChange,
}

/// First difference of two teams: see [`TeamHistory::difference`].
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct TeamDifference<'a> {
    /// Number of changes before it, which are the same.
    pub at: usize,
    /// The change of the first team; `None` if it made no further one.
    pub one: Option<&'a TeamRecord>,
    /// The change of the second team.
    pub two: Option<&'a TeamRecord>,
}

/// A change without times and ids of runs.
fn timeless(change: &TeamChange) -> Value {
    fn strip(value: &mut Value) {
        match value {
            Value::Object(fields) => {
                ["time", "since", "until", "deadline", "run"].iter().for_each(|name| drop(fields.remove(*name)));
                fields.values_mut().for_each(strip);
            }
            Value::Array(values) => values.iter_mut().for_each(strip),
            _ => {}
        }
    }
    let mut value = serde_json::to_value(change).unwrap_or_default();
    strip(&mut value);
    value
}

impl TeamEvent {
    /// Returns the change of this event as a record; `None` for an event of a run. `time` is the time at which
    /// the event arrived, in milliseconds since 1970, UTC.
    pub fn record(&self, time: u64) -> Option<TeamRecord> {
        match &self.kind {
            TeamEventKind::Change(change) => {
                Some(TeamRecord { seq: self.seq?, time, member: self.member.clone(), change: change.clone() })
            }
            TeamEventKind::Run(_) => None,
        }
    }
}

/// State and changes of a team, read from the journal of its session. Neither the team nor its agents are
/// needed.
///
/// ```
/// use agent_core::testing::{ScriptedModel, Turn};
/// use agent_exec::Agent;
/// use agent_team::{Team, TeamHistory, TeamRequest};
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap().block_on(async {
/// let leader = Agent::builder("lead", ScriptedModel::new([Turn::text("Noted.")])).build()?;
/// let team = Team::builder("notes").leader(leader).max_idle_turns(1).build()?;
/// team.start(TeamRequest::user("Take this down.").session("ada")).await?;
///
/// let history = TeamHistory::read(&**team.store(), "ada").await?;
/// assert!(history.is_team() && !history.state.is_open());
/// assert_eq!(history.records.len(), 4, "the start, a turn with its end, and the end");
/// # Ok::<(), agent_core::Error>(()) }).unwrap();
/// ```
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct TeamHistory {
    /// State of the team after the last record.
    pub state: TeamState,
    /// The changes, oldest first.
    pub records: Vec<TeamRecord>,
}

impl TeamHistory {
    /// Reads the session of a team. The history of a session without a team is empty.
    ///
    /// # Errors
    /// The errors of the store.
    pub async fn read(journal: &dyn Journal, session: &str) -> Result<Self> {
        let (mut history, mut after) = (Self::default(), 0);
        loop {
            let page = journal.read(session, after, PAGE).await?;
            for entry in &page {
                if let Some(command) = parse(entry)? {
                    let state = &mut history.state;
                    let (was_open, is_repeated) = (state.is_open(), state.is_repeated(&command));
                    let outcome = state.apply(&command); // a refused command changes nothing
                    if is_repeated {
                        continue;
                    }
                    let ended = state.reason().filter(|_| was_open && !state.is_open()).cloned();
                    let changes = TeamChange::of(&command, &outcome).into_iter();
                    for change in changes.chain(ended.map(|reason| TeamChange::Ended { reason })) {
                        let member = change.member();
                        history.records.push(TeamRecord { seq: entry.seq, time: command.time, member, change });
                    }
                }
            }
            match page.last() {
                Some(last) if page.len() == PAGE => after = last.seq,
                _ => return Ok(history),
            }
        }
    }

    /// Returns the first changes in which two teams differ; `None` if they had the same course. Times, and the
    /// ids of runs, do not count.
    pub fn difference<'a>(&'a self, other: &'a Self) -> Option<TeamDifference<'a>> {
        let count = self.records.len().max(other.records.len());
        let pair = |at: usize| (self.records.get(at), other.records.get(at));
        let comparable =
            |record: Option<&TeamRecord>| record.map(|record| (record.member.clone(), timeless(&record.change)));
        let differs = |at: &usize| {
            let (one, two) = pair(*at);
            comparable(one) != comparable(two)
        };
        let at = (0..count).find(differs)?;
        let (one, two) = pair(at);
        Some(TeamDifference { at, one, two })
    }

    /// True if the session is that of a team.
    pub fn is_team(&self) -> bool {
        self.state.run().is_some()
    }
}

/// Folds the journal of a team session without opening it for appending.
pub(crate) async fn read_state(journal: &dyn Journal, session: &str) -> Result<TeamState> {
    Ok(TeamHistory::read(journal, session).await?.state)
}
