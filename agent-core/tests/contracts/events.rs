//! Event readers, slow, late or many, receive every durable event once and in order.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Wake},
};

use agent_core::{
    Chunk, Error, ErrorKind, Event, EventKind, EventStream, GlobalStorage, Journal, MemoryJournal, Message, Result,
    RunIds, State, async_trait,
    engine::{Emitter, EventHub, RunLog},
    journal::{Entry, EntryBody, JournalWriter, RunStatus},
    run::checkpoint::ChildRun,
};
use futures::{FutureExt, StreamExt};
use proptest::{collection::vec, prelude::*};

/// More items than a reader can be behind.
const MANY: usize = 3000;

/// A tree of runs over a journal that other writers may share.
struct Tree {
    hub: EventHub,
    writer: Arc<dyn JournalWriter>,
    root: Branch,
}

/// One run of the tree.
#[derive(Clone)]
struct Branch {
    ids: Arc<RunIds>,
    emitter: Emitter,
    log: RunLog,
}

impl Tree {
    /// A tree whose root run has begun.
    async fn begun(journal: &MemoryJournal, agent: &str) -> Self {
        Self::read_from(journal.clone(), journal, agent).await
    }

    /// Like [`begun`](Self::begun); readers that fall behind catch up from `behind`.
    async fn read_from(behind: impl Journal, journal: &MemoryJournal, agent: &str) -> Self {
        let hub = EventHub::new(Arc::new(behind), "s".into());
        let writer = journal.open_now("s", agent).expect("is free");
        let ids = Arc::new(RunIds::root(agent, "s"));
        let emitter = Emitter::new(ids.clone(), hub.clone(), None);
        let (state, globals) = (State::default(), GlobalStorage::default());
        let kept = Arc::new(journal.clone());
        let log = RunLog::new(ids.clone(), kept, writer.clone(), emitter.clone(), state, globals);
        let root = Branch { ids, emitter, log };
        root.begin().await;
        Self { hub, writer, root }
    }

    fn child(&self) -> Branch {
        let ids = Arc::new(self.root.ids.child("child", None, None));
        let emitter = Emitter::new(ids.clone(), self.hub.clone(), Some(self.root.emitter.clone()));
        let log = self.root.log.child(ids.clone(), self.writer.clone(), emitter.clone(), State::default());
        Branch { ids, emitter, log }
    }
}

/// A journal in which some reads fail.
struct Failing {
    journal: MemoryJournal,
    failures: AtomicUsize,
}

#[async_trait]
impl Journal for Failing {
    async fn open(&self, session: &str, agent: &str) -> Result<Arc<dyn JournalWriter>> {
        self.journal.open(session, agent).await
    }

    async fn read(&self, session: &str, after: u64, limit: usize) -> Result<Vec<Arc<Entry>>> {
        let fails = self.failures.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
        match fails {
            Ok(_) => Err(Error::new(ErrorKind::Store, "the connection was lost")),
            Err(_) => self.journal.read(session, after, limit).await,
        }
    }

    async fn sessions(&self) -> Result<Vec<String>> {
        self.journal.sessions().await
    }

    async fn delete(&self, session: &str) -> Result<bool> {
        self.journal.delete(session).await
    }
}

impl Branch {
    async fn begin(&self) {
        self.log.record(EntryBody::RunStarted { ids: self.ids.clone(), fingerprint: String::new() });
        self.commit().await;
    }

    /// Appends a user message to the journal; the hub receives it when the run commits.
    fn hears(&self, text: &str) {
        self.log.record(EntryBody::MessageAppended { message: Message::user(text) });
        self.log.flush();
    }

    async fn commit(&self) {
        self.log.commit().await.expect("a journal in memory does not fail");
    }

    /// Accepts an answer of the model.
    async fn says(&self, text: &str) {
        self.log.record(EntryBody::ModelAccepted { step: 1, message: Some(text.into()), exit: None });
        self.commit().await;
    }

    /// Streams a message in chunks before: `text/0`, `text/1` and so on.
    async fn streams(&self, text: &str, pieces: usize) {
        (0..pieces).for_each(|n| self.piece(text, n));
        self.says(text).await;
    }

    fn piece(&self, text: &str, n: usize) {
        self.emitter.emit(EventKind::Chunk(Chunk::Text { index: 0, delta: format!("{text}/{n}") }));
    }
}

