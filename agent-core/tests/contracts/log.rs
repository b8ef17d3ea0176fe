//! What a run holds back while nobody looks: the same entries as if it had handed over each at once.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

use agent_core::{
    AssistantMessage, Block, Effect, Emitter, Entry, EntryBody, Error, ErrorKind, Event, EventHub, EventKind, Exit,
    ExitReason, GlobalStorage, Journal, Key, MemoryJournal, Message, ModelResponse, RunIds, RunLog, State, StateField,
    StateSchema, ToolOutput,
};
use futures::{FutureExt, StreamExt};
use proptest::{collection::vec, prelude::*};

/// What comes of something that never waits.
fn block_on<T>(future: impl Future<Output = T>) -> T {
    future.now_or_never().expect("a journal in memory does not wait")
}

/// A run's log over a journal of its own.
struct World {
    ids: Arc<RunIds>,
    hub: EventHub,
    emitter: Emitter,
    globals: GlobalStorage,
    state: State,
    log: RunLog,
    /// The newest answer of the model.
    said: Option<AssistantMessage>,
    /// The newest output of each call's tool.
    given: BTreeMap<String, ToolOutput>,
    /// What is to be written, by a model that knows no places.
    expected: Expected,
}

#[derive(Default)]
struct Expected {
    entries: Vec<EntryBody>,
    /// What was written of the step under way, and need not be again.
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
        let journal = MemoryJournal::default();
        let writer = journal.open_now("s", "a").expect("is free");
        let hub = EventHub::new(Arc::new(journal), "s".into());
        let emitter = Emitter::new(ids.clone(), hub.clone(), None);
        let schema = StateSchema::default().key("n", StateField::of::<u32>());
        let (state, globals) = (State::new(schema, BTreeMap::new()).expect("fits"), GlobalStorage::default());
        let log = RunLog::new(ids.run_id.clone(), writer, emitter.clone(), state.clone(), globals.clone(), Vec::new());
        Self {
            ids,
            hub,
            emitter,
            globals,
            state,
            log,
            said: None,
            given: BTreeMap::new(),
            expected: Expected::default(),
        }
    }

    fn holding_back() -> Self {
        let world = Self::new();
        world.log.hold_back();
        world
    }

    fn hears(&self, text: &str) {
        self.log.record(EntryBody::MessageAppended { message: Message::user(text) });
        self.log.flush();
    }

    fn apply(&mut self, doing: &Doing) {
        match doing {
            Doing::Model { step } => {
                let call = || async { Ok(ModelResponse::new(&*format!("answer {step}"))) };
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
                let run = async {
                    match end {
                        Some(n) => Ok(ToolOutput::text(n.to_string())),
                        None => Err(Error::new(ErrorKind::Interrupted, "asks")),
                    }
                };
                let given = block_on(self.log.tool_step(call.as_str().into(), name.as_str().into(), *effect, run));
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
                let output = Some(output).filter(|output| self.expected.given.get(call) != Some(output));
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
            Doing::Look => {}
        }
    }

    /// What a checkpoint of this moment would hold of the step under way.
    fn standing(&self) -> String {
        let (log, calls) = (&self.log, || CALLS.into_iter());
        let begun = log.begun_tools(calls());
        let begun: Vec<_> = begun.iter().map(|(call, begun)| (call, begun.effect)).collect();
        let counts = (log.tool_calls(), log.tool_calls_but(calls()));
        format!("{:?} {begun:?} {counts:?} {:?}", log.finished_tools(calls()), log.answered())
    }

    /// All entries, without what is another one's in every run.
    fn entries(&self) -> Vec<(u64, EntryBody)> {
        let journal = self.hub.journal();
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

/// What a run does, in whatever order: layers may call models and tools again, or answer in their place.
#[derive(Clone, Debug)]
enum Doing {
    Model {
        step: u32,
    },
    Accept {
        step: u32,
        changed: bool,
        ends: bool,
    },
    Tool {
        call: String,
        name: String,
        effect: Effect,
        end: Option<u32>,
    },
    Answer {
        call: String,
        name: String,
        changed: bool,
    },
    EndTurn {
        step: u32,
        changed: bool,
        ends: bool,
    },
    Note,
    /// A reader comes, and goes again.
    Look,
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
        1 => Just(Doing::Look),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn what_is_held_back_is_what_would_have_been_written(doings in vec(doing(), 0..80)) {
        let (mut held, mut eager) = (World::holding_back(), World::new());
        for doing in &doings {
            held.apply(doing);
            eager.apply(doing);
            eager.log.flush();
            if let Doing::Look = doing {
                drop(held.hub.subscribe());
            }
            prop_assert_eq!(held.standing(), eager.standing());
        }
        prop_assert_eq!(held.entries(), eager.entries());
        let expected: Vec<_> = (1..).zip(held.expected.entries.iter().cloned()).collect();
        prop_assert_eq!(held.entries(), expected);
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
    assert_eq!(world.log.tool_calls_but(["c1"].into_iter()), BTreeMap::from([("second".into(), 1)]));
    assert_eq!(world.log.tool_calls_but(["c1", "c2"].into_iter()), BTreeMap::new());
}

/// What there is to read now.
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

/// A run whose events people hear of: that it began.
fn begun() -> World {
    let world = World::holding_back();
    world.log.record(EntryBody::RunStarted { ids: world.ids.clone(), fingerprint: String::new() });
    world
}

#[test]
fn a_reader_who_comes_late_gets_what_is_held_back_at_once() {
    let world = begun();
    (0..100).for_each(|n| world.hears(&n.to_string()));
    let numbers: Vec<_> = (0..100).map(|n: u32| n.to_string()).collect();
    assert_eq!(texts(&read(&world.hub)), numbers);
    world.hears("more");
    assert_eq!(texts(&read(&world.hub)), [numbers, vec!["more".into()]].concat());
}

#[test]
fn what_a_run_left_behind_is_there_for_whoever_comes_later() {
    let world = begun();
    world.hears("before the end");
    world.globals.set(&Key::<u32>::new("n"), &1).expect("sets");
    world.log.close();
    world.log.record(EntryBody::MessageAppended { message: Message::user("after the end") });
    world.log.flush();
    let hub = world.hub.clone();
    drop(world);
    hub.close();
    let kinds = read(&hub);
    assert_eq!(texts(&kinds), ["before the end"]);
    assert!(matches!(kinds.last(), Some(EventKind::StateChanged { .. })), "{kinds:?}");
    assert_eq!(read(&hub), kinds, "and for the next");
    assert_eq!(block_on(hub.journal().read("s", 0, 9)).expect("reads").len(), 3);
}

#[test]
fn a_reader_who_is_there_at_the_end_misses_nothing() {
    let world = begun();
    let mut reader = world.hub.subscribe();
    world.log.record(EntryBody::MessageAppended { message: Message::user("never handed over") });
    world.log.close();
    world.hub.close();
    let kinds: Vec<_> = block_on(reader.by_ref().map(|event| event.kind).collect());
    assert_eq!(texts(&kinds), ["never handed over"]);
}

#[test]
fn a_sink_that_comes_in_the_middle_hears_only_what_follows() {
    let world = begun();
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
    let world = begun();
    world.hears("1");
    let heard = Arc::new(Mutex::new(Vec::new()));
    let sink = heard.clone();
    world.emitter.attach(Arc::new(move |event: &Event| sink.lock().expect("free").push(event.kind.clone())));
    world.hears("2");
    assert_eq!(texts(&heard.lock().expect("free")), ["2"]);
}

#[test]
fn changes_are_noted_between_the_steps_that_made_them_even_if_nobody_looks() {
    let world = begun();
    for n in 0..100 {
        world.state.set(&Key::<u32>::new("n"), &n).expect("sets");
        world.hears("went on");
    }
    let changed = |(_, body): &(u64, EntryBody)| matches!(body, EntryBody::StateChanged { .. });
    let entries = world.entries();
    let places: Vec<_> = entries.iter().filter(|entry| changed(entry)).map(|(seq, _)| *seq).collect();
    let gaps: Vec<_> = [0].iter().chain(&places).zip(&places).map(|(one, next)| next - one).collect();
    assert!(gaps.len() > 3 && gaps.iter().all(|gap| *gap <= 20), "{places:?}");
}
