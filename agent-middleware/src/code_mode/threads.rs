//! Runs programs on dedicated threads, with a limit on concurrent ones.

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

/// Stack size of an interpreter's thread: sufficient for the deepest recursion.
const STACK: usize = 256 << 20;

/// Runs programs one after the other, each on a dedicated thread.
pub(super) async fn run_all(config: &CodeModeConfig, jobs: Vec<Job>) -> Vec<Progress> {
    let (config, count) = (config.clone(), jobs.len());
    let run = move || jobs.into_iter().map(|job| on_a_thread(&config, job, &THREADS)).collect();
    let ran = tokio::task::spawn_blocking(run);
    ran.await.unwrap_or_else(|_| vec![failed(); count])
}

/// Runs one program. An interpreter failure ends it with an error. A program that is inside a
/// single operation at its time limit, for example on an integer of a million digits, cannot be
/// interrupted: its thread is abandoned and keeps its slot until the operation is done.
fn on_a_thread(config: &CodeModeConfig, job: Job, threads: &'static Threads) -> Progress {
    let Some(place) = threads.place() else {
        let text =
            "RuntimeError: too many programs are computing at this moment, so this one was not run. Try again later.";
        return Progress::Ended(Ended::error(text));
    };
    let (ends, ended) = mpsc::sync_channel(1);
    let own = config.clone();
    let memory = Memory::of_process();
    // If memory use is unknown, only single values are limited, so each one gets less.
    let most = memory.as_ref().map_or(config.memory / 4, |memory| memory.look().saturating_add(config.memory));
    let thread = std::thread::Builder::new().name("code-mode".into()).stack_size(STACK);
    let whole = move || {
        let _place = place;
        let progress = match run(&own, most, &job) {
            // A program's output must not look like the marker of a running program.
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

/// Slots for interpreter threads. An abandoned thread keeps its slot until it is done.
#[derive(Debug)]
struct Threads {
    free: AtomicUsize,
    /// Maximum wait for a slot, and maximum wait for a program after its time limit.
    patience: Duration,
}

/// A slot, until it is dropped.
#[derive(Debug)]
struct Place(&'static Threads);

/// The slots of the process.
static THREADS: Threads = Threads::new(32, Duration::from_secs(2));

/// Polling interval: for a slot, for the memory, and for the end of a program.
const BETWEEN_LOOKS: Duration = Duration::from_millis(2);

impl Threads {
    const fn new(places: usize, patience: Duration) -> Self {
        Self { free: AtomicUsize::new(places), patience }
    }

    /// Takes a slot; returns `None` if none becomes free in time. Blocks.
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
