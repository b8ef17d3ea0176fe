//! One run's side of the journal: the embedded engine.

mod below;
mod calls;
mod hand_over;
mod held;
mod noted;
mod step;
mod under_way;

use std::{
    collections::BTreeMap,
    fmt,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::{SystemTime, UNIX_EPOCH},
};

use serde_json::Value;

pub(crate) use self::held::Held;
use self::{
    noted::{Noted, What},
    under_way::{ByCall, Decisions, ModelCall, UnderWay},
};
use super::{Entry, EntryBody, JournalWriter, Recording, replay::Replay};
use crate::{
    AssistantMessage, Begun, Checkpoint, Emitter, Exit, GlobalStorage, Message, ModelResponse, State, ToolOutput,
    Usage, storage::CallStorage,
};

/// Writes what one run does, and tells the readers of its events as soon as it is durable.
///
/// [`record`](Self::record) notes an entry, [`flush`](Self::flush) hands what is noted to the journal, and
/// [`commit`](Self::commit) waits until it is durable. What the state and the shared storage changed meanwhile goes into the
/// same batch, so that a step and what it changed are kept together or not at all; what a call changed goes with that call's
/// own result.
#[derive(Clone)]
pub struct RunLog(Arc<Inner>);

struct Inner {
    run: Arc<str>,
    attempt: Arc<str>,
    /// None when the run is over.
    writer: Mutex<Option<Arc<dyn JournalWriter>>>,
    emitter: Emitter,
    state: State,
    globals: GlobalStorage,
    /// In one place, since whoever notes something mostly looks at the step too.
    open: Mutex<Open>,
    /// What calls without an answer have of the state and the storage. Nothing is locked while this is.
    calls: Mutex<ByCall<Arc<CallStorage>>>,
    /// How many entries were [noted](Open::noted) since changes were last looked for, for those who need no more.
    fresh: AtomicUsize,
    /// True while nobody but this run and its readers can see the journal: then nothing is handed over until somebody looks.
    held_back: AtomicBool,
    /// True while something is held back that would else have been handed over.
    holding: AtomicBool,
    /// True when something of an earlier attempt was restored.
    restored: AtomicBool,
    /// Set when a recorded run is driven again.
    replay: OnceLock<Box<Mutex<Replaying>>>,
}

/// What still changes.
#[derive(Default)]
struct Open {
    /// Noted, and not handed to the journal yet.
    noted: Noted,
    under_way: UnderWay,
}

impl Open {
    /// Takes what is noted, as entries of `run` and its attempt `attempt`.
    fn take_entries(&mut self, run: &Arc<str>, attempt: &Arc<str>) -> Vec<Entry> {
        let entries = self.noted.take(&self.under_way, run, attempt);
        self.under_way.models.forget_earlier();
        self.under_way.calls.forget_earlier();
        entries
    }
}

/// A recorded run that is driven again.
struct Replaying {
    replay: Replay,
    /// What replayed calls used, until somebody counts it.
    used: ReplayedUsage,
}

/// What calls of a recording used that are not made again.
#[derive(Default)]
struct ReplayedUsage {
    /// The runs below.
    below: Usage,
    /// Models beside the agent's own.
    beside: Usage,
}

impl RunLog {
    /// A log for the run `run`, whose step under way made the decisions `kept` before.
    pub fn new(
        run: Arc<str>,
        writer: Arc<dyn JournalWriter>,
        emitter: Emitter,
        state: State,
        globals: GlobalStorage,
        kept: Vec<(String, Value)>,
    ) -> Self {
        let attempt = crate::new_id().into();
        let decisions = Decisions { kept: kept.into(), ..Decisions::default() };
        Self(Arc::new(Inner {
            run,
            attempt,
            writer: Mutex::new(Some(writer)),
            emitter,
            state,
            globals,
            open: Mutex::new(Open {
                noted: Noted::default(),
                under_way: UnderWay { decisions, ..UnderWay::default() },
            }),
            calls: Mutex::default(),
            fresh: AtomicUsize::new(0),
            held_back: AtomicBool::new(false),
            holding: AtomicBool::new(false),
            restored: AtomicBool::new(false),
            replay: OnceLock::new(),
        }))
    }

    /// Takes what models and tools give from a recording from now on; from the first one, if it is told of several.
    pub fn replay(&self, recording: &Recording) {
        let replay =
            || Box::new(Mutex::new(Replaying { replay: Replay::new(recording), used: ReplayedUsage::default() }));
        self.0.replay.get_or_init(replay);
    }

    /// Messages that came to the recorded run after this step; none if no run is replayed.
    pub fn replayed_messages(&self, step: u32) -> Vec<Message> {
        self.replayed().map(|mut replayed| replayed.replay.messages(step)).unwrap_or_default()
    }

    /// What the runs below that were replayed since this was last called used.
    pub fn take_usage_below(&self) -> Usage {
        self.replayed().map(|mut replayed| std::mem::take(&mut replayed.used.below)).unwrap_or_default()
    }

