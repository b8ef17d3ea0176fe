//! Reports of all tries: for people, for programs, for CI, and as a baseline.

use std::{collections::BTreeMap, fs, path::Path};

use agent::{Error, Result, Usage};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::output::{cannot, count, dollars, line, print, print_json, span, table};

/// One try of a case.
#[derive(Debug)]
pub(super) struct Tried {
    /// Failed expectations.
    pub(super) faults: Vec<String>,
    /// Usage, if known, for a failed try.
    pub(super) usage: Usage,
    pub(super) ms: u64,
}

/// A case with its tries.
#[derive(Debug)]
pub(super) struct Outcome {
    pub(super) name: String,
    pub(super) tries: Vec<Tried>,
}

impl Outcome {
    fn passed(&self) -> usize {
        self.tries.iter().filter(|tried| tried.faults.is_empty()).count()
    }

    pub(super) fn is_passed(&self) -> bool {
        self.passed() == self.tries.len()
    }

    /// The part of the tries that passed.
    fn rate(&self) -> f64 {
        self.passed() as f64 / self.tries.len().max(1) as f64
    }

    fn usage(&self) -> Usage {
        self.tries.iter().fold(Usage::default(), |mut sum, tried| {
            sum += tried.usage;
            sum
        })
    }

    fn ms(&self) -> u64 {
        self.tries.iter().map(|tried| tried.ms).sum()
    }
}

/// Result of an earlier evaluation: the share of each case's tries that passed.
#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(transparent)]
pub(super) struct Baseline(BTreeMap<String, f64>);

impl Baseline {
    pub(super) fn of(outcomes: &[Outcome]) -> Self {
        Self(outcomes.iter().map(|outcome| (outcome.name.clone(), outcome.rate())).collect())
    }

    /// # Errors
    /// What cannot be read.
    pub(super) fn read(path: &Path) -> Result<Self> {
        let text = fs::read_to_string(path).map_err(|e| cannot(path.display(), e))?;
        serde_json::from_str(&text).map_err(|e| Error::config(format!("{}: {e}", path.display())))
    }

    /// # Errors
    /// What cannot be written.
    pub(super) fn write(&self, path: &Path) -> Result<()> {
        let text = serde_json::to_string_pretty(self).map_err(|e| Error::config(e.to_string()))?;
        fs::write(path, text + "\n").map_err(|e| cannot(path.display(), e))
    }

    /// The cases that pass less often than they did.
    pub(super) fn worse<'a>(&self, outcomes: &'a [Outcome]) -> Vec<&'a str> {
        let is_worse = |outcome: &&Outcome| self.0.get(&outcome.name).is_some_and(|before| outcome.rate() < *before);
        outcomes.iter().filter(is_worse).map(|outcome| outcome.name.as_str()).collect()
    }
}

/// Writes a table, and below it what went wrong.
///
/// # Errors
/// If it cannot be written.
pub(super) fn for_people(outcomes: &[Outcome]) -> Result<()> {
    let mut rows = vec![["case", "passed", "tokens", "cost", "time"].map(str::to_owned).to_vec()];
    for outcome in outcomes {
        let usage = outcome.usage();
        rows.push(vec![
            line(&outcome.name, 60),
            format!("{} of {}", outcome.passed(), outcome.tries.len()),
            count(usage.total()),
            usage.whole_cost().map_or_else(String::new, dollars),
            span(outcome.ms()),
        ]);
    }
    print(&table(&rows))?;
    for outcome in outcomes {
        for (at, tried) in outcome.tries.iter().enumerate() {
            for fault in &tried.faults {
                print(&format!("\n{}, try {}: {}\n", outcome.name, at + 1, line(fault, 400)))?;
            }
        }
    }
    Ok(())
}

/// Writes a line of JSON for each case.
///
/// # Errors
/// If it cannot be written.
pub(super) fn for_programs(outcomes: &[Outcome]) -> Result<()> {
    for outcome in outcomes {
        let tried = |tried: &Tried| json!({"faults": tried.faults, "usage": tried.usage, "ms": tried.ms});
        let tries: Vec<_> = outcome.tries.iter().map(tried).collect();
        print_json(&json!({"case": outcome.name, "passed": outcome.passed(), "of": tries.len(), "tries": tries}))?;
    }
    Ok(())
}

/// The tries as a file of JUnit, which CI systems show.
pub(super) fn junit(outcomes: &[Outcome], agent: &str) -> String {
    let all = outcomes.iter().flat_map(|outcome| &outcome.tries);
    let failed = all.clone().filter(|tried| !tried.faults.is_empty()).count();
    let mut xml = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"{}\" tests=\"{}\" failures=\"{failed}\">\n",
        escaped(agent),
        all.count()
    );
    for outcome in outcomes {
        for (at, tried) in outcome.tries.iter().enumerate() {
            let (name, seconds) = (escaped(&outcome.name), tried.ms as f64 / 1e3);
            let head =
                format!("  <testcase classname=\"{name}\" name=\"{name}, try {}\" time=\"{seconds:.3}\"", at + 1);
            match tried.faults.as_slice() {
                [] => xml.push_str(&format!("{head}/>\n")),
                faults => {
                    let why = escaped(&faults.join("\n"));
                    xml.push_str(&format!("{head}>\n    <failure>{why}</failure>\n  </testcase>\n"));
                }
            }
        }
    }
    xml + "</testsuite>\n"
}

/// A text that XML holds.
fn escaped(text: &str) -> String {
    let is_allowed = |c: &char| !c.is_control() || matches!(c, '\n' | '\t');
    let mut xml = String::new();
    for c in text.chars().filter(is_allowed) {
        match c {
            '&' => xml.push_str("&amp;"),
            '<' => xml.push_str("&lt;"),
            '>' => xml.push_str("&gt;"),
            '"' => xml.push_str("&quot;"),
            c => xml.push(c),
        }
    }
    xml
}
