//! The run log writes only new data, and a reader of the journal reaches the run's state.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

use agent_core::{
    AssistantMessage, Block, Effect, Error, ErrorKind, Event, EventKind, Exit, ExitReason, GlobalStorage, Journal, Key,
    MemoryJournal, Message, ModelResponse, RunIds, State, StateField, StateSchema, ToolOutput,
    engine::{Emitter, EventHub, RunLog, ToolStep},
    journal::{Entry, EntryBody},
    run::checkpoint::RunState,
    testing::TestCall,
};
use futures::{FutureExt, StreamExt};
use proptest::{collection::vec, prelude::*};

/// The result of a future that never waits.
fn block_on<T>(future: impl Future<Output = T>) -> T {
    future.now_or_never().expect("a journal in memory does not wait")
}

/// A run's log over a separate journal.
struct World {
    hub: EventHub,
    emitter: Emitter,
    globals: GlobalStorage,
    log: RunLog,
    /// The newest answer of the model.
    said: Option<AssistantMessage>,
    /// The newest output of each call's tool.
    given: BTreeMap<String, ToolOutput>,
    /// Expected changes, from a naive model.
    expected: Expected,
}

#[derive(Default)]
struct Expected {
    entries: Vec<EntryBody>,
    /// Parts of the current step that were already written.
    said: Option<AssistantMessage>,
    given: BTreeMap<String, ToolOutput>,
}

impl Expected {
    fn end_step(&mut self, entry: EntryBody) {
        *self = Self { entries: std::mem::take(&mut self.entries), ..Self::default() };
        self.entries.push(entry);
    }
}

impl World {
    fn new() -> Self {
        let ids = Arc::new(RunIds::root("a", "s"));
        let started = EntryBody::RunStarted { ids: ids.clone(), fingerprint: String::new() };
        let journal = Arc::new(MemoryJournal::default());
        let writer = journal.open_now("s", "a").expect("is free");
        let hub = EventHub::new(journal.clone(), "s".into());
        let emitter = Emitter::new(ids.clone(), hub.clone(), None);
        let schema = StateSchema::default().key("n", StateField::of::<u32>());
        let (state, globals) = (State::new(schema, BTreeMap::new()).expect("fits"), GlobalStorage::default());
        let log = RunLog::new(ids.clone(), journal, writer, emitter.clone(), state.clone(), globals.clone());
        log.record(started.clone());
        Self {
            hub,
            emitter,
            globals,
            log,
            said: None,
            given: BTreeMap::new(),
            expected: Expected { entries: vec![started], ..Expected::default() },
        }
    }

    fn hears(&self, text: &str) {
        self.log.record(EntryBody::MessageAppended { message: Message::user(text) });
        self.log.flush();
    }

    fn apply(&mut self, doing: &Doing) {
        match doing {
            Doing::Model { step } => {
                let call = async { Ok(ModelResponse::new(&*format!("answer {step}"))) };
                let answered = block_on(self.log.model_step(*step, call)).expect("answers");
                self.said = Some(answered.message.clone());
                self.expected.said = self.said.clone();
                self.expected.entries.push(EntryBody::ModelFinished { step: *step, response: answered.into() });
            }
            Doing::Accept { step, changed, ends } => {
                let changed = changed.then(|| AssistantMessage::new(vec![Block::text("changed")]));
                let message = changed.or_else(|| self.said.clone()).unwrap_or_else(|| "made up".into());
                self.log.record_accepted(*step, &message, ends.then(exit));
                let changed = self.expected.said.as_ref() != Some(&message);
                let (message, exit) = (changed.then_some(message), ends.then(exit).map(Box::new));
                self.expected.end_step(EntryBody::ModelAccepted { step: *step, message, exit });
            }
            Doing::Tool { call, name, effect, end } => {
                let run = || async {
                    match end {
                        Some(n) => Ok(ToolOutput::text(n.to_string())),
                        None => Err(Error::new(ErrorKind::Interrupted, "asks")),
                    }
                };
                let tool = ToolStep::new(1, call.as_str().into(), name.as_str().into(), *effect);
                let given = block_on(self.log.open_call(tool).run(&TestCall(run)));
                self.given.extend(given.ok().map(|output| (call.clone(), output)));
                let (call_id, name): (Arc<str>, _) = (call.as_str().into(), name.as_str().into());
                let (effect, attempt) = (*effect, "".into());
                let started = EntryBody::ToolStarted { call_id: call_id.clone(), name, effect, attempt };
                let ended = match end {
                    Some(n) => {
                        let output = ToolOutput::text(n.to_string());
                        self.expected.given.insert(call.clone(), output.clone());
                        EntryBody::ToolFinished { call_id, output }
                    }
                    None => EntryBody::ToolSuspended { call_id },
                };
                self.expected.entries.extend([started, ended]);
            }
            Doing::Answer { call, name, changed } => {
                let given = self.given.get(call).filter(|_| !changed).cloned();
                let output = given.unwrap_or_else(|| ToolOutput::text("changed"));
                let (call_id, name) = (call.as_str().into(), name.as_str().into());
                self.log.record_answered(&call_id, &name, &output);
                let given = self.expected.given.remove(call);
                let output = Some(output).filter(|output| given.as_ref() != Some(output));
                self.expected.entries.push(EntryBody::ToolAnswered { call_id, name, output });
            }
            Doing::EndTurn { step, changed, ends } => {
                let changed = changed.then(|| ("c0".into(), ToolOutput::text("changed")));
                let changed: BTreeMap<_, _> = changed.into_iter().collect();
                self.log.record_turn_ended(*step, changed.clone(), ends.then(exit));
                let exit = ends.then(exit).map(Box::new);
                self.expected.end_step(EntryBody::TurnEnded { step: *step, changed, exit });
            }
            Doing::Note => {
                self.hears("a note");
                let message = Message::user("a note");
                self.expected.entries.push(EntryBody::MessageAppended { message });
            }
        }
    }

