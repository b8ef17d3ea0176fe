//! How much a minute allows: cut when the provider refuses, grown again bit by bit.

use std::time::Duration;

use super::log::WINDOW;

/// What a refusal leaves of the allowance at least, if less than that was used in the last minute.
const CUT: f64 = 0.5;
/// What a minute in which the allowance was used up adds to it, of what it was after the last cut.
const STEP: f64 = 0.1;

/// The most of something per minute: additive increase, multiplicative decrease.
///
/// A refusal says that the limit is about what the provider took in the last minute, so the allowance falls to that, and
/// not blindly by a factor: the factor only bounds the fall, for refusals that have another cause.
#[derive(Debug)]
pub(super) struct Allowance {
    /// What the application knows of the limit.
    ceiling: Option<f64>,
    /// Cuts never go below.
    lowest: f64,
    /// None while nothing is known of a limit.
    now: Option<f64>,
    /// How far refusals of what was sent before the last cut may still bring it down.
    floor: f64,
    step: f64,
}

impl Allowance {
    pub(super) fn new(ceiling: Option<u64>, lowest: f64) -> Self {
        let ceiling = ceiling.map(|most| most as f64);
        let lowest = ceiling.map_or(lowest, |most| most.min(lowest));
        Self { ceiling, lowest, now: ceiling, floor: lowest, step: 0.0 }
    }

    /// What may be used in a minute.
    pub(super) fn most(&self) -> Option<u64> {
        self.now.map(|most| (most as u64).max(1))
    }

    /// The same with its fraction, as it is shown.
    pub(super) fn rate(&self) -> Option<f64> {
        self.now
    }

    /// The time between two uses that are spread evenly.
    pub(super) fn interval(&self) -> Duration {
        self.now.map_or(Duration::ZERO, |most| WINDOW.div_f64(most))
    }

    /// True if it is less than the application knows of.
    pub(super) fn is_cut(&self) -> bool {
        self.now.is_some_and(|now| self.ceiling.is_none_or(|most| now < most))
    }

    /// The provider refused when `used` had been taken in the last minute. `anew` if it had been asked after the last cut.
    pub(super) fn cut(&mut self, used: u64, anew: bool) {
        if anew {
            self.floor = self.now.map_or(self.lowest, |now| (now * CUT).max(self.lowest));
        }
        let left = (used as f64).max(self.floor);
        let now = self.now.map_or(left, |now| now.min(left));
        (self.now, self.step) = (Some(now), (now * STEP).max(1.0));
    }

    /// The provider took `used` that had to wait for the allowance.
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
            allowance.cut(taken, false); // of fifty that were sent at once, forty are refused one by one
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
