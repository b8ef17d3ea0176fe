//! What is printed.

use std::{collections::BTreeMap, fmt};

use super::COUNTERS;

/// How far each counter was off, by provider: shares of what the provider reported.
#[derive(Default)]
pub(crate) struct Report(BTreeMap<String, [Vec<f64>; 3]>);

impl Report {
    /// Adds the errors of one exchange.
    pub(crate) fn add(&mut self, provider: &str, errors: [Option<f64>; 3]) {
        let known = self.0.entry(provider.to_owned()).or_default();
        for (all, error) in known.iter_mut().zip(errors) {
            all.extend(error);
        }
    }

    /// True if no provider of which enough is known is counted worse with calibration.
    pub(crate) fn calibration_helps(&self) -> bool {
        self.0.values().all(|[_, plain, calibrated]| calibrated.len() < 20 || mean(calibrated) <= mean(plain))
    }
}

/// The mean of how far they are off, whichever way.
fn mean(errors: &[f64]) -> f64 {
    errors.iter().map(|error| error.abs()).sum::<f64>() / errors.len() as f64
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "| provider | requests |")?;
        COUNTERS.iter().try_for_each(|counter| write!(f, " {counter}: mean | worst |"))?;
        writeln!(f, "\n|---|---|{}", "---|---|".repeat(COUNTERS.len()))?;
        for (provider, counters) in &self.0 {
            write!(f, "| {provider} | {} |", counters[0].len())?;
            for errors in counters {
                let worst = errors.iter().copied().max_by(|a, b| a.abs().total_cmp(&b.abs()));
                match worst {
                    Some(worst) => write!(f, " {:.0} % | {:+.0} % |", mean(errors) * 100.0, worst * 100.0)?,
                    None => write!(f, " | |")?,
                }
            }
            writeln!(f)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_report_has_the_mean_and_the_worst_of_each_counter() {
        let mut report = Report::default();
        report.add("p", [Some(0.5), Some(-0.1), None]);
        report.add("p", [Some(-0.1), Some(0.3), Some(0.0)]);
        let text = report.to_string();
        assert!(text.contains("| p | 2 | 30 % | +50 % | 20 % | +30 % | 0 % | +0 % |"), "{text}");
    }

    #[test]
    fn calibration_that_makes_counts_worse_is_found() {
        let mut report = Report::default();
        (0..20).for_each(|_| report.add("p", [None, Some(0.1), Some(0.1)]));
        assert!(report.calibration_helps());
        report.add("p", [None, Some(0.1), Some(0.2)]);
        assert!(!report.calibration_helps());
    }
}
