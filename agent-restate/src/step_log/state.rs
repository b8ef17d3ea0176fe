//! State of a run's step log, and the selection of the next batch.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
    time::Duration,
};

use agent_core::{Error, journal::Entry};
use serde::Serialize;
use tokio::time::Instant;

use super::{Taken, Told, now};
use crate::{
    known::Known,
    record::{Batch, Record, Stored, size},
};

/// Time without activity of the executor after which a sleeping run is suspended. Until then the
/// process watches the timer itself.
const SLEEPS: Duration = Duration::from_secs(1);

/// The same for a run that waits for a called run, whose end it does not see meanwhile.
const CALLS: Duration = Duration::from_millis(100);

/// Time that recorded entries wait for a batch that would be sent anyway. Entries cost two more
/// writes to the session's state per batch, as much as the batch itself, so that a run of fast
/// steps writes those of several steps at once.
const RIDES: Duration = Duration::from_millis(50);

/// Time that recorded entries wait if no batch is sent.
const SEEN: Duration = Duration::from_secs(1);

/// Bytes of JSON per batch. A larger value is sent alone.
const ROOM: usize = 8 << 20;

#[derive(Default)]
pub(super) struct State {
    /// True once all recorded batches are replayed.
    pub(super) live: bool,
    /// All results. A step may be looked up more than once: a resumed run checks again what it
    /// began.
    pub(super) kept: HashMap<String, Arc<Stored>>,
    /// Records for the next batch that do not trigger one.
    pub(super) later: Vec<Record>,
    /// Records that trigger a batch.
    pub(super) out: Vec<Record>,
    /// Batch that was handed to Restate and not read back yet.
    pub(super) in_flight: InFlight,
    pub(super) noted: Vec<Entry>,
    /// Time at which a batch last carried entries.
    pub(super) told_of: Option<Instant>,
    /// Entries that earlier attempts recorded.
    pub(super) known: Known,
    /// Number of running step bodies.
    pub(super) running: usize,
    /// Calls that this attempt recorded as begun, and that have not begun yet.
    pub(super) intended: BTreeSet<String>,
    /// Time of the executor's last activity, or of the last result that it received.
    pub(super) moved: Option<Instant>,
    /// Pending commands that were not abandoned.
    pub(super) wishes: BTreeMap<String, Wish>,
    /// True if the handler must poll for signals to the run.
    pub(super) look: bool,
    pub(super) looked: Option<Instant>,
    /// Error that ends this attempt; the next one may succeed.
    pub(super) failed: Option<Error>,
    /// Set on shutdown: the attempt begins nothing more.
    pub(super) leaves: bool,
    /// Received signals, and their number.
    pub(super) told: Told,
    pub(super) heard: u64,
}

/// Pending command: an external event that the run waits for.
#[derive(Debug)]
pub(super) struct Wish {
    /// Time at which the command completes by itself: milliseconds since 1970.
    pub(super) due: Option<u64>,
    /// Time without activity after which the run is suspended until the command completes.
    pub(super) grace: Duration,
    /// Number of the pause that ends with the command.
    pub(super) pause: Option<u32>,
    /// True if the executor of this attempt awaits the command.
    pub(super) is_awaited: bool,
}

impl Wish {
    /// Returns the command that a record issues.
    pub(super) fn of(record: &Record) -> Self {
        let (due, grace, pause) = match record {
            Record::Sleeps { until, .. } => (Some(*until), SLEEPS, None),
            Record::Calls { .. } => (None, CALLS, None),
            Record::Rests { pause, .. } => (None, Duration::ZERO, Some(*pause)),
            // The executor asks only when nothing else is left to do.
            _ => (None, Duration::ZERO, None),
        };
        Self { due, grace, pause, is_awaited: false }
    }
}

#[derive(Default)]
pub(super) struct InFlight {
    pub(super) records: Vec<Record>,
    pub(super) noted: Vec<Entry>,
}

impl State {
    /// Marks the recorded batches as replayed.
    pub(super) fn go_live(&mut self) {
        if !self.live {
            let Self { noted, known, .. } = self;
            noted.retain(|entry| !known.has(entry));
            (self.live, self.moved) = (true, Some(Instant::now()));
        }
    }

