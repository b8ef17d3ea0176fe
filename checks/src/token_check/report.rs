//! Printed report.

use std::{collections::BTreeMap, fmt};

use super::{COUNTERS, Errors};

/// Relative errors of each counter.
#[derive(Default)]
pub(crate) struct Report {
    wires: BTreeMap<String, Table>,
    providers: BTreeMap<String, Table>,
    /// Counts by wire and reason.
    left_out: BTreeMap<(String, &'static str), usize>,
}

/// Errors of each counter, and number of prompts.
#[derive(Default)]
struct Table {
    prompts: usize,
    errors: [Vec<f64>; 4],
}

impl Table {
    fn add(&mut self, errors: Errors) {
        self.prompts += 1;
        self.errors.iter_mut().zip(errors).for_each(|(all, error)| all.extend(error));
    }
}

impl Report {
    /// Adds the errors of one exchange.
    pub(super) fn add(&mut self, wire: &str, provider: &str, has_media: bool, errors: Errors) {
        let row = |name: &str| if has_media { format!("{name}, with media") } else { name.to_owned() };
        self.wires.entry(row(wire)).or_default().add(errors);
        self.providers.entry(row(provider)).or_default().add(errors);
    }

    /// Counts an exchange that cannot be compared.
    pub(super) fn left_out(&mut self, wire: &str, why: &'static str) {
        *self.left_out.entry((wire.to_owned(), why)).or_default() += 1;
    }

    /// Returns the mean error of each counter on prompts of this wire, if it has counted any.
    #[cfg(test)]
    pub(super) fn means(&self, wire: &str) -> [Option<f64>; 4] {
        let errors =
            |at: usize| self.wires.get(wire).map(|table| &table.errors[at]).filter(|errors| !errors.is_empty());
        std::array::from_fn(|at| errors(at).map(|errors| mean(errors)))
    }

    /// Returns true if calibration worsens no wire with enough data.
    pub(crate) fn calibration_helps(&self) -> bool {
        let helps = |[plain, calibrated]: [&Vec<f64>; 2]| calibrated.len() < 20 || mean(calibrated) <= mean(plain);
        self.wires.values().all(|Table { errors: [a, b, c, d], .. }| helps([a, b]) && helps([c, d]))
    }
}

/// Returns the mean absolute error.
fn mean(errors: &[f64]) -> f64 {
    errors.iter().map(|error| error.abs()).sum::<f64>() / errors.len() as f64
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (what, rows) in [("wire", &self.wires), ("provider", &self.providers)] {
            write!(f, "| {what} | prompts |")?;
            COUNTERS.iter().try_for_each(|counter| write!(f, " {counter}: mean, worst |"))?;
            writeln!(f, "\n|---|---|{}", "---|".repeat(COUNTERS.len()))?;
            for (name, table) in rows {
                write!(f, "| {name} | {} |", table.prompts)?;
                for errors in &table.errors {
                    match errors.iter().copied().max_by(|a, b| a.abs().total_cmp(&b.abs())) {
                        Some(worst) => write!(f, " {:.0} %, {:+.0} % |", mean(errors) * 100.0, worst * 100.0)?,
                        None => write!(f, " |")?,
                    }
                }
                writeln!(f)?;
            }
            writeln!(f)?;
        }
        self.left_out.iter().try_for_each(|((wire, why), count)| writeln!(f, "left out: {wire}: {count}: {why}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_report_has_the_mean_and_the_worst_of_each_counter() {
        let mut report = Report::default();
        report.add("w", "p", false, [Some(0.5), None, Some(-0.1), None]);
        report.add("w", "p", false, [Some(-0.1), Some(0.1), Some(0.3), Some(0.0)]);
        report.add("w", "p", true, [Some(1.0), None, Some(1.0), None]);
        report.left_out("w", "no reason");
        let text = report.to_string();
        assert!(text.contains("| w | 2 | 30 %, +50 % | 10 %, +10 % | 20 %, +30 % | 0 %, +0 % |"), "{text}");
        assert!(text.contains("| p, with media | 1 | 100 %, +100 % | | 100 %, +100 % | |"), "{text}");
        assert!(text.contains("left out: w: 1: no reason"), "{text}");
    }

    #[test]
    fn calibration_that_makes_counts_worse_is_found() {
        let mut report = Report::default();
        (0..20).for_each(|_| report.add("w", "p", false, [None, None, Some(0.1), Some(0.1)]));
        assert!(report.calibration_helps());
        report.add("w", "p", false, [None, None, Some(0.1), Some(0.2)]);
        assert!(!report.calibration_helps());
    }
}
