//! Settings of a team that its journal records.

use std::collections::BTreeMap;

use agent_core::Caps;
use serde::{Deserialize, Serialize};

/// Limits and roles of a team run. They are recorded when the run starts, so that every process that
/// reads the team's journal decides alike.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Settings {
    /// Descriptions of the roles that the leader can spawn, by name.
    pub(crate) roles: BTreeMap<String, String>,
    /// Maximum number of members besides the leader at one time.
    pub(crate) max_members: u32,
    /// Maximum number of turns of all members together.
    pub(crate) max_rounds: Option<u32>,
    /// Number of consecutive turns of the leader without progress after which the team ends.
    pub(crate) max_idle_turns: u32,
    /// Time limit of the run, in milliseconds.
    pub(crate) deadline: Option<u64>,
    /// Lease of a claim, in milliseconds.
    pub(crate) task_lease: Option<u64>,
    /// Time after which the leader is notified of a turn that is still running, in milliseconds.
    pub(crate) stall_after: Option<u64>,
    /// Folder of the deliverables.
    pub(crate) deliverables: String,
    /// Caps of the request that started the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) caps: Option<Caps>,
    /// Name of the pattern that the team runs; `None` if a leader plans.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) pattern: Option<String>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            roles: BTreeMap::new(),
            max_members: 10,
            max_rounds: None,
            max_idle_turns: 3,
            deadline: None,
            task_lease: None,
            stall_after: None,
            deliverables: "tasks".to_owned(),
            caps: None,
            pattern: None,
        }
    }
}
