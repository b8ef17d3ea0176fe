//! Storage under concurrent calls: live values, committed values, and no deadlock by closures.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, LazyLock},
};

use agent_core::{
    Effect, Error, ErrorKind, GlobalStorage, Journal, Key, MemoryJournal, Message, Result, RunCx, RunIds, State,
    ToolOutput,
    engine::{Emitter, EngineCx, EngineKey, EventHub, RunDriver, RunLog, RunParts, ToolStep},
    journal::EntryBody,
    testing::TestCall,
};
use futures::FutureExt;
use proptest::{collection::vec, prelude::*, sample::Index};
use serde_json::{Value, json};

const N: Key<i64> = Key::new("n");
const M: Key<i64> = Key::new("m");
const KEYS: [Key<i64>; 2] = [N, M];

/// A run over a separate journal.
static KEY: LazyLock<EngineKey> = LazyLock::new(EngineKey::new);

fn engine(cx: &RunCx) -> EngineCx<'_> {
    KEY.open(cx).expect("it has the key")
}

fn run() -> RunCx {
    let ids = Arc::new(RunIds::root("a", "s"));
    let journal = Arc::new(MemoryJournal::default());
    let writer = journal.open_now("s", "a").expect("is free");
    let emitter = Emitter::new(ids.clone(), EventHub::new(journal.clone(), "s".into()), None);
    let (state, globals) = (State::default(), GlobalStorage::default());
    let log = RunLog::new(ids.clone(), journal, writer, emitter.clone(), state.clone(), globals.clone());
    let mut parts = RunParts::new(ids, emitter, log);
    (parts.state, parts.globals, parts.key) = (state, globals, Some(*KEY));
    RunDriver::new(parts).cx().clone()
}

/// One change of a value.
#[derive(Clone, Copy, Debug)]
enum Op {
    Add(i64),
    Double,
    Set(i64),
    Remove,
}

impl Op {
    fn apply(self, value: Option<i64>) -> Option<i64> {
        match self {
            Self::Add(n) => Some(value.unwrap_or(0) + n),
            Self::Double => Some(value.unwrap_or(1) * 2),
            Self::Set(n) => Some(n),
            Self::Remove => None,
        }
    }

    fn run(self, storage: &GlobalStorage, key: usize) -> Result<()> {
        let key = &KEYS[key];
        match self {
            Self::Set(n) => storage.set(key, &n),
            Self::Remove => {
                storage.remove(key);
                Ok(())
            }
            _ => storage.update(key, move |value| self.apply(value).unwrap_or_default()).map(drop),
        }
    }
}

#[derive(Clone, Debug)]
enum Doing {
    /// A writer changes a value: one of three calls, or the run.
    Change { by: usize, key: usize, op: Op },
    /// A call has its result, and continues.
    Result(usize),
    /// A call asks a question, and is entered again later as another call.
    Asks(usize),
}

const CALLS: usize = 3;

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        4 => (1..9_i64).prop_map(Op::Add),
        1 => Just(Op::Double),
        1 => (0..9_i64).prop_map(Op::Set),
        1 => Just(Op::Remove),
    ]
}

fn doing(op: impl Strategy<Value = Op>) -> impl Strategy<Value = Doing> {
    prop_oneof![
        6 => (0..=CALLS, 0..KEYS.len(), op).prop_map(|(by, key, op)| Doing::Change { by, key, op }),
        2 => (0..CALLS).prop_map(Doing::Result),
        1 => (0..CALLS).prop_map(Doing::Asks),
    ]
}

/// A run with running calls.
struct World {
    cx: RunCx,
    calls: Vec<RunCx>,
}

fn id(call: usize) -> Arc<str> {
    format!("c{call}").into()
}

impl World {
    fn new() -> Self {
        let cx = run();
        let calls = (0..CALLS).map(|call| engine(&cx).of_call(&id(call))).collect();
        Self { cx, calls }
    }