/// Returns the events available now, and whether the stream has ended.
fn read(stream: &mut EventStream) -> (Vec<Event>, bool) {
    let mut events = Vec::new();
    loop {
        match stream.next().now_or_never() {
            Some(Some(event)) => events.push(event),
            end => return (events, end.is_some()),
        }
    }
}

/// The texts of whole messages and of chunks.
fn texts(events: &[Event]) -> Vec<String> {
    let text = |event: &Event| match &event.kind {
        EventKind::Message(message) => Some(message.text()),
        EventKind::ModelAnswered { message, .. } => Some(message.text()),
        EventKind::Chunk(Chunk::Text { delta, .. }) => Some(delta.clone()),
        _ => None,
    };
    events.iter().filter_map(text).collect()
}

fn numbered(count: usize) -> Vec<String> {
    (0..count).map(|n| n.to_string()).collect()
}

fn assert_in_order(events: &[Event]) {
    assert!(events.is_sorted_by(|a, b| a.position < b.position), "positions ascend");
}

#[tokio::test]
async fn a_run_below_that_is_over_is_known_to_whoever_has_it_when_its_caller_went_on() {
    let journal = MemoryJournal::default();
    let tree = Tree::begun(&journal, "a").await;
    let (root, child) = (&tree.root, tree.child());
    let run = child.ids.run_id.clone();
    root.log.record(EntryBody::linked(ChildRun::new("c".into(), "k", run)));
    child.begin().await;
    child.hears("a question");
    let mut response = agent_core::ModelResponse::new("an answer");
    response.usage = agent_core::Usage::new(2, 1);
    child.log.record(EntryBody::ModelFinished { step: 1, response: Arc::new(response) });
    child.log.record(EntryBody::ModelAccepted { step: 1, message: None, exit: None });
    let (status, usage) = (RunStatus::Failed, Box::new(child.log.usage()));
    child.log.record(EntryBody::RunEnded { status, usage, error: None, answer: None });
    child.commit().await;
    child.log.close();
    let known = || {
        let (log, rest) = (&child.log, child.log.at_rest());
        (log.history(), log.usage(), log.tree_usage(), log.tool_calls(), rest.history, rest.usage, rest.tree_usage)
    };
    let before = known();
    assert_eq!((before.0.len(), before.1.total(), before.2.total()), (2, 3, 3));
    root.log.record_turn_ended(1, BTreeMap::new(), None);
    assert_eq!(known(), before);
    assert_eq!(root.log.tree_usage().total(), 3);
}

#[tokio::test]
async fn events_name_the_worker_that_went_on() {
    let tree = Tree::begun(&MemoryJournal::default(), "a").await;
    let mut reader = tree.hub.subscribe();
    let mut ids = (*tree.root.ids).clone();
    ids.worker = Some("second".into());
    tree.root.log.record(EntryBody::RunResumed { ids: ids.into(), attempt: "2".into() });
    tree.root.says("hi").await;
    let (events, _) = read(&mut reader);
    assert!(events.iter().skip(1).all(|event| event.ids.worker.as_deref() == Some("second")), "{events:?}");
}

#[tokio::test]
async fn a_reader_far_behind_gets_every_durable_event_once_and_in_order() {
    let tree = Tree::begun(&MemoryJournal::default(), "a").await;
    let mut reader = tree.hub.subscribe();
    for n in 0..MANY {
        tree.root.streams(&n.to_string(), 2).await;
    }
    tree.hub.close();
    let (events, ended) = read(&mut reader);
    assert!(ended);
    assert_in_order(&events);
    let whole: Vec<_> = texts(&events).into_iter().filter(|text| !text.contains('/')).collect();
    assert_eq!(whole, numbered(MANY));
}

#[tokio::test(start_paused = true)]
async fn a_reader_whose_journal_fails_for_a_moment_loses_nothing() {
    let journal = MemoryJournal::default();
    let failing = Failing { journal: journal.clone(), failures: 3.into() };
    let tree = Tree::read_from(failing, &journal, "a").await;
    let reader = tree.hub.subscribe();
    for n in 0..MANY {
        tree.root.says(&n.to_string()).await;
    }
    tree.hub.close();
    assert_eq!(texts(&reader.collect::<Vec<_>>().await), numbered(MANY));
}

