//! Statistics of the checks.

use std::{
    collections::BTreeMap,
    fmt,
    io::{self, Write},
};

use serde_json::json;

use super::checks::{CHECKS, Check, Outcome};
use crate::recordings::Exchange;

/// Minimum percentage of exchanges that must pass each check.
const LEAST: f64 = 99.9;

/// Recorded APIs without a wire here, with the reason.
const LEFT_OUT: [(&str, &str); 4] = [
    ("openai-completions", "texts are completed: no messages, no tools, and no provider's newer models"),
    ("gemini-interactions", "Gemini's models are asked by generateContent"),
    ("anthropic-count-tokens", COUNTING),
    ("gemini-count-tokens", COUNTING),
];

const COUNTING: &str = "counting tokens is another API: no model answers";

/// Statistics so far.
#[derive(Debug, Default)]
pub(crate) struct Report {
    /// Counts by wire and source.
    counts: BTreeMap<(String, String), Counts>,
    /// Counts by wire, check and reason.
    not_checkable: BTreeMap<(String, Check, &'static str), usize>,
    /// Exchanges of unknown wires.
    unknown: BTreeMap<String, usize>,
}

#[derive(Clone, Debug, Default)]
struct Counts {
    exchanges: usize,
    checks: BTreeMap<Check, Tally>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    passed: usize,
    of: usize,
}

impl Tally {
    fn percent(self) -> f64 {
        if self.of == 0 { 100.0 } else { self.passed as f64 * 100.0 / self.of as f64 }
    }
}

impl Report {
    /// Counts an exchange of a wire that cannot be checked.
    pub(crate) fn unknown(&mut self, exchange: &Exchange) {
        *self.unknown.entry(exchange.api.clone()).or_default() += 1;
    }

    /// Counts an exchange, and writes its failures to `failures`.
    ///
    /// # Errors
    /// If writing fails.
    pub(crate) fn count(
        &mut self,
        exchange: &Exchange,
        outcomes: impl IntoIterator<Item = (Check, Outcome)>,
        failures: &mut dyn Write,
    ) -> io::Result<()> {
        let counts = self.counts.entry((exchange.api.clone(), exchange.source.clone())).or_default();
        counts.exchanges += 1;
        for (check, outcome) in outcomes {
            let tally = counts.checks.entry(check).or_default();
            match outcome {
                Outcome::Passed => (tally.passed, tally.of) = (tally.passed + 1, tally.of + 1),
                Outcome::Failed(reasons) => {
                    tally.of += 1;
                    let reason = reasons.join("\n");
                    let line = json!({"id": exchange.id, "check": check.as_str(), "reason": reason});
                    writeln!(failures, "{line}")?;
                }
                Outcome::NotCheckable(why) => {
                    *self.not_checkable.entry((exchange.api.clone(), check, why)).or_default() += 1;
                }
                Outcome::NotMeant => {}
            }
        }
        Ok(())
    }

    /// Returns the wires of which too few exchanges pass a check, with that check.
    pub(crate) fn insufficient(&self) -> Vec<(String, Check)> {
        let all = self.by_wire().into_iter();
        let pairs =
            all.flat_map(|(wire, counts)| counts.checks.into_iter().map(move |(check, t)| (wire.clone(), check, t)));
        pairs.filter(|(_, _, tally)| tally.percent() < LEAST).map(|(wire, check, _)| (wire, check)).collect()
    }

    fn by_wire(&self) -> BTreeMap<String, Counts> {
        let mut all: BTreeMap<String, Counts> = BTreeMap::new();
        for ((wire, _), counts) in &self.counts {
            let sum = all.entry(wire.clone()).or_default();
            sum.exchanges += counts.exchanges;
            for (check, tally) in &counts.checks {
                let sum = sum.checks.entry(*check).or_default();
                (sum.passed, sum.of) = (sum.passed + tally.passed, sum.of + tally.of);
            }
        }
        all
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:<20} {:<26} {:>6}", "wire", "source", "all")?;
        CHECKS.iter().try_for_each(|check| write!(f, " {:>17}", check.as_str()))?;
        writeln!(f)?;
        let all = "all sources".to_owned();
        for (wire, sum) in self.by_wire() {
            let sources = self.counts.iter().filter(|((of, _), _)| *of == wire).map(|((_, source), c)| (source, c));
            for (source, counts) in sources.chain([(&all, &sum)]) {
                write!(f, "{wire:<20} {source:<26} {:>6}", counts.exchanges)?;
                for check in CHECKS {
                    let tally = counts.checks.get(&check).copied().unwrap_or_default();
                    let shown = match tally.of {
                        0 => "-".to_owned(),
                        of => format!("{}/{of} {:>6.2}%", tally.passed, tally.percent()),
                    };
                    write!(f, " {shown:>17}")?;
                }
                writeln!(f)?;
            }
        }
        for ((wire, check, why), count) in &self.not_checkable {
            writeln!(f, "not checkable: {wire} {}: {count}: {why}", check.as_str())?;
        }
        self.unknown.iter().try_for_each(|(wire, count)| match LEFT_OUT.iter().find(|(known, _)| known == wire) {
            Some((_, why)) => writeln!(f, "left out: {wire}: {count}: {why}"),
            None => writeln!(f, "no such wire here: {wire}: {count}"),
        })
    }
}