    fn apply(&mut self, doing: &Doing) {
        match doing {
            Doing::Change { by, key, op } => {
                let cx = self.calls.get(*by).unwrap_or(&self.cx);
                op.run(cx.globals(), *key).expect("changes");
            }
            Doing::Result(call) => {
                engine(&self.cx).log().record_answered(&id(*call), &"tool".into(), &ToolOutput::text("done"));
                self.calls[*call] = engine(&self.cx).of_call(&id(*call));
            }
            Doing::Asks(call) => self.ask(*call),
        }
    }

    fn ask(&mut self, call: usize) {
        let asks = TestCall(|| async { Err(Error::new(ErrorKind::Interrupted, "asks")) });
        let tool = ToolStep::new(1, id(call), "tool".into(), Effect::Pure);
        let log = engine(&self.cx).log().open_call(tool);
        let step = log.run(&asks);
        let end = step.now_or_never().expect("a journal in memory does not wait");
        assert_eq!(end.expect_err("asks").kind(), ErrorKind::Interrupted);
        self.calls[call] = engine(&self.cx).of_call(&id(call));
    }

    /// The durable values.
    fn durable(&self) -> BTreeMap<String, Value> {
        engine(&self.cx).log().flush();
        let view = engine(&self.cx).log().journal().index("s").now_or_never();
        view.expect("does not wait").expect("folds").look(|index| index.globals().clone())
    }
}

/// The changes in order, by a naive model: the committed ones, and those of running calls.
#[derive(Default)]
struct Naive(Vec<(usize, usize, Op)>);

const KEPT: usize = usize::MAX;

impl Naive {
    fn apply(&mut self, doing: &Doing) {
        match doing {
            Doing::Change { by: CALLS, key, op } => self.0.push((KEPT, *key, *op)),
            Doing::Change { by, key, op } => self.0.push((*by, *key, *op)),
            Doing::Result(call) => {
                self.0.iter_mut().filter(|(by, ..)| by == call).for_each(|(by, ..)| *by = KEPT);
            }
            Doing::Asks(call) => self.0.retain(|(by, ..)| by != call),
        }
    }

    fn values(&self, counts: impl Fn(usize) -> bool) -> BTreeMap<String, Value> {
        let mut values = BTreeMap::new();
        for (_, key, op) in self.0.iter().filter(|(by, ..)| counts(*by)) {
            let value = op.apply(values.remove(KEYS[*key].name()));
            values.extend(value.map(|value| (KEYS[*key].name().to_owned(), value)));
        }
        values.into_iter().map(|(name, value)| (name, json!(value))).collect()
    }
}

proptest! {
    #[test]
    fn values_are_those_of_all_changes_and_what_is_kept_those_of_calls_that_ended(steps in vec(doing(op()), 0..40)) {
        let (mut world, mut naive) = (World::new(), Naive::default());
        for doing in &steps {
            world.apply(doing);
            naive.apply(doing);
            prop_assert_eq!(world.cx.globals().snapshot(), naive.values(|_| true), "after {:?}", doing);
            prop_assert_eq!(world.cx.globals().kept(), naive.values(|by| by == KEPT), "after {:?}", doing);
        }
        prop_assert_eq!(world.durable(), naive.values(|by| by == KEPT));
    }

    #[test]
    fn after_a_crash_the_calls_that_did_not_end_count_once(
        steps in vec(doing((1..9_i64).prop_map(Op::Add)), 0..40),
        crash in any::<Index>(),
    ) {
        let crash = crash.index(steps.len() + 1);
        let (mut world, mut open) = (World::new(), vec![Vec::new(); CALLS]);
        let mut expected = BTreeMap::<usize, i64>::new();
        for doing in &steps[..crash] {
            world.apply(doing);
            match doing {
                Doing::Change { by, key, op: op @ Op::Add(n) } => {
                    *expected.entry(*key).or_default() += n;
                    open.get_mut(*by).into_iter().for_each(|changes: &mut Vec<_>| changes.push((*key, *op)));
                }
                Doing::Result(call) => open[*call].clear(),
                Doing::Asks(call) => {
                    for (key, op) in open[*call].drain(..) {
                        let Op::Add(n) = op else { continue };
                        *expected.entry(key).or_default() -= n;
                    }
                }
                Doing::Change { .. } => {}
            }
        }
        let next = GlobalStorage::restore(world.durable());
        for (key, op) in open.into_iter().flatten() {
            op.run(&next, key).expect("changes");
        }
        for (key, n) in expected {
            prop_assert_eq!(next.get(&KEYS[key]).expect("reads").unwrap_or(0), n);
        }
    }

    #[test]
    fn scopes_and_names_with_any_characters_are_apart(
        paths in proptest::collection::btree_set(vec("[a/~01]{0,3}", 1..4), 1..12),
    ) {
        let storage = GlobalStorage::default();
        let place = |storage: &GlobalStorage, path: &[String]| {
            path[..path.len() - 1].iter().fold(storage.clone(), |scope, name| scope.scope(name))
        };
        for (n, path) in paths.iter().enumerate() {
            place(&storage, path).set_value(&path[path.len() - 1], json!(n));
        }
        let restored = GlobalStorage::restore(storage.snapshot());
        for (n, path) in paths.iter().enumerate() {
            let value = place(&restored, path).get_value(&path[path.len() - 1]);
            prop_assert_eq!(value.as_deref(), Some(&json!(n)), "{:?}", path);
        }
        prop_assert_eq!(storage.snapshot().into_keys().collect::<BTreeSet<_>>().len(), paths.len());
    }
}

