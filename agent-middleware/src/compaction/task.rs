//! [`Task`]: what a strategy is told.

use agent_core::{RunCx, TokenCounter, event::CompactionMode};
use serde::{Deserialize, Serialize};

use super::{Keep, Note, Unit};

/// Messages that stay however old they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct Pins {
    /// System messages inside the conversation. (The agent's system prompt is not part of it.) Default: true.
    pub system: bool,
    /// The first thing that a user said: usually the task. Default: true.
    pub first_user: bool,
    /// The last thing that a user said: what is asked now. Default: true.
    pub last_user: bool,
}

impl Default for Pins {
    fn default() -> Self {
        Self { system: true, first_user: true, last_user: true }
    }
}

/// What a [`Strategy`](super::Strategy) is told about the compaction under way.
pub struct Task<'a> {
    pub(super) cx: &'a RunCx,
    pub(super) mode: CompactionMode,
    pub(super) counter: &'a dyn TokenCounter,
    /// What counts are multiplied with, as the provider's reports say.
    pub(super) factor: f64,
    /// Tokens that the messages should have afterwards.
    pub(super) target: u64,
    /// Tokens that the messages must not reach; none if nobody knows.
    pub(super) most: Option<u64>,
    pub(super) pins: Pins,
    pub(super) archive: bool,
    pub(super) focus: Option<&'a str>,
}

impl<'a> Task<'a> {
    /// A task outside any middleware: to try a strategy on a conversation. The run is what model calls are made for.
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

    /// Sets what stays however old it is.
    #[must_use]
    pub fn with_pins(mut self, pins: Pins) -> Self {
        self.pins = pins;
        self
    }

    /// Sets what it is for.
    #[must_use]
    pub fn with_mode(mut self, mode: CompactionMode) -> Self {
        self.mode = mode;
        self
    }

    /// Sets how many tokens the messages should have afterwards.
    #[must_use]
    pub fn with_target(mut self, tokens: u64) -> Self {
        self.target = tokens;
        self
    }

    /// Sets how many tokens the messages must not reach. Up to there a strategy may find that it is not worth its price.
    #[must_use]
    pub fn with_most(mut self, tokens: u64) -> Self {
        self.most = Some(tokens);
        self
    }

    /// The run.
    pub fn cx(&self) -> &RunCx {
        self.cx
    }

    /// What the compaction is for.
    pub fn mode(&self) -> CompactionMode {
        self.mode
    }

    /// Tokens that the messages should have afterwards.
    pub fn target(&self) -> u64 {
        self.target
    }

    /// Tokens that the messages must not reach, if that is known.
    pub fn most(&self) -> Option<u64> {
        self.most
    }

    /// True if what is removed can be read again by the model, with the tools of the archive.
    pub fn has_archive(&self) -> bool {
        self.archive
    }

    /// What the compaction is to pay attention to, in the words of whoever asked for it.
    pub fn focus(&self) -> Option<&str> {
        self.focus
    }

    /// Tokens of a text.
    pub fn text(&self, text: &str) -> u64 {
        self.times(self.counter.text(text))
    }

    /// Tokens of a unit.
    pub fn tokens(&self, unit: &Unit) -> u64 {
        self.times(unit.messages().map(|message| self.counter.message(&message)).sum())
    }

    /// Tokens of all units.
    pub fn total(&self, units: &[Unit]) -> u64 {
        units.iter().map(|unit| self.tokens(unit)).sum()
    }

    fn times(&self, tokens: u64) -> u64 {
        (tokens as f64 * self.factor).round() as u64
    }

    /// Where the recent units begin under this rule. In an emergency it is one iteration at most.
    pub fn recent(&self, keep: Keep, units: &[Unit]) -> usize {
        let start = keep.start(self, units);
        match self.mode {
            CompactionMode::Emergency => start.max(Keep::Iterations(1).start(self, units)),
            _ => start,
        }
    }

    /// The units that may be changed or removed, each with true: those before the recent ones that are not pinned.
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

    /// Takes the removable units out, and puts `note` where the recent ones begin.
    pub(super) fn take_out(&self, removable: &[bool], recent: usize, units: Vec<Unit>, note: &Note) -> Vec<Unit> {
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
        note.put(&mut kept, at, self.archive);
        kept
    }
}

impl std::fmt::Debug for Task<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Task").field("mode", &self.mode).field("target", &self.target).finish_non_exhaustive()
    }
}