#[tokio::test(start_paused = true)]
async fn a_reader_whose_journal_cannot_be_read_is_told_so_and_ends() {
    let journal = MemoryJournal::default();
    let failing = Failing { journal: journal.clone(), failures: usize::MAX.into() };
    let tree = Tree::read_from(failing, &journal, "a").await;
    let reader = tree.hub.subscribe();
    tree.root.says("it goes on").await;
    let events: Vec<_> = reader.collect().await;
    let [Event { kind: EventKind::Unreadable { after: 0, error }, ids, .. }] = &events[..] else {
        panic!("{events:#?}")
    };
    assert!(error.contains("the connection was lost") && *ids == tree.root.ids, "{error}");
}

#[tokio::test]
async fn a_reader_who_comes_too_late_for_a_journal_that_keeps_little_is_told_how_much_is_missing() {
    let tree = Tree::begun(&MemoryJournal::bounded(4), "a").await;
    for n in 0..10 {
        tree.root.says(&n.to_string()).await;
    }
    tree.hub.close();
    let events: Vec<_> = tree.hub.subscribe().collect().await;
    let missing =
        |event: &Event| matches!(&event.kind, EventKind::Warning { message } if message.contains("7 entries"));
    assert!(missing(&events[0]), "the run's beginning and six messages: {events:#?}");
    assert_eq!(texts(&events), ["6", "7", "8", "9"]);
}

#[tokio::test]
async fn a_reader_that_keeps_up_gets_every_piece_too() {
    let tree = Tree::begun(&MemoryJournal::default(), "a").await;
    let mut reader = tree.hub.subscribe();
    tree.root.says("0").await;
    for n in 1..MANY {
        let text = n.to_string();
        tree.root.streams(&text, 2).await;
        let (events, ended) = read(&mut reader);
        assert!(!ended);
        let expected = [format!("{text}/0"), format!("{text}/1"), text];
        assert!(texts(&events).ends_with(&expected), "{:?}", texts(&events));
    }
}

#[tokio::test]
async fn a_late_reader_gets_everything_that_is_over() {
    let tree = Tree::begun(&MemoryJournal::default(), "a").await;
    for n in 0..MANY {
        tree.root.streams(&n.to_string(), 1).await;
    }
    let mut late = tree.hub.subscribe();
    tree.root.says("last").await;
    tree.hub.close();
    let mut after_the_end = tree.hub.subscribe();
    for reader in [&mut late, &mut after_the_end] {
        let (events, ended) = read(reader);
        assert!(ended);
        assert_in_order(&events);
        assert!(matches!(events[0].kind, EventKind::RunStarted));
        assert_eq!(texts(&events), [numbered(MANY), vec!["last".to_owned()]].concat());
    }
}

#[tokio::test]
async fn pieces_of_a_message_whose_beginning_was_missed_are_left_out() {
    let tree = Tree::begun(&MemoryJournal::default(), "a").await;
    let mut reader = tree.hub.subscribe();
    (0..MANY).for_each(|n| tree.root.piece("long", n));
    assert!(texts(&read(&mut reader).0).is_empty(), "only its end is still there");
    (MANY..MANY + 5).for_each(|n| tree.root.piece("long", n));
    tree.root.says("long").await;
    tree.root.streams("next", 2).await;
    assert_eq!(texts(&read(&mut reader).0), ["long", "next/0", "next/1", "next"]);
}

#[tokio::test]
async fn a_run_that_goes_on_does_not_uncover_another_runs_cut_message() {
    let tree = Tree::begun(&MemoryJournal::default(), "a").await;
    let (one, two) = (tree.child(), tree.child());
    one.begin().await;
    two.begin().await;
    let mut reader = tree.hub.subscribe();
    (0..MANY).for_each(|n| one.piece("cut", n));
    two.says("two").await;
    one.piece("cut", MANY);
    two.streams("more", 1).await;
    one.says("cut").await;
    one.streams("whole", 1).await;
    assert_eq!(texts(&read(&mut reader).0), ["two", "more/0", "more", "cut", "whole/0", "whole"]);
}