    /// The run's checkpoint, from its own state and from its journal.
    fn stands(&self) -> (RunState, RunState) {
        self.log.flush();
        let index = block_on(self.log.journal().index("s")).expect("reads");
        let written = index.look(|index| index.unfinished("a")).expect("it did not end");
        let mut own = self.log.at_rest();
        own.elapsed_ms = written.elapsed_ms; // time advances
        (own, written)
    }

    /// The run's checkpoint as recovered from another journal, into which it was imported.
    fn stands_elsewhere(&self) -> (RunState, RunState) {
        let own = self.log.at_rest();
        let elsewhere = Self::new();
        elsewhere.log.adopt(&own);
        elsewhere.log.import(&own);
        elsewhere.log.flush();
        let index = block_on(elsewhere.log.journal().index("s")).expect("reads");
        let mut written = index.look(|index| index.unfinished("a")).expect("it did not end");
        written.elapsed_ms = own.elapsed_ms;
        (own, written)
    }

    /// All entries, without the values that differ between runs.
    fn entries(&self) -> Vec<(u64, EntryBody)> {
        let journal = self.log.journal();
        self.log.flush();
        let entries = block_on(journal.read("s", 0, usize::MAX)).expect("reads");
        let body = |entry: &Entry| match entry.body.clone() {
            EntryBody::ToolStarted { call_id, name, effect, .. } => {
                EntryBody::ToolStarted { call_id, name, effect, attempt: "".into() }
            }
            other => other,
        };
        entries.iter().map(|entry| (entry.seq, body(entry))).collect()
    }
}

const CALLS: [&str; 3] = ["c0", "c1", "c2"];

fn exit() -> Exit {
    Exit::new(ExitReason::Text, "done")
}

/// The actions of a run, in any order: layers may repeat calls of models and tools, or answer in
/// their place.
#[derive(Clone, Debug)]
enum Doing {
    Model { step: u32 },
    Accept { step: u32, changed: bool, ends: bool },
    Tool { call: String, name: String, effect: Effect, end: Option<u32> },
    Answer { call: String, name: String, changed: bool },
    EndTurn { step: u32, changed: bool, ends: bool },
    Note,
}

