//! Latency threshold of slow calls.

use std::{
    collections::VecDeque,
    sync::{Mutex, PoisonError},
    time::Duration,
};

/// Number of latencies kept.
const REMEMBERED: usize = 128;

/// Minimum number of latencies for a percentile.
const ENOUGH: usize = 20;

/// Threshold after which a call is slow.
#[derive(Debug)]
pub(super) enum Slow {
    After(Duration),
    /// Slower than this fraction of the preceding calls.
    Percentile {
        part: f64,
        seen: Mutex<VecDeque<Duration>>,
    },
}

impl Slow {
    pub(super) fn percentile(part: f64) -> Self {
        Self::Percentile { part: part.clamp(0.0, 1.0).max(0.0), seen: Mutex::default() }
    }

    /// Returns the time after which a call is slow, if known.
    pub(super) fn after(&self) -> Option<Duration> {
        match self {
            Self::After(delay) => Some(*delay),
            Self::Percentile { part, seen } => {
                let mut seen: Vec<_> = seen.lock().unwrap_or_else(PoisonError::into_inner).iter().copied().collect();
                if seen.len() < ENOUGH {
                    return None;
                }
                let last = seen.len() - 1;
                let at = (part * last as f64).ceil() as usize;
                Some(*seen.select_nth_unstable(at.min(last)).1)
            }
        }
    }

    /// Records the latency of a call.
    pub(super) fn learn(&self, latency: Duration) {
        if let Self::Percentile { seen, .. } = self {
            let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
            if seen.len() == REMEMBERED {
                seen.pop_front();
            }
            seen.push_back(latency);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*};

    use super::*;

    proptest! {
        #[test]
        fn as_many_latencies_as_asked_for_are_within_the_delay(
            latencies in vec(0u64..1_000, ENOUGH..2 * REMEMBERED),
            percent in 0u32..=100,
        ) {
            let slow = Slow::percentile(f64::from(percent) / 100.0);
            latencies.iter().for_each(|ms| slow.learn(Duration::from_millis(*ms)));
            let newest = &latencies[latencies.len().saturating_sub(REMEMBERED)..];
            let delay = slow.after().expect("enough was seen").as_millis();
            let within = newest.iter().filter(|ms| u128::from(**ms) <= delay).count();
            prop_assert!(within * 100 >= newest.len() * percent as usize, "{within} of {}", newest.len());
            prop_assert!(newest.iter().any(|ms| u128::from(*ms) == delay));
        }
    }

    #[test]
    fn a_few_latencies_say_nothing() {
        let slow = Slow::percentile(0.9);
        for _ in 1..ENOUGH {
            slow.learn(Duration::from_secs(1));
            assert_eq!(slow.after(), None);
        }
        slow.learn(Duration::from_secs(1));
        assert_eq!(slow.after(), Some(Duration::from_secs(1)));
    }
}