#[tokio::test]
async fn entries_of_parallel_runs_that_are_acknowledged_late_are_not_lost() {
    let tree = Tree::begun(&MemoryJournal::default(), "a").await;
    let (one, two) = (tree.child(), tree.child());
    one.begin().await;
    two.begin().await;
    let mut reader = tree.hub.subscribe();
    let mut lazy = tree.hub.subscribe();
    read(&mut reader);
    one.hears("first");
    two.says("second").await;
    let before = texts(&read(&mut reader).0);
    one.says("third").await;
    assert_eq!([before, texts(&read(&mut reader).0)].concat(), ["first", "second", "third"]);
    tree.hub.close();
    assert_eq!(texts(&read(&mut lazy).0), ["first", "second", "third"]);
}

#[tokio::test]
async fn another_tree_in_the_session_is_not_heard() {
    let journal = MemoryJournal::default();
    let before = Tree::begun(&journal, "before").await;
    before.root.says("long ago").await;
    drop(before);
    let (ours, theirs) = (Tree::begun(&journal, "ours").await, Tree::begun(&journal, "theirs").await);
    let mut slow = ours.hub.subscribe();
    for n in 0..MANY {
        theirs.root.says("theirs").await;
        ours.root.says(&n.to_string()).await;
    }
    let mut late = ours.hub.subscribe();
    for reader in [&mut slow, &mut late] {
        let (events, _) = read(reader);
        assert!(events.iter().all(|event| &*event.ids.agent == "ours"));
        assert_eq!(texts(&events), numbered(MANY));
    }
}

#[tokio::test]
async fn a_reader_is_woken_by_what_comes_and_by_the_end() {
    let tree = Tree::begun(&MemoryJournal::default(), "a").await;
    let reader = tokio::spawn(tree.hub.subscribe().collect::<Vec<_>>());
    for n in 0..5 {
        tokio::task::yield_now().await;
        tree.root.says(&n.to_string()).await;
    }
    tree.hub.close();
    assert_eq!(texts(&reader.await.expect("it ends")), numbered(5));
}

/// Counts wake-ups.
#[derive(Default)]
struct Woken(AtomicUsize);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

#[tokio::test]
async fn a_reader_whose_message_is_cut_is_not_woken_by_pieces_of_it() {
    let tree = Tree::begun(&MemoryJournal::default(), "a").await;
    let mut reader = tree.hub.subscribe();
    (0..MANY).for_each(|n| tree.root.piece("long", n));
    read(&mut reader);
    let woken = Arc::new(Woken::default());
    assert!(reader.poll_next_unpin(&mut Context::from_waker(&woken.clone().into())).is_pending());
    (MANY..2 * MANY).for_each(|n| tree.root.piece("long", n));
    assert_eq!(woken.0.load(Ordering::SeqCst), 0);
    tree.root.emitter.emit(EventKind::Warning { message: "look".into() });
    assert_eq!(woken.0.load(Ordering::SeqCst), 1, "this is for everybody");
    tree.root.says("long").await;
    let (events, _) = read(&mut reader);
    assert!(matches!(&events[0].kind, EventKind::Warning { .. }), "{events:#?}");
    assert_eq!(texts(&events), ["long"]);
}

#[tokio::test]
async fn a_reader_that_is_gone_is_not_waited_for() {
    let tree = Tree::begun(&MemoryJournal::default(), "a").await;
    let reader = tree.hub.subscribe();
    tree.root.says("0").await;
    drop(reader);
    tree.root.says("1").await;
    tree.root.piece("nobody hears", 0);
    assert!(!tree.root.emitter.is_observed());
    assert_eq!(texts(&read(&mut tree.hub.subscribe()).0), ["0", "1"]);
}

/// An event of a tree and its readers.
#[derive(Clone, Debug)]
enum Doing {
    Piece {
        run: usize,
    },
    Say {
        run: usize,
    },
    /// A message is in the journal; the hub receives it when the run commits.
    Hear {
        run: usize,
    },
    /// A message is retried from its beginning.
    Restart {
        run: usize,
    },
    /// Another tree writes to the session.
    Stranger,
    /// Enough chunks for all readers to fall behind.
    Flood {
        run: usize,
    },
    Read {
        reader: usize,
        events: usize,
    },
    Subscribe,
}

