//! Seeded random numbers.

/// Pseudo-random numbers that are the same for the same seed, on every machine and in every
/// release, for reproducible tests. Not for secrets.
///
/// ```
/// use agent_core::testing::SeededRng;
///
/// let (mut one, mut two) = (SeededRng::new(7), SeededRng::new(7));
/// assert_eq!(one.below(1000), two.below(1000));
/// assert!(SeededRng::new(7).part("model").below(1 << 60) != SeededRng::new(7).part("tools").below(1 << 60));
/// ```
#[derive(Clone, Debug)]
pub struct SeededRng(u64);

impl SeededRng {
    /// Creates a generator with this seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Derives an independent generator for a part of the test: draws of other parts do not affect
    /// it.
    #[must_use]
    pub fn part(&self, name: &str) -> Self {
        let mixed = name.bytes().fold(self.0, |seed, byte| Self(seed ^ u64::from(byte)).next());
        Self(mixed)
    }

    /// Returns the next number (SplitMix64).
    #[expect(clippy::should_implement_trait, reason = "it never ends, and `next` is what one looks for")]
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Returns a number from 0 up to but excluding `end`; 0 if `end` is 0.
    pub fn below(&mut self, end: u64) -> u64 {
        self.next().checked_rem(end).unwrap_or(0)
    }

    /// True in `percent` of 100 cases.
    pub fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }
}
