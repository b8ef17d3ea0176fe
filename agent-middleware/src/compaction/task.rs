//! [`Task`]: input of a strategy.

use agent_core::{Result, RunCx, TokenCounter, event::CompactionMode};
use serde::{Deserialize, Serialize};

use super::{Keep, Note, Unit};

/// Messages that are kept however old they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct Pins {
    /// System messages inside the conversation. (The agent's system prompt is not part of it.)
    /// Default: true.
    pub system: bool,
    /// The first user message, which usually states the task. Default: true.
    pub first_user: bool,
    /// The last user message, which states the current request. Default: true.
    pub last_user: bool,
}

impl Default for Pins {
    fn default() -> Self {
        Self { system: true, first_user: true, last_user: true }
    }
}

/// Context of a compaction, passed to its [`Strategy`](super::Strategy).
pub struct Task<'a> {
    pub(super) cx: &'a RunCx,
    pub(super) mode: CompactionMode,
    pub(super) counter: &'a dyn TokenCounter,
    /// Factor for token counts, derived from the provider's usage reports.
    pub(super) factor: f64,
    /// Target number of tokens of the messages.
    pub(super) target: u64,
    /// Number of tokens that the messages must stay below; `None` if unknown.
    pub(super) most: Option<u64>,
    pub(super) pins: Pins,
    pub(super) archive: bool,
    pub(super) focus: Option<&'a str>,
}

impl<'a> Task<'a> {
    /// Creates a task outside of any middleware, to try a strategy on a conversation. Model calls
    /// are made on behalf of the run `cx`.
    pub fn new(cx: &'a RunCx, counter: &'a dyn TokenCounter, target: u64) -> Self {
        Self {
            cx,
            mode: CompactionMode::Regular,
            counter,
            factor: 1.0,
            target,
            most: None,
            pins: Pins::default(),
            archive: false,
            focus: None,
        }
    }

    /// Sets the messages that are kept however old they are.
    #[must_use]
    pub fn with_pins(mut self, pins: Pins) -> Self {
        self.pins = pins;
        self
    }

    /// Sets the reason for the compaction.
    #[must_use]
    pub fn with_mode(mut self, mode: CompactionMode) -> Self {
        self.mode = mode;
        self
    }

    /// Sets the target number of tokens of the messages.
    #[must_use]
    pub fn with_target(mut self, tokens: u64) -> Self {
        self.target = tokens;
        self
    }

    /// Sets the number of tokens that the messages must stay below. Up to that number a strategy
    /// may decide that a compaction does not pay.
    #[must_use]
    pub fn with_most(mut self, tokens: u64) -> Self {
        self.most = Some(tokens);
        self
    }

    /// Returns the run.
    pub fn cx(&self) -> &RunCx {
        self.cx
    }

    /// Returns the reason for the compaction.
    pub fn mode(&self) -> CompactionMode {
        self.mode
    }

    /// Returns the target number of tokens of the messages.
    pub fn target(&self) -> u64 {
        self.target
    }

    /// Returns the number of tokens that the messages must stay below, if it is known.
    pub fn most(&self) -> Option<u64> {
        self.most
    }

    /// True if the model can read removed content with the tools of the archive.
    pub fn has_archive(&self) -> bool {
        self.archive
    }

    /// Returns the topic that the requester asked the compaction to preserve.
    pub fn focus(&self) -> Option<&str> {
        self.focus
    }

    /// Returns the tokens of a text.
    pub fn text(&self, text: &str) -> u64 {
        self.times(self.counter.text(text))
    }

    /// Returns the tokens of a unit.
    pub fn tokens(&self, unit: &Unit) -> u64 {
        self.times(unit.messages().map(|message| self.counter.message(&message)).sum())
    }

    /// Returns the tokens of all units.
    pub fn total(&self, units: &[Unit]) -> u64 {
        units.iter().map(|unit| self.tokens(unit)).sum()
    }

    fn times(&self, tokens: u64) -> u64 {
        (tokens as f64 * self.factor).round() as u64
    }

    /// Returns the index where the recent units begin under this rule. In an emergency, they are at
    /// most one iteration.
    pub fn recent(&self, keep: Keep, units: &[Unit]) -> usize {
        let start = keep.start(self, units);
        match self.mode {
            CompactionMode::Emergency => start.max(Keep::Iterations(1).start(self, units)),
            _ => start,
        }
    }

    /// Marks the units that may be changed or removed: those before the recent ones that are not
    /// pinned.
    pub fn removable(&self, keep: Keep, units: &[Unit]) -> Vec<bool> {
        let recent = self.recent(keep, units);
        let first_user = self.pins.first_user.then(|| units.iter().position(Unit::is_user)).flatten();
        let last_user = self.pins.last_user.then(|| units.iter().rposition(Unit::is_user)).flatten();
        let pinned = |at: usize, unit: &Unit| {
            Some(at) == first_user
                || Some(at) == last_user
                || self.pins.system && matches!(unit.first(), agent_core::Message::System(_))
        };
        units.iter().enumerate().map(|(at, unit)| at < recent && !pinned(at, unit)).collect()
    }

    /// Removes the removable units, and inserts `note` where the recent ones begin.
    pub(super) fn take_out(
        &self,
        removable: &[bool],
        recent: usize,
        units: Vec<Unit>,
        note: &Note,
    ) -> Result<Vec<Unit>> {
        let mut kept: Vec<Unit> = Vec::with_capacity(units.len());
        let mut recent_at = None;
        for (at, unit) in units.into_iter().enumerate() {
            if at >= recent {
                recent_at.get_or_insert(kept.len());
            }
            if !removable[at] {
                kept.push(unit);
            }
        }
        let at = recent_at.unwrap_or(kept.len());
        note.put(self.cx, &mut kept, at, self.archive)?;
        Ok(kept)
    }
}

impl std::fmt::Debug for Task<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Task").field("mode", &self.mode).field("target", &self.target).finish_non_exhaustive()
    }
}