fn doing() -> impl Strategy<Value = Doing> {
    let run = || 0_usize..3;
    prop_oneof![
        4 => run().prop_map(|run| Doing::Piece { run }),
        4 => run().prop_map(|run| Doing::Say { run }),
        3 => run().prop_map(|run| Doing::Hear { run }),
        1 => run().prop_map(|run| Doing::Restart { run }),
        2 => Just(Doing::Stranger),
        1 => run().prop_map(|run| Doing::Flood { run }),
        4 => (0_usize..4, 1_usize..8).prop_map(|(reader, events)| Doing::Read { reader, events }),
        1 => Just(Doing::Subscribe),
    ]
}

/// The chunks of each message that a reader received begin at the first, without a gap, and none
/// follows the whole message.
fn pieces_are_honest(heard: &[String]) -> Result<(), TestCaseError> {
    let mut next: HashMap<&str, usize> = HashMap::new();
    for text in heard {
        let (message, n) = text.split_once('/').map_or((&**text, None), |(message, n)| (message, n.parse().ok()));
        let expected = next.entry(message).or_insert(0);
        match n {
            Some(n) => prop_assert_eq!(n, *expected, "of {} in {:?}", message, heard),
            None => prop_assert!(*expected < usize::MAX, "{} came twice", message),
        }
        *expected = n.map_or(usize::MAX, |n: usize| n + 1);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn whatever_happens_every_reader_gets_every_message(doings in vec(doing(), 0..60)) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        runtime.block_on(async {
            let journal = MemoryJournal::default();
            let (tree, stranger) = (Tree::begun(&journal, "a").await, Tree::begun(&journal, "stranger").await);
            let runs = [tree.root.clone(), tree.child(), tree.child()];
            runs[1].begin().await;
            runs[2].begin().await;
            let mut readers = vec![(tree.hub.subscribe(), Vec::new())];
            // The streamed message of each run: its number, and the number of chunks sent.
            let (mut under_way, mut heard_of) = ([(0, 0); 3], 0);
            for doing in doings {
                match doing {
                    Doing::Piece { run } | Doing::Flood { run } => {
                        let (message, sent) = &mut under_way[run];
                        let count = if matches!(doing, Doing::Flood { .. }) { 1100 } else { 1 };
                        (*sent..*sent + count).for_each(|n| runs[run].piece(&format!("{run}.{message}"), n));
                        *sent += count;
                    }
                    Doing::Restart { run } => {
                        runs[run].emitter.emit(EventKind::Chunk(Chunk::Restart));
                        under_way[run].0 += 1;
                        under_way[run].1 = 0;
                    }
                    Doing::Say { run } => {
                        let (message, _) = under_way[run];
                        runs[run].says(&format!("{run}.{message}")).await;
                        under_way[run] = (message + 1, 0);
                    }
                    Doing::Hear { run } => {
                        heard_of += 1;
                        runs[run].hears(&format!("heard {heard_of}"));
                    }
                    Doing::Stranger => stranger.root.says("stranger").await,
                    Doing::Read { reader, events } => {
                        let at = reader % readers.len();
                        let (stream, heard) = &mut readers[at];
                        for _ in 0..events {
                            heard.extend(stream.next().now_or_never().flatten());
                        }
                    }
                    Doing::Subscribe => readers.push((tree.hub.subscribe(), Vec::new())),
                }
            }
            for run in &runs {
                run.commit().await;
            }
            tree.hub.close();

            let entries = journal.read("s", 0, usize::MAX).await.expect("reads");
            let ours = entries.iter().filter(|e| e.run != stranger.root.ids.run_id);
            let expected: Vec<_> = ours.filter_map(|e| match &e.body {
                EntryBody::MessageAppended { message } => Some(message.text()),
                EntryBody::ModelAccepted { message: Some(message), .. } => Some(message.text()),
                _ => None,
            }).collect();
            for (mut stream, mut heard) in readers {
                let (rest, ended) = read(&mut stream);
                prop_assert!(ended);
                heard.extend(rest);
                prop_assert!(heard.is_sorted_by(|a, b| a.position < b.position), "positions ascend");
                let heard = texts(&heard);
                prop_assert_eq!(heard.iter().filter(|t| !t.contains('/')).collect::<Vec<_>>(), expected.iter().collect::<Vec<_>>());
                pieces_are_honest(&heard)?;
            }
            Ok(())
        })?;
    }
}
