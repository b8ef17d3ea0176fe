//! Printed report.

use std::{collections::BTreeMap, fmt, sync::Arc};

use agent::{
    core::{TokenCounter, event::CompactionMode, model::ApproximateCounter},
    llm::RequestReader,
};

use super::{play::Played, strategies::PLANNER, transcript::Transcript};

/// Results of all replays.
pub(crate) struct Report {
    about: String,
    wires: usize,
    /// Results by limit, in percent, and strategy.
    rows: BTreeMap<(u32, &'static str), Row>,
    invalid: Vec<String>,
}

#[derive(Default)]
struct Row {
    cost: f64,
    compactions: usize,
    before: u64,
    after: u64,
    nothing: usize,
    emergencies: usize,
    refused: usize,
}

impl Report {
    pub(crate) fn new(transcripts: &[Transcript], codecs: &[Arc<dyn RequestReader>]) -> Self {
        let sizes = transcripts.iter().map(|transcript| {
            let Transcript { wire, sessions, history } = transcript;
            let tokens = ApproximateCounter.history(history);
            format!("  {wire}: {sessions} sessions, {} messages, {tokens} tokens\n", history.len())
        });
        let about = format!("{} transcripts\n{}", transcripts.len(), sizes.collect::<String>());
        Self { about, wires: codecs.len(), rows: BTreeMap::new(), invalid: Vec::new() }
    }

    pub(crate) fn add(&mut self, limit: f64, strategy: &'static str, played: Played) {
        let row = self.rows.entry(((limit * 100.0).round() as u32, strategy)).or_default();
        row.cost += played.cost;
        row.refused += played.refused;
        for compaction in &played.compactions {
            row.emergencies += usize::from(compaction.mode == CompactionMode::Emergency);
            match compaction.failure {
                Some(_) => row.nothing += 1,
                None => {
                    row.compactions += 1;
                    row.before += compaction.tokens_before;
                    row.after += compaction.tokens_after;
                }
            }
        }
        self.invalid.extend(played.invalid.into_iter().map(|why| format!("{strategy} at {limit}: {why}")));
    }

    /// Returns the cost of the planner and of the best fixed strategy, by limit.
    fn rivals(&self) -> BTreeMap<u32, (f64, f64)> {
        let mut rivals = BTreeMap::new();
        for ((limit, strategy), row) in &self.rows {
            let (planner, best) = rivals.entry(*limit).or_insert((f64::INFINITY, f64::INFINITY));
            let of = if *strategy == PLANNER { planner } else { best };
            *of = row.cost.min(*of);
        }
        rivals
    }

    /// Returns true if all conversations were valid and the planner was never more expensive than
    /// the best fixed strategy.
    pub(crate) fn is_good(&self) -> bool {
        self.invalid.is_empty() && self.wires == 4 && self.rivals().values().all(|(planner, best)| planner <= best)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.about)?;
        writeln!(
            f,
            "limit  strategy                compactions  tokens before      after  nothing  emergencies  too long    dollars"
        )?;
        for ((limit, strategy), row) in &self.rows {
            let Row { cost, compactions, before, after, nothing, emergencies, refused } = row;
            let dollars = cost / 1e6;
            writeln!(
                f,
                "{limit:>4}%  {strategy:<22} {compactions:>12} {before:>14} {after:>10} {nothing:>8} {emergencies:>12} {refused:>9} {dollars:>10.4}"
            )?;
        }
        for (limit, (planner, best)) in self.rivals() {
            let part = 100.0 * planner / best;
            writeln!(f, "at {limit} %: the planner costs {part:.1} % of the best fixed strategy")?;
        }
        writeln!(f, "{} conversations that a provider would refuse", self.invalid.len())?;
        self.invalid.iter().take(10).try_for_each(|why| writeln!(f, "  {why}"))
    }
}
