//! Report of all runs.

use std::{collections::BTreeMap, fmt};

use agent::Effect;

use super::world::TOOLS;

#[derive(Debug, Default)]
pub(crate) struct Report {
    pub(crate) kills: u64,
    pub(crate) runs: u64,
    pub(crate) steps: u64,
    pub(crate) acknowledged: u64,
    pub(crate) lost: u64,
    pub(crate) questions: u64,
    pub(crate) unasked: u64,
    /// By effect: intended executions, and repetitions.
    pub(crate) effects: BTreeMap<Effect, (u64, u64)>,
    /// Descriptions of the faults.
    pub(crate) faults: Vec<String>,
}

impl Report {
    /// Counts an intended execution, and its repetitions.
    pub(crate) fn count(&mut self, effect: Effect, again: u64) {
        let (meant, doubled) = self.effects.entry(effect).or_default();
        *meant += 1;
        *doubled += again;
    }

    pub(crate) fn add(&mut self, other: Self) {
        self.kills += other.kills;
        self.runs += other.runs;
        self.steps += other.steps;
        self.acknowledged += other.acknowledged;
        self.lost += other.lost;
        self.questions += other.questions;
        self.unasked += other.unasked;
        for (effect, (meant, doubled)) in other.effects {
            let all = self.effects.entry(effect).or_default();
            *all = (all.0 + meant, all.1 + doubled);
        }
        self.faults.extend(other.faults);
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "kills                {:>9}", self.kills)?;
        writeln!(f, "runs                 {:>9}", self.runs)?;
        writeln!(f, "steps                {:>9}", self.steps)?;
        writeln!(f, "acknowledged entries {:>9}", self.acknowledged)?;
        writeln!(f, "lost entries         {:>9}", self.lost)?;
        for (name, effect) in TOOLS {
            let (meant, doubled) = self.effects.get(&effect).copied().unwrap_or_default();
            let note = match effect {
                Effect::Pure => " (may be)",
                Effect::Idempotent => " (asked for again under the same key)",
                _ => "",
            };
            writeln!(f, "effects {name:<12} {meant:>9}, doubled {doubled}{note}")?;
        }
        writeln!(f, "questions raised     {:>9}, not raised {}", self.questions, self.unasked)
    }
}