#[test]
fn the_key_of_a_scoped_value_is_readable_in_a_snapshot() {
    let storage = GlobalStorage::default();
    storage.scope("billing").set(&N, &1).expect("sets");
    storage.set(&Key::new("billing/n"), &2).expect("sets");
    assert_eq!(storage.snapshot(), BTreeMap::from([("billing/n".into(), json!(1)), ("billing~1n".into(), json!(2))]));
    assert_eq!(storage.scope("billing").get(&N).expect("reads"), Some(1));
}

#[test]
fn a_value_that_was_removed_and_set_again_has_a_version_of_its_own() {
    let run = run();
    let storage = run.globals();
    storage.set(&N, &1).expect("sets");
    let (_, seen) = storage.get_versioned(&N).expect("reads").expect("there");
    assert!(storage.remove(&N));
    engine(&run).log().flush();
    storage.set(&N, &2).expect("sets");
    assert!(!storage.compare_and_set(&N, seen, &3).expect("is JSON"), "that value was never seen");
    assert!(storage.remove(&N) && storage.compare_and_set(&N, 0, &4).expect("is JSON"), "version 0 is that of none");
}

/// Returns the result of `body`, unless it hangs.
fn in_time<T: Send + 'static>(body: impl FnOnce() -> T + Send + 'static) -> T {
    let (says, heard) = std::sync::mpsc::channel();
    std::thread::spawn(move || says.send(body()));
    heard.recv_timeout(std::time::Duration::from_secs(10)).expect("it neither hangs nor panics")
}

#[test]
fn a_closure_that_reads_changes_other_values_and_steers_its_run_while_others_flush_hangs_nobody() {
    let cx = run();
    let total = in_time(move || {
        let run = cx.clone();
        let step = move |n: Option<i64>| {
            run.globals().update(&M, |m| m.unwrap_or(0) + 1).expect("changes");
            run.steer(Message::user("go on")).expect("is taken");
            engine(&run).log().flush();
            assert!(!run.globals().snapshot().is_empty());
            n.unwrap_or(0) + 1
        };
        let step = Arc::new(step);
        std::thread::scope(|s| {
            for _ in 0..4 {
                s.spawn(|| {
                    for _ in 0..50 {
                        let step = step.clone();
                        cx.globals().update(&N, move |n| step(n)).expect("changes");
                        cx.globals()
                            .transaction(|tx| {
                                engine(&cx).log().flush();
                                let n = tx.get(&N)?.unwrap_or(0);
                                tx.set(&N, &(n + 1))
                            })
                            .expect("changes");
                    }
                });
                s.spawn(|| (0..200).for_each(|_| engine(&cx).log().flush()));
            }
        });
        cx.globals().get(&N).expect("reads")
    });
    assert_eq!(total, Some(400));
}

