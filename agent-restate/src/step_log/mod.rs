//! Log of the steps of one run, between its executor, which makes steps in any order, and its
//! handler, which owns Restate's journal.

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

/// Results of a run's steps that are in Restate's journal, and records that are to be written
/// there.
///
/// The executor pushes records and waits until they are durable; the handler takes them in batches,
/// lets Restate record each batch, and reads it back. After a restart the handler first replays the
/// recorded batches: only then is the run live.
pub(crate) struct StepLog {
    state: Mutex<State>,
    /// Notified of every change of the state.
    changed: Notify,
    /// Time after which the handler sends an empty batch while the executor is busy. Restate asks a
    /// run that was silent for longer to leave the process, and would then abort steps in progress.
    patience: Duration,
    /// Worker that drives the run.
    worker: Arc<str>,
    attempt: String,
}

/// Signals that a run received from outside and has not consumed yet.
#[derive(Debug, Default)]
pub(crate) struct Told {
    pub(crate) cancel: bool,
    /// Number of pauses received, and the one to make.
    pub(crate) pauses: u32,
    pub(crate) pause: Option<u32>,
    pub(crate) steer: Vec<Message>,
}

/// Content of the handler's next batch.
pub(crate) struct Taken {
    pub(crate) batch: Batch,
    pub(crate) noted: Vec<Entry>,
}

impl StepLog {
    pub(crate) fn new(patience: Duration, worker: Arc<str>) -> Self {
        Self { state: Mutex::default(), changed: Notify::new(), patience, worker, attempt: new_id() }
    }

    /// Returns the attempt's nonce.
    pub(crate) fn attempt(&self) -> &str {
        &self.attempt
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the state and wakes all waiters.
    fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let changed = change(&mut self.lock());
        self.changed.notify_waiters();
        changed
    }

    /// Changes the state on behalf of the executor, and counts as its activity.
    fn act<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        self.change(|state| {
            state.moved = Some(Instant::now());
            change(state)
        })
    }

    /// Waits until `find` returns a value.
    async fn find<T>(&self, mut find: impl FnMut(&mut State) -> Option<T>) -> T {
        loop {
            let mut changed = pin!(self.changed.notified());
            changed.as_mut().enable(); // no later change is missed
            if let Some(found) = find(&mut self.lock()) {
                return found;
            }
            changed.await;
        }
    }
}

/// The executor's side.
impl StepLog {
    /// Returns the recorded result of a step of an earlier attempt; none once all batches are
    /// replayed without one.
    pub(crate) async fn earlier(&self, name: &str) -> Option<Arc<Stored>> {
        self.find(|state| match state.kept.get(name) {
            Some(kept) => Some(Some(kept.clone())),
            None => state.live.then_some(None),
        })
        .await
    }

    /// Counts a step body as running until the guard is dropped. On shutdown no body begins any
    /// more, except for calls [recorded as begun](Self::intends), which would otherwise be in
    /// doubt.
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

    /// Marks a call that this attempt is about to record as begun, and then makes.
    pub(crate) fn intends(&self, call: String) {
        self.change(|state| state.intended.insert(call));
    }

    /// Adds a record to the next batch.
    pub(crate) fn push(&self, record: Record) {
        self.act(|state| state.out.push(record));
    }

    /// Adds a record to the next batch without triggering one.
    pub(crate) fn push_later(&self, record: Record) {
        self.act(|state| state.later.push(record));
    }

    /// Stores a result, which is recorded with the next batch. Only for steps without external
    /// effects that precede a recorded step: nothing outside depends on them before that.
    pub(crate) fn keep_later(&self, name: String, result: Stored) {
        self.push_later(Record::Kept { name: name.clone(), result: result.clone() });
        self.change(|state| state.kept.insert(name, Arc::new(result)));
    }

    /// Waits until a result is durable and returns it.
    pub(crate) async fn kept(&self, name: &str) -> Arc<Stored> {
        self.find(|state| state.kept.get(name).cloned()).await
    }