    /// What the models beside the agent's own used of which a replay told since this was last called.
    pub(crate) fn take_usage_beside(&self) -> Usage {
        self.replayed().map(|mut replayed| std::mem::take(&mut replayed.used.beside)).unwrap_or_default()
    }

    /// True if a recorded run is driven again.
    pub(crate) fn is_replay(&self) -> bool {
        self.0.replay.get().is_some()
    }

    fn replayed(&self) -> Option<MutexGuard<'_, Replaying>> {
        Some(self.0.replay.get()?.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Notes an entry.
    pub fn record(&self, body: EntryBody) {
        self.note(&mut self.open(), body);
    }

    fn note(&self, open: &mut Open, body: EntryBody) {
        self.note_whole(open, [self.entry(body)]);
    }

    fn note_whole(&self, open: &mut Open, entries: impl IntoIterator<Item = Entry>) {
        entries.into_iter().for_each(|entry| {
            open.noted.push_whole(entry);
            self.count_note();
        });
    }

    /// Notes what is told from the step under way.
    fn note_briefly(&self, open: &mut Open, what: What) {
        open.noted.push(now(), what);
        self.count_note();
    }

    /// For whoever has what is open. A look at the changes may come between, and the next is then a little early.
    fn count_note(&self) {
        self.0.fresh.store(self.0.fresh.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }

    /// Notes an entry of a run below that is not under way.
    pub fn record_for(&self, run: &Arc<str>, body: EntryBody) {
        self.note_whole(&mut self.open(), [Entry::new(run.clone(), now(), body)]);
    }

    /// Notes the model's answer as the hooks left it, and how the run is to end if it ends it. What was decided in the call is
    /// forgotten.
    pub fn record_accepted(&self, step: u32, message: &AssistantMessage, exit: Option<Exit>) {
        let mut open = self.open();
        let changed = !open.under_way.models.iter().next_back().is_some_and(|last| last.told(message));
        if changed || exit.is_some() {
            let message = changed.then(|| message.clone());
            self.note(&mut open, EntryBody::ModelAccepted { step, message, exit: exit.map(Box::new) });
        } else {
            self.note_briefly(&mut open, What::ModelAccepted { step });
        }
        open.under_way.end_step();
    }

    /// Notes that all calls of a step's answer are answered, what hooks changed about the results, and how the run is to end if
    /// that ends it. What was decided and done in the step is forgotten.
    pub fn record_turn_ended(&self, step: u32, changed: BTreeMap<Arc<str>, ToolOutput>, exit: Option<Exit>) {
        let mut open = self.open();
        if exit.is_some() || !changed.is_empty() {
            self.note(&mut open, EntryBody::TurnEnded { step, changed, exit: exit.map(Box::new) });
        } else {
            self.note_briefly(&mut open, What::TurnEnded { step });
        }
        open.under_way.end_step();
    }

    /// Notes a call's answer as the hooks left it.
    pub fn record_answered(&self, call_id: &Arc<str>, name: &Arc<str>, output: &ToolOutput) {
        self.note_answer(call_id, |open| {
            let place = open.under_way.call(call_id);
            let told = place.is_some_and(|place| {
                let call = &mut open.under_way.calls[place];
                call.begun = None;
                call.told(output)
            });
            match place.filter(|_| told) {
                Some(place) if open.under_way.calls[place].tool == *name => {
                    self.note_briefly(open, What::ToolAnswered(place));
                }
                _ => {
                    let (call_id, output) = (call_id.clone(), (!told).then(|| output.clone()));
                    self.note(open, EntryBody::ToolAnswered { call_id, name: name.clone(), output });
                }
            }
        });
    }

    /// How often each tool was run, counting a call once however often it was tried.
    pub fn tool_calls(&self) -> BTreeMap<String, u32> {
        self.open().under_way.counts().collect()
    }

    /// As [`tool_calls`](Self::tool_calls), without the calls `open`: for a checkpoint, since they count when they are gone
    /// on with.
    pub fn tool_calls_but<'a>(&self, open: impl Iterator<Item = &'a str>) -> BTreeMap<String, u32> {
        let under_way = &self.open().under_way;
        let mut counts: BTreeMap<_, _> = under_way.counts().collect();
        for name in open.filter_map(|id| under_way.counted(id)) {
            counts.entry(name.to_string()).and_modify(|n| *n -= 1);
        }
        counts.retain(|_, n| *n > 0);
        counts
    }

    /// What the tools of the calls `open` gave, though something kept them from being answered: for a checkpoint.
    pub fn finished_tools<'a>(&self, open: impl Iterator<Item = &'a str>) -> BTreeMap<String, ToolOutput> {
        let under_way = &self.open().under_way;
        let given = |id: &str| under_way.calls[under_way.call(id)?].given.as_ref();
        let output = |id: &str| given(id).or_else(|| under_way.kept.get(id)).cloned();
        open.filter_map(|id| Some((id.to_owned(), output(id)?))).collect()
    }