fn doing() -> impl Strategy<Value = Doing> {
    let (call, name) = (|| prop::sample::select(&CALLS[..]), || prop_oneof![4 => Just("tool"), 1 => Just("other")]);
    let seldom = || prop::bool::weighted(0.2);
    let effect = prop_oneof![Just(Effect::Pure), Just(Effect::AtMostOnce)];
    let tool = (call(), name(), effect, prop::option::weighted(0.8, 0_u32..3));
    prop_oneof![
        3 => (1_u32..9).prop_map(|step| Doing::Model { step }),
        3 => (1_u32..9, seldom(), seldom()).prop_map(|(step, changed, ends)| Doing::Accept { step, changed, ends }),
        6 => tool.prop_map(|(call, name, effect, end)| Doing::Tool { call: call.into(), name: name.into(), effect, end }),
        4 => (call(), name(), seldom()).prop_map(|(call, name, changed)| Doing::Answer {
            call: call.into(),
            name: name.into(),
            changed
        }),
        2 => (1_u32..9, seldom(), seldom()).prop_map(|(step, changed, ends)| Doing::EndTurn { step, changed, ends }),
        1 => Just(Doing::Note),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn what_is_written_is_what_is_new_and_tells_where_the_run_stands(doings in vec(doing(), 0..80)) {
        let mut world = World::new();
        for doing in &doings {
            world.apply(doing);
            let (own, written) = world.stands();
            prop_assert_eq!(own, written);
        }
        let (own, imported) = world.stands_elsewhere();
        prop_assert_eq!(own, imported);
        let expected: Vec<_> = (1..).zip(world.expected.entries.iter().cloned()).collect();
        prop_assert_eq!(world.entries(), expected);
    }
}

#[test]
fn a_call_that_is_tried_again_as_another_tool_counts_as_the_first() {
    let mut world = World::new();
    for (call, name) in [("c1", "first"), ("c2", "second"), ("c1", "second")] {
        let (call, name) = (call.to_owned(), name.to_owned());
        world.apply(&Doing::Tool { call, name, effect: Effect::Pure, end: None });
    }
    assert_eq!(world.log.tool_calls(), BTreeMap::from([("first".into(), 1), ("second".into(), 1)]));
    let at_rest = |world: &World| world.log.at_rest().tool_calls;
    assert_eq!(at_rest(&world), BTreeMap::new(), "a call that is open counts when it is gone on with");
    world.apply(&Doing::Answer { call: "c1".into(), name: "second".into(), changed: false });
    assert_eq!(at_rest(&world), BTreeMap::from([("first".into(), 1)]));
}

/// Returns the events available now.
fn read(hub: &EventHub) -> Vec<EventKind> {
    let mut reader = hub.subscribe();
    std::iter::from_fn(|| reader.next().now_or_never().flatten()).map(|event| event.kind).collect()
}

fn texts(kinds: &[EventKind]) -> Vec<String> {
    let text = |kind: &EventKind| match kind {
        EventKind::Message(message) => Some(message.text()),
        _ => None,
    };
    kinds.iter().filter_map(text).collect()
}

#[test]
fn a_reader_who_comes_late_gets_what_was_before() {
    let world = World::new();
    (0..100).for_each(|n| world.hears(&n.to_string()));
    let numbers: Vec<_> = (0..100).map(|n: u32| n.to_string()).collect();
    assert_eq!(texts(&read(&world.hub)), numbers);
    world.hears("more");
    assert_eq!(texts(&read(&world.hub)), [numbers, vec!["more".into()]].concat());
}

#[test]
fn what_a_run_left_behind_is_there_for_whoever_comes_later() {
    let world = World::new();
    world.hears("before the end");
    world.globals.set(&Key::<u32>::new("n"), &1).expect("sets");
    world.log.flush();
    world.log.close();
    world.log.record(EntryBody::MessageAppended { message: Message::user("after the end") });
    world.log.flush();
    let (hub, journal) = (world.hub.clone(), world.log.journal().clone());
    drop(world);
    hub.close();
    let kinds = read(&hub);
    assert_eq!(texts(&kinds), ["before the end"]);
    assert!(matches!(kinds.last(), Some(EventKind::StateChanged { .. })), "{kinds:?}");
    assert_eq!(read(&hub), kinds, "and for the next");
    assert_eq!(block_on(journal.read("s", 0, 9)).expect("reads").len(), 3);
}

#[test]
fn a_sink_that_comes_in_the_middle_hears_only_what_follows() {
    let world = World::new();
    let heard = || {
        let heard = Arc::new(Mutex::new(Vec::new()));
        let sink = heard.clone();
        world.emitter.attach(Arc::new(move |event: &Event| sink.lock().expect("free").push(event.kind.clone())));
        heard
    };
    let from_the_start = heard();
    world.hears("1");
    let from_the_middle = heard();
    world.hears("2");
    assert_eq!(from_the_start.lock().expect("free")[0], EventKind::RunStarted);
    assert_eq!(texts(&from_the_start.lock().expect("free")), ["1", "2"]);
    assert_eq!(texts(&from_the_middle.lock().expect("free")), ["2"]);
}

#[test]
fn a_sink_that_is_the_first_but_comes_late_hears_nothing_of_what_was() {
    let world = World::new();
    world.hears("1");
    let heard = Arc::new(Mutex::new(Vec::new()));
    let sink = heard.clone();
    world.emitter.attach(Arc::new(move |event: &Event| sink.lock().expect("free").push(event.kind.clone())));
    world.hears("2");
    assert_eq!(texts(&heard.lock().expect("free")), ["2"]);
}
