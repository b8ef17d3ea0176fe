//! [`Correction`]: calibration of token estimates by reported usage.

use crate::usage::Usage;

/// Weight of earlier reports relative to a new one.
const MEMORY: f64 = 0.8;
/// Maximum distance of the factor from 1, in either direction.
const FURTHEST: f64 = 4.0;
/// Prior standard deviations: of the number of hidden tokens, from zero..
const HIDDEN: f64 = 300.0;
/// .. of the factor, from 1..
const FACTOR: f64 = 0.3;
/// .. and of a report, relative to its true value.
const NOISE: f64 = 0.05;

/// Calibration of a model's token estimates, learned from the usage that its provider reports.
///
/// An estimate has two kinds of error: a factor, since every model tokenises text differently, and
/// a constant number of hidden tokens per prompt, such as a provider's own instructions about
/// tools. A large prompt is more informative about the factor, a small one about the constant;
/// several reports determine both.
///
/// ```
/// use agent_core::{Usage, model::Correction};
///
/// let mut correction = Correction::default();
/// assert_eq!(correction.prompt(1_000), 1_000, "nothing is known yet");
/// for tokens in [500, 2_000, 4_000, 8_000] {
///     correction.learn(tokens, &Usage::new(tokens * 6 / 5 + 350, 20));
/// }
/// assert!((1.18..1.22).contains(&correction.factor()));
/// assert!((11_900..12_500).contains(&correction.prompt(10_000)));
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Correction {
    hidden: f64,
    factor: f64,
    /// Weighted sums over the reports: of 1, x, x², y and xy.
    sums: [f64; 5],
}

impl Default for Correction {
    /// The identity: estimates are unchanged.
    fn default() -> Self {
        Self { hidden: 0.0, factor: 1.0, sums: [0.0; 5] }
    }
}

impl Correction {
    /// Learns from a prompt that was estimated at `estimated` tokens and reported as `usage`. Usage
    /// of no call, or of several, is ignored.
    pub fn learn(&mut self, estimated: u64, usage: &Usage) {
        if usage.calls != 1 || usage.prompt() == 0 || estimated == 0 {
            return;
        }
        let (x, y) = (estimated as f64, usage.prompt() as f64);
        // The errors of reports are relative, and so are their weights.
        let weight = (NOISE * y).powi(-2);
        let new = [1.0, x, x * x, y, x * y];
        self.sums.iter_mut().zip(new).for_each(|(sum, new)| *sum = *sum * MEMORY + weight * new);
        self.solve();
    }

    /// Fits the line closest to the reports and the prior.
    fn solve(&mut self) {
        let [ones, x, xx, y, xy] = self.sums;
        let (hidden, factor) = (HIDDEN.powi(-2), FACTOR.powi(-2));
        let (ones, xx, xy) = (ones + hidden, xx + factor, xy + factor);
        let whole = ones * xx - x * x;
        self.hidden = (y * xx - xy * x) / whole;
        self.factor = (xy * ones - y * x) / whole;
        if self.hidden < 0.0 {
            (self.hidden, self.factor) = (0.0, xy / xx);
        }
        self.factor = self.factor.clamp(1.0 / FURTHEST, FURTHEST);
    }

    /// Factor that corrects estimates; 1 until something was learned.
    pub fn factor(&self) -> f64 {
        self.factor
    }

    /// Number of hidden tokens per prompt; 0 until something was learned.
    pub fn hidden(&self) -> u64 {
        self.hidden.round() as u64
    }

    /// Corrects an estimate of a part of a prompt.
    pub fn part(&self, estimated: u64) -> u64 {
        (estimated as f64 * self.factor).round() as u64
    }

    /// Corrects an estimate of a whole prompt.
    pub fn prompt(&self, estimated: u64) -> u64 {
        (estimated as f64 * self.factor + self.hidden).round() as u64
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_is_hidden_and_what_is_a_factor_are_told_apart() {
        let learned = |real: fn(u64) -> u64| {
            let mut correction = Correction::default();
            for tokens in [300, 2_000, 600, 9_000, 300, 5_000] {
                correction.learn(tokens, &Usage::new(real(tokens), 1));
            }
            correction
        };
        let hidden = learned(|tokens| tokens + 1_500);
        assert!((1_350..1_650).contains(&hidden.hidden()), "{hidden:?}");
        assert!((0.95..1.05).contains(&hidden.factor()), "{hidden:?}");
        let factor = learned(|tokens| tokens * 3 / 2);
        assert!(factor.hidden() < 40 && (1.46..1.54).contains(&factor.factor()), "{factor:?}");
    }

    #[test]
    fn usage_that_is_no_report_of_one_call_teaches_nothing() {
        let mut correction = Correction::default();
        let mut two = Usage::new(300, 5);
        two += Usage::new(300, 5);
        for (estimated, usage) in
            [(100, Usage::default()), (100, Usage::new(0, 5)), (0, Usage::new(100, 5)), (100, two)]
        {
            correction.learn(estimated, &usage);
        }
        assert_eq!(correction, Correction::default());
    }

    proptest! {
        #[test]
        fn whatever_is_reported_counts_stay_finite_and_grow_with_the_prompt(
            reports in prop::collection::vec((1_u64..10_000_000, 1_u64..10_000_000), 1..40),
        ) {
            let mut correction = Correction::default();
            for (estimated, prompt) in reports {
                correction.learn(estimated, &Usage::new(prompt, 1));
                prop_assert!((0.25..=4.0).contains(&correction.factor()), "{correction:?}");
                prop_assert!(correction.hidden.is_finite() && correction.hidden >= 0.0, "{correction:?}");
                prop_assert!(correction.prompt(100) <= correction.prompt(200));
            }
        }

        #[test]
        fn a_prompt_that_comes_again_is_known(estimated in 100_u64..200_000, times in 0.5_f64..3.0) {
            let (mut correction, real) = (Correction::default(), (estimated as f64 * times) as u64);
            (0..8).for_each(|_| correction.learn(estimated, &Usage::new(real, 1)));
            let off = correction.prompt(estimated) as f64 / real as f64 - 1.0;
            prop_assert!(off.abs() < 0.05, "{off}");
        }
    }
}
