//! How many interpreters there may be at once.

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::{Duration, Instant},
};

/// Places for the threads of interpreters. One that is left to itself keeps its place until it is done.
#[derive(Debug)]
pub(super) struct Threads {
    free: AtomicUsize,
    /// How long a program waits for a place, and how long it is waited for when its time is over.
    pub(super) patience: Duration,
}

/// A place, until it is dropped.
#[derive(Debug)]
pub(super) struct Place(&'static Threads);

/// The places of the process.
pub(super) static THREADS: Threads = Threads::new(32, Duration::from_secs(2));

/// The time between two looks for a place.
const BETWEEN_LOOKS: Duration = Duration::from_millis(2);

impl Threads {
    pub(super) const fn new(places: usize, patience: Duration) -> Self {
        Self { free: AtomicUsize::new(places), patience }
    }

    /// A place; none if none becomes free in time. Blocks.
    pub(super) fn place(&'static self) -> Option<Place> {
        let begun = Instant::now();
        let take = || self.free.fetch_update(Ordering::AcqRel, Ordering::Acquire, |free| free.checked_sub(1)).is_ok();
        while !take() {
            if begun.elapsed() >= self.patience {
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
        static TWO: Threads = Threads::new(2, Duration::from_millis(5));
        let places = [TWO.place(), TWO.place()];
        assert!(places.iter().all(Option::is_some));
        assert!(TWO.place().is_none());
        drop(places);
        assert!(TWO.place().is_some());
    }
}