    /// Issues the command of this record, unless an earlier attempt did, and waits until it
    /// completes. Cancelling the future abandons the command.
    pub(crate) async fn wish(&self, name: &str, record: Record) -> Arc<Stored> {
        // Created first: an earlier attempt may have issued the command, and this one may be
        // cancelled while the log is replayed.
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

    /// Ends the attempt, so that Restate retries the run later. Never returns.
    pub(crate) async fn fails<T>(&self, why: Error) -> T {
        self.change(|state| state.failed = Some(why));
        std::future::pending().await
    }

    /// Ends the attempt as soon as none of its steps is in progress, because the process shuts
    /// down.
    pub(crate) fn leaves(&self, why: Error) {
        self.change(|state| {
            state.leaves = true;
            state.failed.get_or_insert(why);
        });
    }

    /// Records entries of the run with one of the next batches. Until then they are not visible
    /// outside, and a replay records them again.
    pub(crate) fn note(&self, entries: &[Entry]) {
        self.change(|state| {
            let State { live, known, noted, .. } = state;
            noted.extend(entries.iter().filter(|entry| !*live || !known.has(entry)).cloned());
        });
    }

    /// True if this is the published digest of the question, which the first attempt that asked it
    /// set.
    pub(crate) fn is_known_by(&self, digest: &str, run: &str, question: &Question) -> bool {
        self.lock().known.digest(run, question) == Some(digest)
    }

    /// Polls for signals to the run and waits for the result, unless the last poll was less than a
    /// second ago and none was requested since.
    pub(crate) async fn look(&self) {
        self.change(|state| state.look |= state.looked.is_none_or(|at| at.elapsed() > Duration::from_secs(1)));
        self.find(|state| (!state.look).then_some(())).await;
    }

    /// Returns the number of signals that the run has received.
    pub(crate) fn heard(&self) -> u64 {
        self.lock().heard
    }

    /// Waits until the run receives more signals than `heard`, at most one second, since a busy run
    /// polls later. Requests a poll every 20 milliseconds meanwhile.
    pub(crate) async fn hears(&self, heard: u64) {
        let hears = async {
            while self.heard() == heard {
                self.change(|state| state.look = true);
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        _ = tokio::time::timeout(Duration::from_secs(1), hears).await;
    }

    /// Gives access to the received signals, which `look` may consume.
    pub(crate) fn told<T>(&self, look: impl FnOnce(&mut Told) -> T) -> T {
        look(&mut self.lock().told)
    }

    /// Waits until `find` returns a value for the received signals, once the attempt is live and in
    /// progress.
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
    /// Waits for the next batch. The caller has replayed all recorded batches.
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

    /// Waits for the error that ends the attempt. External calls in progress finish first, so that
    /// none is in doubt.
    pub(crate) async fn failed(&self) -> Error {
        self.find(|state| {
            let is_kept = state.out.is_empty() && state.in_flight.records.is_empty();
            let is_begun = !state.leaves || state.intended.is_empty();
            let is_settled = !state.live || state.running == 0 && is_kept && is_begun;
            state.failed.take_if(|_| is_settled)
        })
        .await
    }

    /// Takes back the batch that Restate did not record because the run was cancelled meanwhile.
    pub(crate) fn put_back(&self) {
        self.change(|state| {
            let InFlight { mut records, mut noted } = std::mem::take(&mut state.in_flight);
            records.append(&mut state.out);
            noted.append(&mut state.noted);
            (state.out, state.noted) = (records, noted);
        });
    }

    /// True once all recorded batches are replayed.
    pub(crate) fn is_live(&self) -> bool {
        self.lock().live
    }

    /// Adds entries that an earlier attempt recorded: this attempt need not record them again.
    pub(crate) fn know(&self, entries: &[Entry]) {
        let mut state = self.lock();
        entries.iter().for_each(|entry| state.known.add(entry));
    }

    /// Reads recorded records: those in flight, or those of an earlier attempt.
    pub(crate) fn read(&self, records: &[Record]) {
        self.change(|state| {
            state.in_flight = InFlight::default();
            if !records.is_empty() {
                state.moved = Some(Instant::now()); // the executor continues with them
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

    /// Completes a pending command.
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

    /// Marks a poll for signals as done.
    pub(crate) fn has_looked(&self) {
        self.change(|state| {
            state.look = false;
            state.looked = Some(Instant::now());
        });
    }

    /// Delivers a signal to the run.
    pub(crate) fn tell(&self, tell: impl FnOnce(&mut Told)) {
        self.change(|state| {
            state.heard += 1;
            tell(&mut state.told);
        });
    }
}

/// Returns the current time in milliseconds since 1970, UTC.
pub(crate) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX))
}

/// Guard of a running step body.
pub(crate) struct Running<'a>(&'a StepLog);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.act(|state| state.running -= 1);
    }
}

/// Guard of a pending command that the executor awaits.
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
