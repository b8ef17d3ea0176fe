//! Adaptive allowance per minute: reduced after a refusal, then increased step by step.

use std::time::Duration;

use super::log::WINDOW;

/// Minimum fraction of the allowance that a refusal leaves, if less than that was used in the last
/// minute.
const CUT: f64 = 0.5;
/// Increase after a minute that used the whole allowance, as a fraction of the allowance after the
/// last cut.
const STEP: f64 = 0.1;

/// Adaptive limit of a quantity per minute: additive increase, multiplicative decrease.
///
/// A refusal indicates that the limit is about what the provider accepted in the last minute, so
/// the allowance falls to that amount rather than by a fixed factor: the factor only bounds the
/// fall, for refusals that have another cause.
#[derive(Debug)]
pub(super) struct Allowance {
    /// Limit configured by the application.
    ceiling: Option<f64>,
    /// Lower bound of cuts.
    lowest: f64,
    /// Current allowance; `None` while no limit is known.
    now: Option<f64>,
    /// Lower bound for refusals of requests that were sent before the last cut.
    floor: f64,
    step: f64,
}

impl Allowance {
    pub(super) fn new(ceiling: Option<u64>, lowest: f64) -> Self {
        let ceiling = ceiling.map(|most| most as f64);
        let lowest = ceiling.map_or(lowest, |most| most.min(lowest));
        Self { ceiling, lowest, now: ceiling, floor: lowest, step: 0.0 }
    }

    /// Returns the current allowance per minute.
    pub(super) fn most(&self) -> Option<u64> {
        self.now.map(|most| (most as u64).max(1))
    }

    /// Returns the current allowance with its fraction, for display.
    pub(super) fn rate(&self) -> Option<f64> {
        self.now
    }

    /// Returns the time between two uses spread evenly over a minute.
    pub(super) fn interval(&self) -> Duration {
        self.now.map_or(Duration::ZERO, |most| WINDOW.div_f64(most))
    }

    /// Returns true if the allowance is below the configured limit.
    pub(super) fn is_cut(&self) -> bool {
        self.now.is_some_and(|now| self.ceiling.is_none_or(|most| now < most))
    }

    /// Reduces the allowance after a refusal, when `used` had been accepted in the last minute.
    /// `anew` is true if the refused request was sent after the last cut.
    pub(super) fn cut(&mut self, used: u64, anew: bool) {
        if anew {
            self.floor = self.now.map_or(self.lowest, |now| (now * CUT).max(self.lowest));
        }
        let left = (used as f64).max(self.floor);
        let now = self.now.map_or(left, |now| now.min(left));
        (self.now, self.step) = (Some(now), (now * STEP).max(1.0));
    }

    /// Increases the allowance after the provider accepted `used` that had to wait for the
    /// allowance.
    pub(super) fn grow(&mut self, used: u64) {
        if let Some(now) = self.now {
            let more = now + self.step * used as f64 / now;
            self.now = Some(self.ceiling.map_or(more, |most| more.min(most)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_brings_it_down_to_what_was_taken_but_by_half_at_most() {
        let mut allowance = Allowance::new(Some(100), 6.0);
        allowance.cut(80, true);
        assert_eq!(allowance.most(), Some(80));
        allowance.cut(3, true);
        assert_eq!(allowance.most(), Some(40));
        allowance.cut(3, false);
        assert_eq!(allowance.most(), Some(40), "what was sent before the cut does not cut again");
    }

    #[test]
    fn without_a_known_limit_the_first_refusals_teach_it() {
        let mut allowance = Allowance::new(None, 6.0);
        assert_eq!((allowance.most(), allowance.is_cut()), (None, false));
        allowance.cut(49, true);
        for taken in (10..49).rev() {
            allowance.cut(taken, false); // of fifty sent at once, forty are refused one by one
        }
        assert_eq!(allowance.most(), Some(10));
    }

    #[test]
    fn a_minute_of_use_grows_it_by_a_tenth_and_never_beyond_the_ceiling() {
        let mut allowance = Allowance::new(Some(100), 6.0);
        allowance.cut(50, true);
        (0..50).for_each(|_| allowance.grow(1));
        let grown = allowance.rate().expect("limited");
        assert!((54.0..55.1).contains(&grown), "{grown}");
        (0..10_000).for_each(|_| allowance.grow(1));
        assert_eq!((allowance.rate(), allowance.is_cut()), (Some(100.0), false));
    }

    #[test]
    fn a_tiny_limit_is_not_undercut() {
        let mut allowance = Allowance::new(Some(2), 6.0);
        (0..5).for_each(|_| allowance.cut(0, true));
        assert_eq!(allowance.most(), Some(2));
    }
}