    /// The calls among `open` whose tools were begun, by this attempt or an earlier one, and gave nothing: for a checkpoint.
    pub fn begun_tools<'a>(&self, open: impl Iterator<Item = &'a str>) -> BTreeMap<String, Begun> {
        let under_way = &self.open().under_way;
        let now = |id: &str| under_way.calls[under_way.call(id)?].begun;
        let now = |id: &str| now(id).map(|effect| Begun::new(effect, self.0.attempt.clone()));
        let begun = |id: &str| now(id).or_else(|| under_way.in_doubt.get(id).cloned());
        open.filter_map(|id| Some((id.to_owned(), begun(id)?))).collect()
    }

    /// How an attempt before a restart began a call and left it without a result; none if it is not in doubt.
    pub fn in_doubt(&self, call_id: &str) -> Option<Begun> {
        self.restored()?.under_way.in_doubt.get(call_id).cloned()
    }

    /// Takes a call out of doubt: it did not happen, or may be repeated.
    pub fn clear_doubt(&self, call_id: &str) {
        self.open().under_way.in_doubt.remove(call_id);
    }

    /// Notes what became of a call in doubt, as if its tool had just run.
    pub fn resolve_doubt(&self, call_id: &Arc<str>, name: &Arc<str>, output: &ToolOutput) {
        self.clear_doubt(call_id);
        self.open().under_way.count(call_id, name);
        self.finished(call_id.clone(), output);
    }

    /// What the model answered in the step under way, if it was not accepted: for a checkpoint.
    pub fn answered(&self) -> Vec<Arc<ModelResponse>> {
        let under_way = &self.open().under_way;
        under_way.models.iter().map(|call| &call.response).chain(&under_way.answered).cloned().collect()
    }

    /// The next of the model's answers from before a restart: it stands in for the call, and was counted when it came.
    pub fn next_answered(&self) -> Option<ModelResponse> {
        let under_way = &mut self.restored()?.under_way;
        let response = under_way.answered.pop_front()?;
        under_way.models.push(ModelCall { response: response.clone(), step: None });
        Some((*response).clone())
    }

    /// Sets what a checkpoint holds of the step under way.
    pub fn restore(&self, checkpoint: &mut Checkpoint) {
        let under_way = &mut self.open().under_way;
        self.0.restored.store(true, Ordering::Release);
        let finished = std::mem::take(&mut checkpoint.finished);
        under_way.kept = ByCall(finished.into_iter().map(|(id, output)| (id.into(), output)).collect());
        let begun = std::mem::take(&mut checkpoint.begun);
        under_way.in_doubt = ByCall(begun.into_iter().map(|(id, begun)| (id.into(), begun)).collect());
        under_way.answered = std::mem::take(&mut checkpoint.answered).into();
    }

    fn finished(&self, call_id: Arc<str>, output: &ToolOutput) {
        let id = call_id.clone();
        self.note_result(&id, |open| match open.under_way.call(&call_id) {
            Some(place) => {
                let place = open.under_way.finish_call(place, output.clone());
                self.note_briefly(open, What::ToolFinished(place));
            }
            // A layer let go of the call, and its step is over.
            None => self.note(open, EntryBody::ToolFinished { call_id, output: output.clone() }),
        });
        self.flush();
    }

    /// Sets the counts that the run had when it was suspended.
    pub fn restore_tool_calls(&self, counts: &BTreeMap<String, u32>) {
        self.open().under_way.set_counts(counts);
    }

    /// The decisions made so far hold for the whole run.
    pub(crate) fn end_beginning(&self) {
        let decisions = &mut self.open().under_way.decisions;
        decisions.beginning = Some(std::mem::take(&mut decisions.made));
    }

    /// The decisions of the run's beginning and of the step under way, for a checkpoint.
    pub fn decisions(&self) -> Vec<(String, Value)> {
        let decisions = &self.open().under_way.decisions;
        decisions.beginning.iter().flatten().chain(&decisions.made).chain(&decisions.kept).cloned().collect()
    }

    /// True if something was decided under `name` before a restart, or in the run that is replayed, and not read back yet.
    pub fn is_decided(&self, name: &str) -> bool {
        let replayed = self.replayed().is_some_and(|replayed| replayed.replay.is_decided(name));
        replayed || self.open().under_way.decisions.kept.iter().any(|(kept, _)| kept == name)
    }

    /// Reads it without a lock, for the sake of its [place in memory](crate::RunCx::prefetch).
    pub(crate) fn glance(&self) -> bool {
        self.0.open.is_poisoned() | self.0.held_back.load(Ordering::Relaxed)
    }

    /// Nothing is handed over while somebody has it: whoever hands over waits for it.
    fn open(&self) -> MutexGuard<'_, Open> {
        self.0.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// As [`open`](Self::open), if something of an earlier attempt may be left.
    fn restored(&self) -> Option<MutexGuard<'_, Open>> {
        self.0.restored.load(Ordering::Acquire).then(|| self.open())
    }

    fn entry(&self, body: EntryBody) -> Entry {
        Entry::new(self.0.run.clone(), now(), body)
    }
}

/// Milliseconds since 1970.
fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

impl fmt::Debug for RunLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunLog").field("run", &self.0.run).finish_non_exhaustive()
    }
}
