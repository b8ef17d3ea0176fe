//! One run between its executor, which makes steps in any order, and its handler, which has Restate's journal.

use std::{
    collections::{BTreeMap, HashMap},
    fmt,
    pin::pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use agent_core::{Message, Question, journal::Entry, run::new_id};
use tokio::{sync::Notify, time::Instant};

use crate::{
    known::Known,
    record::{Batch, Record, Stored},
};

/// How long the executor may do something between two steps before a run that only sleeps leaves this process.
const GRACE: Duration = Duration::from_secs(1);

/// How long what a run noted waits for a batch that takes it along and was not to come anyway. Two pieces of the session's state are written with each such
/// batch, as much again as a batch costs, so that a run of fast steps has them written for several at once.
const RIDES: Duration = Duration::from_millis(50);

/// How long what a run noted waits if no batch comes.
const SEEN: Duration = Duration::from_secs(1);

/// What the steps of a run came to, as far as it is in Restate's journal, and what is to come there.
///
/// The executor pushes records and waits until they are durable; the handler takes them in batches, has Restate keep a batch, and
/// reads it back. After a restart it first reads the batches that are kept: only then is the run live.
pub(crate) struct StepLog {
    state: Mutex<State>,
    /// Something changed.
    changed: Notify,
    /// How long results may wait for those of steps that still run before the handler asks Restate to keep them. Restate asks for
    /// a run that was silent for longer to leave the process as soon as it speaks again, and would cut off what still runs.
    patience: Duration,
    /// Who makes the steps: the worker, and its attempt at the run.
    worker: Arc<str>,
    attempt: String,
}

#[derive(Default)]
struct State {
    /// True once everything that was kept is read.
    live: bool,
    /// All results. A step may be asked for more than once: when a run goes on, it looks again at what it began.
    kept: HashMap<String, Arc<Stored>>,
    /// To be kept with the next batch, for which they are no reason.
    later: Vec<Record>,
    /// To be kept.
    out: Vec<Record>,
    /// Handed to Restate, and not read back.
    in_flight: InFlight,
    noted: Vec<Entry>,
    /// When a batch took along last what was noted.
    told_of: Option<Instant>,
    /// What earlier attempts noted.
    known: Known,
    /// Bodies under way.
    running: usize,
    /// The pauses that the run waits in, by the name of the wait.
    rests: HashMap<String, u32>,
    /// Wishes that are kept, and when they are due.
    wished: HashMap<String, Option<u64>>,
    /// Wishes that the executor waits for, and when they are due: milliseconds since 1970.
    awaited: BTreeMap<String, Option<u64>>,
    /// It is to be looked whether somebody told the run something.
    look: bool,
    /// It is to be looked at once, though that may cut off what runs: the run was cancelled.
    at_once: bool,
    looked: Option<Instant>,
    /// What the run was told, and how often.
    told: Told,
    heard: u64,
}

#[derive(Default)]
struct InFlight {
    records: Vec<Record>,
    noted: Vec<Entry>,
}

/// What a run was told from outside, and did not do yet.
#[derive(Debug, Default)]
pub(crate) struct Told {
    pub(crate) cancel: bool,
    /// How many pauses it was told, and which of them it is to make.
    pub(crate) pauses: u32,
    pub(crate) pause: Option<u32>,
    pub(crate) steer: Vec<Message>,
}

/// What the handler makes a batch of.
pub(crate) struct Taken {
    pub(crate) batch: Batch,
    pub(crate) noted: Vec<Entry>,
}

impl StepLog {
    pub(crate) fn new(patience: Duration, worker: Arc<str>) -> Self {
        Self { state: Mutex::default(), changed: Notify::new(), patience, worker, attempt: new_id() }
    }

    /// The attempt's nonce.
    pub(crate) fn attempt(&self) -> &str {
        &self.attempt
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the state and wakes whoever waits for it.
    fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let changed = change(&mut self.lock());
        self.changed.notify_waiters();
        changed
    }

    /// What `find` finds, as soon as it does.
    async fn find<T>(&self, mut find: impl FnMut(&mut State) -> Option<T>) -> T {
        loop {
            let mut changed = pin!(self.changed.notified());
            changed.as_mut().enable(); // what changes from now on is not missed
            if let Some(found) = find(&mut self.lock()) {
                return found;
            }
            changed.await;
        }
    }
}

/// The executor's side.
impl StepLog {
    /// The result of a step of an earlier attempt; none, once all of those are read, if it has none.
    pub(crate) async fn earlier(&self, name: &str) -> Option<Arc<Stored>> {
        self.find(|state| match state.kept.get(name) {
            Some(kept) => Some(Some(kept.clone())),
            None => state.live.then_some(None),
        })
        .await
    }

    /// Counts a body as running until the guard is dropped.
    pub(crate) fn running(&self) -> Running<'_> {
        self.change(|state| state.running += 1);
        Running(self)
    }

    /// Puts a record into the next batch.
    pub(crate) fn push(&self, record: Record) {
        self.change(|state| state.out.push(record));
    }

    /// Has a result kept with whatever comes after it. Only for what does nothing outside, before a step that is kept itself: nobody
    /// can know of it before that.
    pub(crate) fn keep_later(&self, name: String, result: Stored) {
        self.change(|state| {
            state.kept.insert(name.clone(), Arc::new(result.clone()));
            state.later.push(Record::Kept { name, result });
        });
    }

    /// A result, as soon as it is durable.
    pub(crate) async fn kept(&self, name: &str) -> Arc<Stored> {
        self.find(|state| state.kept.get(name).cloned()).await
    }

    /// Waits until a wish comes true that this record makes, unless an earlier attempt made it.
    pub(crate) async fn wish(&self, name: &str, due: Option<u64>, record: Record) -> Arc<Stored> {
        if let Some(kept) = self.earlier(name).await {
            return kept;
        }
        let calls = matches!(record, Record::Calls { .. });
        self.change(|state| {
            let due = *state.wished.entry(name.to_owned()).or_insert_with(|| {
                state.out.push(record);
                due
            });
            state.awaited.insert(name.to_owned(), due);
        });
        let _awaited = Awaited { steps: self, name, calls };
        self.kept(name).await
    }

    /// Notes entries of the run: they are kept with a batch that comes soon. Until then they are known to nobody, and a run that is driven again notes
    /// them again.
    pub(crate) fn note(&self, entries: &[Entry]) {
        self.change(|state| state.noted.extend_from_slice(entries));
    }

    /// True if this digest is the one by which people know the question: that of the attempt that asked it first.
    pub(crate) fn is_known_by(&self, digest: &str, run: &str, question: &Question) -> bool {
        self.lock().known.digest(run, question) == Some(digest)
    }

    /// Has it looked whether the run was told something, unless that was done a moment ago and nobody asked for it since, and waits for that.
    pub(crate) async fn look(&self) {
        self.change(|state| state.look |= state.looked.is_none_or(|at| at.elapsed() > Duration::from_secs(1)));
        self.find(|state| (!state.look).then_some(())).await;
    }

    /// How often the run heard that it was told something.
    pub(crate) fn heard(&self) -> u64 {
        self.lock().heard
    }

    /// Waits until the run hears more than this, which Restate passes on in a moment; for a second at most, since what is busy for long looks later.
    /// Its handler looks meanwhile as soon as it can; if the run was cancelled, though that cuts off what still runs.
    pub(crate) async fn hears(&self, heard: u64, cancelled: bool) {
        let hears = async {
            while self.heard() == heard {
                self.change(|state| {
                    state.look = true;
                    state.at_once |= cancelled;
                });
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        _ = tokio::time::timeout(Duration::from_secs(1), hears).await;
    }

    /// What the run was told; `look` may take of it.
    pub(crate) fn told<T>(&self, look: impl FnOnce(&mut Told) -> T) -> T {
        look(&mut self.lock().told)
    }

    /// Waits until the run, which does nothing that was kept any more, was told something of this kind.
    pub(crate) async fn until_told(&self, is_it: impl Fn(&Told) -> bool) {
        self.find(|state| {
            (state.live && (state.running > 0 || !state.awaited.is_empty()) && is_it(&state.told)).then_some(())
        })
        .await;
    }
}

/// The handler's side.
impl StepLog {
    /// What is to be kept next, as soon as there is something. Whoever asks has read all that was kept.
    pub(crate) async fn next(&self) -> Taken {
        let began = Instant::now();
        self.change(|state| state.live = true);
        loop {
            let mut changed = pin!(self.changed.notified());
            changed.as_mut().enable();
            let wake = {
                let mut state = self.lock();
                let is_late = began.elapsed() > self.patience && state.running > 0 && !state.at_once;
                if !is_late && let Some(taken) = state.take(began, &self.worker, &self.attempt) {
                    return taken;
                }
                state.wake(began, self.patience)
            };
            tokio::select! {
                () = changed => {}
                () = tokio::time::sleep_until(wake) => {}
            }
        }
    }

    /// Takes back what Restate did not keep, because the run was told to end meanwhile.
    pub(crate) fn put_back(&self) {
        self.change(|state| {
            let InFlight { mut records, mut noted } = std::mem::take(&mut state.in_flight);
            records.append(&mut state.out);
            noted.append(&mut state.noted);
            (state.out, state.noted) = (records, noted);
        });
    }

    /// True if the run does nothing any more that was kept.
    pub(crate) fn is_live(&self) -> bool {
        self.lock().live
    }

    /// What was kept of the run's entries, in an earlier attempt: this one need not keep it again.
    pub(crate) fn know(&self, entries: &[Entry]) {
        let mut state = self.lock();
        entries.iter().for_each(|entry| state.known.add(entry));
    }

    /// Reads a record that was kept.
    pub(crate) fn read(&self, record: &Record) {
        self.change(|state| match record {
            Record::Kept { name, result } => _ = state.kept.insert(name.clone(), Arc::new(result.clone())),
            Record::Sleeps { name, until } => _ = state.wished.insert(name.clone(), Some(*until)),
            Record::Asks { name, .. } | Record::Calls { name, .. } => _ = state.wished.insert(name.clone(), None),
            Record::Rests { name, pause } => {
                state.wished.insert(name.clone(), None);
                state.rests.insert(name.clone(), *pause);
            }
            Record::Began { .. } | Record::GivesUp { .. } | Record::Due { .. } | Record::Ended { .. } => {}
        });
    }

    /// What was in flight is read back.
    pub(crate) fn landed(&self) {
        self.change(|state| state.in_flight = InFlight::default());
    }

    /// A wish came true.
    pub(crate) fn comes_true(&self, name: &str, result: Stored) {
        self.change(|state| {
            if state.rests.remove(name).is_some_and(|pause| state.told.pause == Some(pause)) {
                state.told.pause = None;
            }
            state.kept.insert(name.to_owned(), Arc::new(result));
        });
    }

    /// It was looked whether the run was told something.
    pub(crate) fn has_looked(&self) {
        self.change(|state| {
            (state.look, state.at_once) = (false, false);
            state.looked = Some(Instant::now());
        });
    }

    /// The run is told something.
    pub(crate) fn tell(&self, tell: impl FnOnce(&mut Told)) {
        self.change(|state| {
            state.heard += 1;
            tell(&mut state.told);
        });
    }
}

impl State {
    /// What is to be kept now, if there is anything.
    fn take(&mut self, began: Instant, worker: &Arc<str>, attempt: &str) -> Option<Taken> {
        let mut batch = Batch::default();
        let now = now();
        let due = self.sleeping().filter(|(_, due)| *due <= now);
        let due: Vec<_> = due.map(|(name, _)| Record::Due { name: name.clone() }).collect();
        self.out.extend(due);
        batch.records = std::mem::take(&mut self.out);
        batch.looks = self.look;
        let has_open_question = self.awaited.values().any(Option::is_none);
        // What is cancelled is about to end: nothing that it waited for comes true any more.
        let only_waits = self.running == 0 && !self.awaited.is_empty() && !self.has_news() && !self.told.cancel;
        batch.waits =
            batch.records.is_empty() && !batch.looks && only_waits && (has_open_question || began.elapsed() >= GRACE);
        let Self { noted, known, .. } = self;
        noted.retain(|entry| !known.has(entry));
        if batch.records.is_empty() && !batch.looks && !batch.waits && !self.has_waited(SEEN) {
            return None;
        }
        batch.records.splice(..0, std::mem::take(&mut self.later));
        let noted = match batch.waits || batch.records.iter().any(Record::is_seen) || self.has_waited(RIDES) {
            true => {
                self.told_of = Some(Instant::now());
                let over = self.known.taken_over(worker, attempt, now);
                over.into_iter().chain(std::mem::take(&mut self.noted)).collect()
            }
            false => Vec::new(),
        };
        self.in_flight = InFlight { records: batch.records.clone(), noted: noted.clone() };
        Some(Taken { batch, noted })
    }

    /// True if something is noted, and batches told of nothing for so long.
    fn has_waited(&self, time: Duration) -> bool {
        !self.noted.is_empty() && self.told_of.is_none_or(|at| at.elapsed() >= time)
    }

    /// True if the executor waits for something that came true already, and will go on.
    fn has_news(&self) -> bool {
        self.awaited.keys().any(|name| self.kept.contains_key(name))
    }

    /// The sleeps whose time is not known to be up, and when it is.
    fn sleeping(&self) -> impl Iterator<Item = (&String, u64)> {
        let sleeps = self.awaited.iter().filter_map(|(name, due)| Some((name, (*due)?)));
        sleeps.filter(|(name, _)| !self.kept.contains_key(*name))
    }

    /// When to look again.
    fn wake(&self, began: Instant, patience: Duration) -> Instant {
        let due = self.sleeping().map(|(_, due)| due).min();
        let due = due.map(|due| Instant::now() + Duration::from_millis(due.saturating_sub(now())));
        let idle = (self.running == 0 && !self.awaited.is_empty()).then(|| began + GRACE);
        let late = Instant::now() + patience;
        let seen = self.told_of.filter(|_| !self.noted.is_empty()).map(|at| at + SEEN);
        let wakes = due.into_iter().chain(idle.into_iter().chain(seen).filter(|at| *at > Instant::now()));
        wakes.chain([late]).min().unwrap_or(late)
    }
}

/// Milliseconds since 1970, UTC.
pub(crate) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX))
}

/// A body under way.
pub(crate) struct Running<'a>(&'a StepLog);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.change(|state| state.running -= 1);
    }
}

/// A wish that the executor waits for.
struct Awaited<'a> {
    steps: &'a StepLog,
    name: &'a str,
    /// True if it is the end of a run of another session.
    calls: bool,
}

impl Drop for Awaited<'_> {
    fn drop(&mut self) {
        self.steps.change(|state| {
            state.awaited.remove(self.name);
            if self.calls && !state.kept.contains_key(self.name) {
                state.out.push(Record::GivesUp { name: self.name.to_owned() });
            }
        });
    }
}

impl fmt::Debug for StepLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.lock();
        let State { live, running, awaited, told, .. } = &*state;
        f.debug_struct("StepLog")
            .field("live", live)
            .field("running", running)
            .field("awaited", awaited)
            .field("told", told)
            .finish_non_exhaustive()
    }
}
