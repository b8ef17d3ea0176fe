//! How many interpreters there may be at once.

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::{Duration, Instant},
};

/// Places for the threads of interpreters. One that is left to itself keeps its place until it is done.
#[derive(Debug)]
pub(super) struct Threads {
    free: AtomicUsize,
}

/// A place, until it is dropped.
#[derive(Debug)]
pub(super) struct Place(&'static Threads);

/// The places of the process.
pub(super) static THREADS: Threads = Threads::new(32);

/// The time between two looks for a place.
const BETWEEN_LOOKS: Duration = Duration::from_millis(2);

impl Threads {
    pub(super) const fn new(places: usize) -> Self {
        Self { free: AtomicUsize::new(places) }
    }

    /// A place; none if there is none for so long. Blocks.
    pub(super) fn place(&'static self, patience: Duration) -> Option<Place> {
        let begun = Instant::now();
        let take = || self.free.fetch_update(Ordering::AcqRel, Ordering::Acquire, |free| free.checked_sub(1)).is_ok();
        while !take() {
            if begun.elapsed() >= patience {
                return None;
            }
            std::thread::sleep(BETWEEN_LOOKS);
        }
        Some(Place(self))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.free.fetch_add(1, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_so_many_places_and_one_that_is_left_is_free_again() {
        static TWO: Threads = Threads::new(2);
        let places = [TWO.place(Duration::ZERO), TWO.place(Duration::ZERO)];
        assert!(places.iter().all(Option::is_some));
        assert!(TWO.place(Duration::from_millis(5)).is_none());
        drop(places);
        assert!(TWO.place(Duration::ZERO).is_some());
    }
}