#[test]
fn a_closure_that_changes_the_value_that_it_is_to_change_is_told_so() {
    let storage = GlobalStorage::default();
    let (outer, inner) = (storage.clone(), storage.clone());
    let e = in_time(move || {
        let inner = inner.clone();
        outer.update(&N, move |n| inner.update(&N, |n| n.unwrap_or(0) + 1).map_or(0, |_| n.unwrap_or(0)))
    });
    let e = e.expect_err("it would begin anew for ever");
    assert_eq!(e.kind(), ErrorKind::Config);
    assert!(e.message().contains("'n'"), "{e}");
    let e = in_time(move || {
        storage.transaction(|tx| {
            let n = tx.get(&N)?.unwrap_or(0);
            storage.remove(&N);
            storage.set(&N, &7)?;
            tx.set(&N, &(n + 1))
        })
    });
    assert_eq!(e.expect_err("it would begin anew for ever").kind(), ErrorKind::Config);
}

/// A run with a count to which a call in progress added 1, and this thread 10; and what cuts the call off in another thread.
fn counted() -> (RunCx, impl Fn() + Send + Sync + 'static) {
    let cx = run();
    engine(&cx).of_call(&id(1)).globals().update(&N, |n| n.unwrap_or(0) + 1).expect("changes");
    cx.globals().update(&N, |n| n.unwrap_or(0) + 10).expect("changes");
    let run = cx.clone();
    (cx, move || std::thread::scope(|s| s.spawn(|| engine(&run).log().close()).join().expect("no panic")))
}

#[test]
fn a_change_beside_a_call_that_is_cut_off_is_made_again_and_does_not_fail() {
    let (cx, cut_off) = counted();
    let update = move |n: Option<i64>| {
        cut_off();
        n.unwrap_or(0) + 100
    };
    assert_eq!(cx.globals().update(&N, update).map_err(|e| e.to_string()), Ok(110));
    let (cx, cut_off) = counted();
    let changed = cx.globals().transaction(|tx| {
        let n = tx.get(&N)?.unwrap_or(0);
        cut_off();
        tx.set(&N, &(n + 100))
    });
    assert_eq!(changed.map_err(|e| e.to_string()), Ok(()));
    assert_eq!(cx.globals().get(&N).expect("is a number"), Some(110));
}

#[test]
fn a_change_that_cannot_be_without_that_of_a_call_under_way_is_kept_with_it() {
    let cx = run();
    let (first, second) = (engine(&cx).of_call(&id(1)), engine(&cx).of_call(&id(2)));
    first.globals().set(&N, &1).expect("sets");
    second.globals().update(&N, |n| n.expect("the first call is done") + 1).expect("changes");
    engine(&cx).log().record_answered(&id(2), &"tool".into(), &ToolOutput::text("done"));
    assert_eq!(cx.globals().kept()["n"], json!(2));
    engine(&cx).log().record_answered(&id(1), &"tool".into(), &ToolOutput::text("done"));
    assert_eq!(cx.globals().kept(), cx.globals().snapshot());
}

#[test]
fn what_is_left_of_a_call_that_was_cut_off_changes_nothing() {
    let cx = run();
    let call = engine(&cx).of_call(&id(1));
    call.globals().set(&N, &1).expect("sets");
    engine(&cx).log().close();
    assert_eq!(call.globals().set(&N, &2).expect_err("cut off").kind(), ErrorKind::Cancelled);
    call.globals().set_value("n", json!(3));
    assert!(cx.globals().is_empty());
}

#[test]
fn changes_of_a_call_are_in_the_same_batch_as_its_result() {
    let cx = run();
    engine(&cx).of_call(&id(1)).globals().set(&N, &1).expect("sets");
    engine(&cx).log().record_answered(&id(1), &"tool".into(), &ToolOutput::text("done"));
    let entries = engine(&cx).log().journal().read("s", 0, 9).now_or_never();
    let entries = entries.expect("does not wait").expect("reads");
    let [answered, changed] = &entries[..] else { panic!("{entries:#?}") };
    assert!(matches!(answered.body, EntryBody::ToolAnswered { .. }));
    assert!(matches!(changed.body, EntryBody::StateChanged { .. }));
}