    /// Returns the next batch, if there is anything to write. The batch may be empty once the time
    /// `speaks` has passed.
    pub(super) fn take(&mut self, speaks: Instant, worker: &Arc<str>, attempt: &str) -> Option<Taken> {
        self.notice_what_is_due();
        let (looks, waits) = (self.look, self.out.is_empty() && !self.look && self.only_waits());
        if self.out.is_empty() && !looks && !waits && !self.has_waited(SEEN) && Instant::now() < speaks {
            return None;
        }
        let tells = waits || self.out.iter().any(Record::is_seen) || self.has_waited(RIDES);
        let (mut room, mut noted, mut records) = (ROOM, Vec::new(), Vec::new());
        if tells {
            self.told_of = Some(Instant::now());
            noted.extend(self.known.taken_over(worker, attempt, now()));
            noted.append(&mut self.noted);
            self.noted = over(&mut noted, &mut room);
        }
        // A reader that acts on a record must see all entries recorded before it.
        let is_told = !tells || self.noted.is_empty();
        if is_told {
            records.append(&mut self.later);
            records.append(&mut self.out);
            self.out = over(&mut records, &mut room);
        }
        self.in_flight = InFlight { records: records.clone(), noted: noted.clone() };
        Some(Taken { batch: Batch { records, noted: None, waits: waits && is_told, looks }, noted })
    }

    /// Records the timers that have expired.
    fn notice_what_is_due(&mut self) {
        let now = now();
        for (name, wish) in &mut self.wishes {
            if wish.is_awaited && !self.kept.contains_key(name) && wish.due.take_if(|due| *due <= now).is_some() {
                self.out.push(Record::Due { name: name.clone() });
            }
        }
    }

    /// True if the run is suspended until a command completes. A cancelled run is about to end and
    /// waits for nothing.
    fn only_waits(&self) -> bool {
        // The executor continues if a command that it awaits has completed.
        let has_news = self.awaited().any(|(name, _)| self.kept.contains_key(name));
        let is_idle = self.idle().is_some_and(|idle| idle <= Instant::now());
        self.running == 0 && is_idle && !has_news && !self.told.cancel
    }

    /// Returns the time from which on the run is suspended if nothing happens until then.
    fn idle(&self) -> Option<Instant> {
        let grace = self.awaited().map(|(_, wish)| wish.grace).min();
        self.moved.zip(grace).map(|(moved, grace)| moved + grace)
    }

    /// Returns the commands that the executor awaits.
    pub(super) fn awaited(&self) -> impl Iterator<Item = (&String, &Wish)> {
        self.wishes.iter().filter(|(_, wish)| wish.is_awaited)
    }

    /// Removes a command, unless the executor awaits it.
    pub(super) fn forget(&mut self, name: &str) {
        if self.wishes.get(name).is_some_and(|wish| !wish.is_awaited) {
            self.wishes.remove(name);
        }
    }

    /// True if entries are recorded and no batch has carried entries for this time.
    fn has_waited(&self, time: Duration) -> bool {
        !self.noted.is_empty() && self.told_of.is_none_or(|at| at.elapsed() >= time)
    }

    /// Returns the time of the next check if nothing changes: `speaks` at the latest.
    pub(super) fn wake(&self, speaks: Instant) -> Instant {
        let due = self.awaited().filter_map(|(_, wish)| wish.due).min();
        let due = due.map(|due| Instant::now() + Duration::from_millis(due.saturating_sub(now())));
        let seen = self.told_of.filter(|_| !self.noted.is_empty()).map(|at| at + SEEN);
        let wakes = due.into_iter().chain(self.idle().into_iter().chain(seen).filter(|at| *at > Instant::now()));
        wakes.chain([speaks]).min().unwrap_or(speaks)
    }
}

/// Splits off the values of `all` that exceed `room`, and subtracts the rest from `room`. The first
/// value always fits an unused room.
fn over<T: Serialize>(all: &mut Vec<T>, room: &mut usize) -> Vec<T> {
    let fits = all.iter().take_while(|one| {
        let bytes = size(one);
        let is_first = *room == ROOM;
        let fits = is_first || bytes <= *room;
        *room = room.saturating_sub(bytes);
        fits
    });
    let fits = fits.count();
    all.split_off(fits)
}

