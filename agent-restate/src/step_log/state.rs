//! What a run's log of steps holds, and what of it goes into the next batch.

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

/// How long the executor may do something between two steps before a run that only sleeps leaves this process. The process watches its clock meanwhile.
const SLEEPS: Duration = Duration::from_secs(1);

/// The same, for a run that waits for one elsewhere, of whose end nobody hears meanwhile.
const CALLS: Duration = Duration::from_millis(100);

/// How long what a run noted waits for a batch that takes it along and was not to come anyway. Two pieces of the session's state are written with each such
/// batch, as much again as a batch costs, so that a run of fast steps has them written for several at once.
const RIDES: Duration = Duration::from_millis(50);

/// How long what a run noted waits if no batch comes.
const SEEN: Duration = Duration::from_secs(1);

/// How many bytes of JSON go with one batch. What is larger goes alone.
const ROOM: usize = 8 << 20;

#[derive(Default)]
pub(super) struct State {
    /// True once everything that was kept is read.
    pub(super) live: bool,
    /// All results. A step may be asked for more than once: when a run goes on, it looks again at what it began.
    pub(super) kept: HashMap<String, Arc<Stored>>,
    /// To be kept with the next batch, for which they are no reason.
    pub(super) later: Vec<Record>,
    /// To be kept.
    pub(super) out: Vec<Record>,
    /// Handed to Restate, and not read back.
    pub(super) in_flight: InFlight,
    pub(super) noted: Vec<Entry>,
    /// When a batch took along last what was noted.
    pub(super) told_of: Option<Instant>,
    /// What earlier attempts noted.
    pub(super) known: Known,
    /// Bodies under way.
    pub(super) running: usize,
    /// Calls that this attempt had kept as begun, and that have not begun.
    pub(super) intended: BTreeSet<String>,
    /// When the executor did something last, or was given what it goes on with.
    pub(super) moved: Option<Instant>,
    /// What the run waits for and was not given up.
    pub(super) wishes: BTreeMap<String, Wish>,
    /// It is to be looked whether somebody told the run something.
    pub(super) look: bool,
    pub(super) looked: Option<Instant>,
    /// Why this attempt cannot go on, and the next one perhaps can.
    pub(super) failed: Option<Error>,
    /// The attempt ends, and begins nothing more.
    pub(super) leaves: bool,
    /// What the run was told, and how often.
    pub(super) told: Told,
    pub(super) heard: u64,
}

/// Something from outside that the run waits for.
#[derive(Debug)]
pub(super) struct Wish {
    /// When it comes true by itself: milliseconds since 1970.
    pub(super) due: Option<u64>,
    /// How long nothing must happen before the run waits for this alone.
    pub(super) grace: Duration,
    /// The pause that ends with it.
    pub(super) pause: Option<u32>,
    /// True if the executor of this attempt waits for it.
    pub(super) is_awaited: bool,
}

impl Wish {
    /// The wish that a record makes.
    pub(super) fn of(record: &Record) -> Self {
        let (due, grace, pause) = match record {
            Record::Sleeps { until, .. } => (Some(*until), SLEEPS, None),
            Record::Calls { .. } => (None, CALLS, None),
            Record::Rests { pause, .. } => (None, Duration::ZERO, Some(*pause)),
            // The executor asks when nothing else is left to do.
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
    /// Everything that was kept is read.
    pub(super) fn go_live(&mut self) {
        if !self.live {
            let Self { noted, known, .. } = self;
            noted.retain(|entry| !known.has(entry));
            (self.live, self.moved) = (true, Some(Instant::now()));
        }
    }

    /// What is to be kept now, if there is anything. When it is time to speak, a batch may be empty.
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
        // Who acts on a record sees all that was noted before it.
        let is_told = !tells || self.noted.is_empty();
        if is_told {
            records.append(&mut self.later);
            records.append(&mut self.out);
            self.out = over(&mut records, &mut room);
        }
        self.in_flight = InFlight { records: records.clone(), noted: noted.clone() };
        Some(Taken { batch: Batch { records, noted: None, waits: waits && is_told, looks }, noted })
    }

    /// Has the timers kept whose time has come.
    fn notice_what_is_due(&mut self) {
        let now = now();
        for (name, wish) in &mut self.wishes {
            if wish.is_awaited && !self.kept.contains_key(name) && wish.due.take_if(|due| *due <= now).is_some() {
                self.out.push(Record::Due { name: name.clone() });
            }
        }
    }

    /// True if nothing goes on before a wish comes true. What is cancelled is about to end: nothing that it waited for comes true any more.
    fn only_waits(&self) -> bool {
        // The executor goes on when something came true that it waits for.
        let has_news = self.awaited().any(|(name, _)| self.kept.contains_key(name));
        let is_idle = self.idle().is_some_and(|idle| idle <= Instant::now());
        self.running == 0 && is_idle && !has_news && !self.told.cancel
    }

    /// From when on the run only waits, if it waits and nothing happens until then.
    fn idle(&self) -> Option<Instant> {
        let grace = self.awaited().map(|(_, wish)| wish.grace).min();
        self.moved.zip(grace).map(|(moved, grace)| moved + grace)
    }

    /// The wishes that the executor waits for.
    pub(super) fn awaited(&self) -> impl Iterator<Item = (&String, &Wish)> {
        self.wishes.iter().filter(|(_, wish)| wish.is_awaited)
    }

    /// Forgets a wish, unless the executor waits for it.
    pub(super) fn forget(&mut self, name: &str) {
        if self.wishes.get(name).is_some_and(|wish| !wish.is_awaited) {
            self.wishes.remove(name);
        }
    }

    /// True if something is noted, and batches told of nothing for so long.
    fn has_waited(&self, time: Duration) -> bool {
        !self.noted.is_empty() && self.told_of.is_none_or(|at| at.elapsed() >= time)
    }

    /// When to look again, if nothing changes: when it is time to speak at the latest.
    pub(super) fn wake(&self, speaks: Instant) -> Instant {
        let due = self.awaited().filter_map(|(_, wish)| wish.due).min();
        let due = due.map(|due| Instant::now() + Duration::from_millis(due.saturating_sub(now())));
        let seen = self.told_of.filter(|_| !self.noted.is_empty()).map(|at| at + SEEN);
        let wakes = due.into_iter().chain(self.idle().into_iter().chain(seen).filter(|at| *at > Instant::now()));
        wakes.chain([speaks]).min().unwrap_or(speaks)
    }
}

/// Takes from `all` what is over `room`, which gets smaller by the rest. The first one is never over a room that nothing was taken of.
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
    use agent_core::{RunRequest, dispatch::Job};

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

    /// The next batch, which is kept, and how long it took.
    async fn next(steps: &StepLog) -> (Batch, Duration) {
        let began = Instant::now();
        let batch = steps.next().await.batch;
        steps.read(&batch.records);
        (batch, began.elapsed())
    }

    /// Lets the executor wait for what the record makes, and has that kept.
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
