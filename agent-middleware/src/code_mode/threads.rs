//! Programs on threads of their own, and how many there may be at once.

use std::{
    sync::{
        atomic::{AtomicUsize, Ordering},
        mpsc::{self, RecvTimeoutError},
    },
    time::{Duration, Instant},
};

use super::{
    CodeModeConfig,
    history::UNDER_WAY,
    interpreter::{Ended, Job, Progress, run},
    memory::Memory,
};

/// The stack of the thread that an interpreter has: the deepest recursion has room in it.
const STACK: usize = 256 << 20;

/// Runs programs, one after the other, each on a thread of its own.
pub(super) async fn run_all(config: &CodeModeConfig, jobs: Vec<Job>) -> Vec<Progress> {
    let (config, count) = (config.clone(), jobs.len());
    let run = move || jobs.into_iter().map(|job| on_a_thread(&config, job, &THREADS)).collect();
    let ran = tokio::task::spawn_blocking(run);
    ran.await.unwrap_or_else(|_| vec![failed(); count])
}

/// A program that the interpreter fails over has ended so. One that is in a single operation when its time is over, on an
/// integer of a million digits say, is left to itself: nothing can interrupt it. Its place among the `threads` is taken meanwhile.
fn on_a_thread(config: &CodeModeConfig, job: Job, threads: &'static Threads) -> Progress {
    let Some(place) = threads.place() else {
        let text =
            "RuntimeError: too many programs are computing at this moment, so this one was not run. Try again later.";
        return Progress::Ended(Ended::error(text));
    };
    let (ends, ended) = mpsc::sync_channel(1);
    let own = config.clone();
    let memory = Memory::of_process();
    // Where nobody tells what is in use, single values are limited alone, so each has less.
    let most = memory.as_ref().map_or(config.memory / 4, |memory| memory.look().saturating_add(config.memory));
    let thread = std::thread::Builder::new().name("code-mode".into()).stack_size(STACK);
    let whole = move || {
        let _place = place;
        let progress = match run(&own, most, &job) {
            // It is no end, whatever a program prints or a tool tells it.
            Progress::Ended(end) => Progress::Ended(Ended { text: end.text.replace(UNDER_WAY, "[..]"), ..end }),
            needs @ Progress::Needs(_) => needs,
        };
        drop(ends.send(progress));
    };
    if thread.spawn(whole).is_err() {
        return failed();
    }
    let begun = Instant::now();
    while begun.elapsed() < config.time.saturating_add(threads.patience) {
        match ended.recv_timeout(BETWEEN_LOOKS) {
            Ok(progress) => return progress,
            Err(RecvTimeoutError::Disconnected) => return failed(),
            Err(RecvTimeoutError::Timeout) => drop(memory.as_ref().map(Memory::look)),
        }
    }
    let limit = config.time;
    let text = format!("TimeoutError: time limit exceeded: {limit:?}, in one operation on a very large value");
    Progress::Ended(Ended::error(text))
}

fn failed() -> Progress {
    Progress::Ended(Ended::error("The interpreter failed over this program. Write it in another way."))
}

/// Places for the threads of interpreters. One that is left to itself keeps its place until it is done.
#[derive(Debug)]
struct Threads {
    free: AtomicUsize,
    /// How long a program waits for a place, and how long it is waited for when its time is over.
    patience: Duration,
}

/// A place, until it is dropped.
#[derive(Debug)]
struct Place(&'static Threads);

/// The places of the process.
static THREADS: Threads = Threads::new(32, Duration::from_secs(2));

/// The time between two looks: for a place, at the memory, and for the end of a program.
const BETWEEN_LOOKS: Duration = Duration::from_millis(2);

impl Threads {
    const fn new(places: usize, patience: Duration) -> Self {
        Self { free: AtomicUsize::new(places), patience }
    }

    /// A place; none if none becomes free in time. Blocks.
    fn place(&'static self) -> Option<Place> {
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

    fn text_of(code: &str, time: Duration, threads: &'static Threads) -> Ended {
        let config = CodeModeConfig { time, ..CodeModeConfig::default() };
        let job = Job { code: code.into(), functions: vec![], known: vec![], check: None };
        match on_a_thread(&config, job, threads) {
            Progress::Ended(ended) => ended,
            Progress::Needs(calls) => panic!("{calls:?}"),
        }
    }

    #[test]
    fn a_program_that_computes_on_keeps_its_place_and_others_are_told_so_until_it_is_done() {
        static ONE: Threads = Threads::new(1, Duration::from_millis(50));
        let (short, long) = (Duration::from_millis(20), Duration::from_secs(60));
        let late = text_of("x = 3 ** (4 * 10**6)", short, &ONE);
        assert!(late.is_error && late.text.contains("in one operation"), "{late:?}");
        let refused = text_of("1 + 1", short, &ONE);
        assert!(refused.is_error && refused.text.contains("too many programs"), "{refused:?}");
        let begun = Instant::now();
        let place = loop {
            assert!(begun.elapsed() < Duration::from_secs(120), "it never ends");
            if let Some(place) = ONE.place() {
                break place;
            }
        };
        drop(place);
        assert_eq!(text_of("1 + 1", long, &ONE).text, "2");
    }
}
