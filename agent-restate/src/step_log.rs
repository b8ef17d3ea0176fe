//! One run between its executor, which makes steps in any order, and its handler, which has Restate's journal.

use std::{
    collections::{BTreeMap, HashMap},
    fmt,
    pin::pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use agent_core::{Message, Question, journal::Entry, run::new_id};
use serde::Serialize;
use tokio::{sync::Notify, time::Instant};

use crate::{
    known::Known,
    record::{Batch, Record, Stored},
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

/// How many bytes of JSON go with one batch: Restate takes 32 MiB a message. What is larger goes alone.
const ROOM: usize = 16 << 20;

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
    /// When the executor did something last, or was given what it goes on with.
    moved: Option<Instant>,
    /// What the run waits for and was not given up.
    wishes: BTreeMap<String, Wish>,
    /// It is to be looked whether somebody told the run something.
    look: bool,
    looked: Option<Instant>,
    /// What the run was told.
    told: Told,
}

/// Something from outside that the run waits for.
#[derive(Debug)]
struct Wish {
    /// When it comes true by itself: milliseconds since 1970.
    due: Option<u64>,
    /// How long nothing must happen before the run waits for this alone.
    grace: Duration,
    /// The pause that ends with it.
    pause: Option<u32>,
    /// True if the executor of this attempt waits for it.
    is_awaited: bool,
}

impl Wish {
    /// The wish that a record makes.
    fn of(record: &Record) -> Self {
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

    /// Counts a body as running until the guard is dropped.
    pub(crate) fn running(&self) -> Running<'_> {
        self.act(|state| state.running += 1);
        Running(self)
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
        let _awaited = Awaited { steps: self, name };
        self.kept(name).await
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

    /// Has it looked whether the run was told something, unless that was done a moment ago, and waits for that.
    pub(crate) async fn look(&self) {
        let is_due = self.change(|state| {
            let is_due = state.looked.is_none_or(|at| at.elapsed() > Duration::from_secs(1));
            state.look |= is_due;
            is_due
        });
        if is_due {
            self.find(|state| (!state.look).then_some(())).await;
        }
    }

    /// Has the handler look whether the run was told something, as soon as it can.
    pub(crate) fn poke(&self) {
        self.change(|state| state.look = true);
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
                        _ = state.wishes.entry(name.clone()).or_insert_with(|| Wish::of(record))
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
        self.change(|state| tell(&mut state.told));
    }
}

impl State {
    /// Everything that was kept is read.
    fn go_live(&mut self) {
        if !self.live {
            let Self { noted, known, .. } = self;
            noted.retain(|entry| !known.has(entry));
            (self.live, self.moved) = (true, Some(Instant::now()));
        }
    }

    /// What is to be kept now, if there is anything. When it is time to speak, a batch may be empty.
    fn take(&mut self, speaks: Instant, worker: &Arc<str>, attempt: &str) -> Option<Taken> {
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
    fn awaited(&self) -> impl Iterator<Item = (&String, &Wish)> {
        self.wishes.iter().filter(|(_, wish)| wish.is_awaited)
    }

    /// Forgets a wish, unless the executor waits for it.
    fn forget(&mut self, name: &str) {
        if self.wishes.get(name).is_some_and(|wish| !wish.is_awaited) {
            self.wishes.remove(name);
        }
    }

    /// True if something is noted, and batches told of nothing for so long.
    fn has_waited(&self, time: Duration) -> bool {
        !self.noted.is_empty() && self.told_of.is_none_or(|at| at.elapsed() >= time)
    }

    /// When to look again, if nothing changes: when it is time to speak at the latest.
    fn wake(&self, speaks: Instant) -> Instant {
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
        let bytes = serde_json::to_vec(one).map_or(0, |json| json.len());
        let is_first = *room == ROOM;
        let fits = is_first || bytes <= *room;
        *room = room.saturating_sub(bytes);
        fits
    });
    let fits = fits.count();
    all.split_off(fits)
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