#[cfg(test)]
mod tests {
    use agent_core::RunRequest;
    use agent_dispatch::Job;

    use super::*;
    use crate::step_log::StepLog;

    const PATIENCE: Duration = Duration::from_secs(30);

    fn steps() -> Arc<StepLog> {
        Arc::new(StepLog::new(PATIENCE, "worker".into()))
    }

    fn calls() -> Record {
        let job = Job::new("a", &RunRequest::user("go").session("s").run_id("r")).expect("is data");
        Record::Calls { name: "call".into(), service: None, job: Box::new(job) }
    }

    /// Returns the next batch, which is recorded, and the time that it took.
    async fn next(steps: &StepLog) -> (Batch, Duration) {
        let began = Instant::now();
        let batch = steps.next().await.batch;
        steps.read(&batch.records);
        (batch, began.elapsed())
    }

    /// Lets the executor wait for the command of the record, and records it.
    async fn wishes(steps: &Arc<StepLog>, name: &'static str, record: Record) -> tokio::task::JoinHandle<Arc<Stored>> {
        let (executor, first) = (
            steps.clone(),
            tokio::spawn({
                let steps = steps.clone();
                async move { next(&steps).await.0.records.len() }
            }),
        );
        let waits = tokio::spawn(async move { executor.wish(name, record).await });
        assert_eq!(first.await.expect("ends"), 1);
        waits
    }

    #[tokio::test(start_paused = true)]
    async fn a_run_waits_for_one_elsewhere_alone_when_nothing_happened_for_a_moment() {
        let steps = steps();
        let _waits = wishes(&steps, "call", calls()).await;
        let (batch, took) = next(&steps).await;
        assert!(batch.waits && took >= CALLS && took < SLEEPS, "{batch:?} after {took:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_run_that_asks_waits_at_once() {
        let steps = steps();
        let asks = Record::Asks { name: "asks".into(), question: "q".into(), signal: "asks".into() };
        let _waits = wishes(&steps, "asks", asks).await;
        let (batch, took) = next(&steps).await;
        assert!(batch.waits && took < CALLS, "{batch:?} after {took:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn what_runs_beside_a_call_has_the_handler_speak_and_not_wait() {
        let steps = steps();
        let _waits = wishes(&steps, "call", calls()).await;
        let running = steps.running(None).await;
        for _ in 0..2 {
            let (batch, took) = next(&steps).await;
            assert!(!batch.waits && batch.records.is_empty(), "{batch:?}");
            assert!(took >= PATIENCE && took < PATIENCE * 2, "{took:?}");
        }
        drop(running);
        assert!(next(&steps).await.0.waits);
    }

    #[tokio::test(start_paused = true)]
    async fn what_nobody_waits_for_any_more_is_given_up() {
        let steps = steps();
        let waits = wishes(&steps, "call", calls()).await;
        waits.abort();
        let (batch, _) = next(&steps).await;
        assert!(matches!(&batch.records[..], [Record::GivesUp { name }] if name == "call"), "{batch:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn what_an_earlier_attempt_waited_for_is_given_up_by_one_that_does_not_wait_until_all_is_read() {
        let steps = steps();
        steps.read(&[calls()]);
        let waits = futures::FutureExt::now_or_never(steps.wish("call", calls()));
        assert!(waits.is_none());
        let (batch, _) = next(&steps).await;
        assert!(matches!(&batch.records[..], [Record::GivesUp { name }] if name == "call"), "{batch:?}");
    }

    #[test]
    fn a_batch_holds_what_fits_and_what_does_not_fit_any_goes_alone() {
        let text = |bytes: usize| "x".repeat(bytes);
        let (mut room, mut all) = (ROOM, vec![text(ROOM / 2), text(ROOM / 4), text(ROOM / 2), text(1)]);
        assert_eq!(over(&mut all, &mut room).len(), 2, "in their order");
        let (mut room, mut all) = (ROOM, vec![text(ROOM * 2), text(1)]);
        assert_eq!(over(&mut all, &mut room).len(), 1);
        assert_eq!(over(&mut all, &mut room).len(), 1, "there is no room beside it");
    }
}
