//! One run between its executor, which makes steps in any order, and its handler, which has Restate's journal.

mod state;

use std::{
    fmt,
    pin::pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use agent_core::{Error, Message, Question, journal::Entry, run::new_id};
use tokio::{sync::Notify, time::Instant};

use self::state::{InFlight, State, Wish};
use crate::record::{Batch, Record, Stored};

/// What the steps of a run came to, as far as it is in Restate's journal, and what is to come there.
///
/// The executor pushes records and waits until they are durable; the handler takes them in batches, has Restate keep a batch, and
/// reads it back. After a restart it first reads the batches that are kept: only then is the run live.
pub(crate) struct StepLog {
    state: Mutex<State>,
    /// Something changed.
    changed: Notify,
    /// How long the handler keeps silent while the executor does something. Restate asks a run that was silent for longer to leave the process, and
    /// would cut off what still runs.
    patience: Duration,
    /// Who makes the steps: the worker, and its attempt at the run.
    worker: Arc<str>,
    attempt: String,
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

    /// Changes the state for the executor, which does something.
    fn act<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        self.change(|state| {
            state.moved = Some(Instant::now());
            change(state)
        })
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

    /// Counts a body, of a call or of something else, as running until the guard is dropped. In a process that ends, none begins any more but the calls that are
    /// [kept as begun](Self::intends): nobody is to be asked about one that never was.
    pub(crate) async fn running(&self, call: Option<&str>) -> Running<'_> {
        let begins = self.act(|state| {
            let begins = call.is_some_and(|call| state.intended.remove(call)) || !state.leaves;
            state.running += usize::from(begins);
            begins
        });
        match begins {
            true => Running(self),
            false => std::future::pending().await,
        }
    }

    /// Notes that a call is about to be kept as begun by this attempt, which makes it then.
    pub(crate) fn intends(&self, call: String) {
        self.change(|state| state.intended.insert(call));
    }

    /// Puts a record into the next batch.
    pub(crate) fn push(&self, record: Record) {
        self.act(|state| state.out.push(record));
    }

    /// Puts a record into the batch that comes next, for which it is no reason.
    pub(crate) fn push_later(&self, record: Record) {
        self.act(|state| state.later.push(record));
    }

    /// Has a result kept with whatever comes after it. Only for what does nothing outside, before a step that is kept itself: nobody
    /// can know of it before that.
    pub(crate) fn keep_later(&self, name: String, result: Stored) {
        self.push_later(Record::Kept { name: name.clone(), result: result.clone() });
        self.change(|state| state.kept.insert(name, Arc::new(result)));
    }

    /// A result, as soon as it is durable.
    pub(crate) async fn kept(&self, name: &str) -> Arc<Stored> {
        self.find(|state| state.kept.get(name).cloned()).await
    }

    /// Waits until a wish comes true that this record makes, unless an earlier attempt made it. If nobody waits for it any more, it is given up.
    pub(crate) async fn wish(&self, name: &str, record: Record) -> Arc<Stored> {
        // From the first: an earlier attempt may have made it, and nobody waits any more when that is read.
        let _awaited = Awaited { steps: self, name };
        if let Some(kept) = self.earlier(name).await {
            return kept;
        }
        self.act(|state| {
            let wish = state.wishes.entry(name.to_owned()).or_insert_with(|| {
                let wish = Wish::of(&record);
                state.out.push(record);
                wish
            });
            wish.is_awaited = true;
        });
        self.kept(name).await
    }

    /// Ends the attempt, so that Restate tries the run again later. Nothing goes on here meanwhile.
    pub(crate) async fn fails<T>(&self, why: Error) -> T {
        self.change(|state| state.failed = Some(why));
        std::future::pending().await
    }

    /// Ends the attempt as soon as nothing of it is under way, since the process ends.
    pub(crate) fn leaves(&self, why: Error) {
        self.change(|state| {
            state.leaves = true;
            state.failed.get_or_insert(why);
        });
    }

    /// Notes entries of the run: they are kept with a batch that comes soon. Until then they are known to nobody, and a run that is driven again notes
    /// them again.
    pub(crate) fn note(&self, entries: &[Entry]) {
        self.change(|state| {
            let State { live, known, noted, .. } = state;
            noted.extend(entries.iter().filter(|entry| !*live || !known.has(entry)).cloned());
        });
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
    /// Its handler looks meanwhile as soon as it can.
    pub(crate) async fn hears(&self, heard: u64) {
        let hears = async {
            while self.heard() == heard {
                self.change(|state| state.look = true);
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        _ = tokio::time::timeout(Duration::from_secs(1), hears).await;
    }

    /// What the run was told; `look` may take of it.
    pub(crate) fn told<T>(&self, look: impl FnOnce(&mut Told) -> T) -> T {
        look(&mut self.lock().told)
    }

    /// What is found in what the run was told, once it does nothing that was kept any more.
    pub(crate) async fn until_told<T>(&self, find: impl Fn(&Told) -> Option<T>) -> T {
        self.find(|state| {
            let is_under_way = state.live && (state.running > 0 || state.awaited().next().is_some());
            is_under_way.then(|| find(&state.told)).flatten()
        })
        .await
    }
}

/// The handler's side.
impl StepLog {
    /// What is to be kept next, as soon as there is something. Whoever asks has read all that was kept.
    pub(crate) async fn next(&self) -> Taken {
        let speaks = Instant::now() + self.patience;
        self.change(State::go_live);
        loop {
            let mut changed = pin!(self.changed.notified());
            changed.as_mut().enable();
            let wake = {
                let mut state = self.lock();
                if let Some(taken) = state.take(speaks, &self.worker, &self.attempt) {
                    return taken;
                }
                state.wake(speaks)
            };
            tokio::select! {
                () = changed => {}
                () = tokio::time::sleep_until(wake) => {}
            }
        }
    }

    /// Why the attempt is to end. What it does elsewhere comes to its end first, so that nothing of it is in doubt.
    pub(crate) async fn failed(&self) -> Error {
        self.find(|state| {
            let is_kept = state.out.is_empty() && state.in_flight.records.is_empty();
            let is_begun = !state.leaves || state.intended.is_empty();
            let is_settled = !state.live || state.running == 0 && is_kept && is_begun;
            state.failed.take_if(|_| is_settled)
        })
        .await
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

    /// Reads records that were kept: those that were in flight, or of an earlier attempt.
    pub(crate) fn read(&self, records: &[Record]) {
        self.change(|state| {
            state.in_flight = InFlight::default();
            if !records.is_empty() {
                state.moved = Some(Instant::now()); // the executor goes on with them
            }
            for record in records {
                match record {
                    Record::Kept { name, result } => _ = state.kept.insert(name.clone(), Arc::new(result.clone())),
                    Record::GivesUp { name } => state.forget(name),
                    Record::Sleeps { name, .. }
                    | Record::Asks { name, .. }
                    | Record::Rests { name, .. }
                    | Record::Calls { name, .. } => {
                        state.wishes.entry(name.clone()).or_insert_with(|| Wish::of(record));
                    }
                    Record::Began { .. } | Record::Due { .. } | Record::Ended { .. } => {}
                }
            }
        });
    }

    /// A wish came true.
    pub(crate) fn comes_true(&self, name: &str, result: Stored) {
        self.change(|state| {
            let pause = state.wishes.get(name).and_then(|wish| wish.pause);
            if pause.is_some() && state.told.pause == pause {
                state.told.pause = None;
            }
            state.forget(name);
            state.kept.insert(name.to_owned(), Arc::new(result));
        });
    }

    /// It was looked whether the run was told something.
    pub(crate) fn has_looked(&self) {
        self.change(|state| {
            state.look = false;
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

/// Milliseconds since 1970, UTC.
pub(crate) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX))
}

/// A body under way.
pub(crate) struct Running<'a>(&'a StepLog);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.act(|state| state.running -= 1);
    }
}

/// A wish that the executor waits for.
struct Awaited<'a> {
    steps: &'a StepLog,
    name: &'a str,
}

impl Drop for Awaited<'_> {
    fn drop(&mut self) {
        self.steps.act(|state| {
            state.wishes.remove(self.name);
            if !state.kept.contains_key(self.name) {
                state.out.push(Record::GivesUp { name: self.name.to_owned() });
            }
        });
    }
}

impl fmt::Debug for StepLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.lock();
        let State { live, running, wishes, told, .. } = &*state;
        f.debug_struct("StepLog")
            .field("live", live)
            .field("running", running)
            .field("wishes", wishes)
            .field("told", told)
            .finish_non_exhaustive()
    }
}
