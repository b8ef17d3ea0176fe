//! The list behind a history is a plain list, and what a wire wrote is what it would write.

use agent_core::{History, Message, history::WireKey};
use proptest::{collection::vec, prelude::*};

/// Two wires that write every message differently.
const WIRES: [&str; 2] = ["one", "two"];

/// What stands for a message depends on the one before it, as it does on wires that put messages together.
fn encode(wire: &str, before: Option<&Message>, message: &Message, out: &mut Vec<u8>) {
    let before = before.map(Message::text).unwrap_or_default();
    out.extend_from_slice(format!("<{wire}:{before}>{}>", message.text()).as_bytes());
}

/// The bytes on a wire, and how many messages were encoded for them.
fn write(history: &History, wire: &str) -> (Vec<u8>, usize) {
    let (mut out, mut encoded) = (b"[".to_vec(), 0);
    history.write(WireKey::new(&wire), &mut out, |at, message, out| {
        encoded += 1;
        encode(wire, at.checked_sub(1).and_then(|at| history.get(at)), message, out);
    });
    (out, encoded)
}

fn afresh(messages: &[Message], wire: &str) -> Vec<u8> {
    let mut out = b"[".to_vec();
    for (at, message) in messages.iter().enumerate() {
        encode(wire, at.checked_sub(1).map(|at| &messages[at]), message, &mut out);
    }
    out
}

/// The total of two measures: neither may be taken for the other.
fn totals(history: &History) -> [u64; 2] {
    let measure = |name: &str, of: fn(&Message) -> u64| history.total(WireKey::new(&name), of);
    [measure("bytes", |message| message.text().len() as u64), measure("messages", |_| 1)]
}

fn is_like(history: &History, model: &[Message]) -> Result<(), TestCaseError> {
    prop_assert_eq!(history.len(), model.len());
    prop_assert_eq!(history.is_empty(), model.is_empty());
    prop_assert_eq!(history.last(), model.last());
    prop_assert!(history.iter().eq(model));
    prop_assert!(history.iter().rev().eq(model.iter().rev()));
    let bytes = model.iter().map(|message| message.text().len() as u64).sum();
    prop_assert_eq!(totals(history), [bytes, model.len() as u64]);
    prop_assert_eq!(totals(history), [bytes, model.len() as u64], "from what is kept");
    for at in 0..model.len() + 34 {
        prop_assert_eq!(history.get(at), model.get(at), "at {}", at);
    }
    let (mut ours, mut theirs) = (history.iter(), model.iter());
    loop {
        prop_assert_eq!(ours.next(), theirs.next());
        prop_assert_eq!(ours.next_back(), theirs.next_back());
        if theirs.len() == 0 {
            break Ok(());
        }
    }
}

#[derive(Clone, Debug)]
enum Doing {
    Push { to: usize, count: usize },
    Replace { to: usize, back: usize },
    Clone { from: usize, to: usize },
    Write { from: usize, wire: usize },
}

const COPIES: usize = 3;

fn doing() -> impl Strategy<Value = Doing> {
    let count = prop_oneof![4 => 1_usize..4, 1 => 28_usize..36];
    prop_oneof![
        4 => (0..COPIES, count).prop_map(|(to, count)| Doing::Push { to, count }),
        3 => (0..COPIES, prop_oneof![0_usize..4, 0_usize..100])
            .prop_map(|(to, back)| Doing::Replace { to, back }),
        2 => (0..COPIES, 0..COPIES).prop_map(|(from, to)| Doing::Clone { from, to }),
        3 => (0..COPIES, 0..WIRES.len()).prop_map(|(from, wire)| Doing::Write { from, wire }),
    ]
}

proptest! {
    #[test]
    fn copies_are_plain_lists_that_do_not_touch_each_other(
        length in prop_oneof![Just(0_usize), 30_usize..35, 62_usize..67],
        doings in vec(doing(), 0..30),
    ) {
        let mut named = (0..).map(|n| Message::user(format!("{n}")));
        let first: Vec<_> = named.by_ref().take(length).collect();
        let history = History::from_messages(first.clone()).expect("no calls");
        let mut copies = vec![(history, first); COPIES];
        for doing in doings {
            match doing {
                Doing::Push { to, count } => {
                    for message in named.by_ref().take(count) {
                        copies[to].0.push(message.clone()).expect("no call");
                        copies[to].1.push(message);
                    }
                }
                Doing::Replace { to, back } => {
                    let (history, model) = &mut copies[to];
                    let Some(at) = model.len().checked_sub(back + 1) else {
                        prop_assert!(history.replace(model.len(), Message::user("?")).is_err());
                        continue;
                    };
                    let before = history.clone();
                    totals(&before);
                    model[at] = named.next().expect("no end");
                    history.replace(at, model[at].clone()).expect("no call");
                    prop_assert!(!history.continues(&before));
                    prop_assert!(history.continues(&History::default()));
                }
                Doing::Clone { from, to } => copies[to] = copies[from].clone(),
                Doing::Write { from, wire } => {
                    let (history, model) = &copies[from];
                    prop_assert_eq!(write(history, WIRES[wire]).0, afresh(model, WIRES[wire]));
                    prop_assert_eq!(write(history, WIRES[wire]), (afresh(model, WIRES[wire]), 0), "nothing is made twice");
                }
            }
        }
        for (history, model) in &copies {
            is_like(history, model)?;
            for wire in WIRES {
                prop_assert_eq!(write(history, wire).0, afresh(model, wire));
            }
        }
    }
}

#[test]
fn a_step_encodes_its_new_messages_only() {
    let mut history = History::default();
    for n in 0..200 {
        let kept = history.clone(); // a request of the step before may still be around
        history.push(Message::user(format!("{n}"))).expect("no call");
        assert_eq!(write(&history, WIRES[0]).1, 1, "with {} messages", kept.len());
    }
}

#[test]
fn a_total_of_a_long_history_measures_few_messages() {
    let mut history = History::default();
    for n in 0..500 {
        history.push(Message::user(format!("{n}"))).expect("no call");
        let measured = std::cell::Cell::new(0);
        let total = history.total(WireKey::new(&"messages"), |_| {
            measured.set(measured.get() + 1);
            1
        });
        assert_eq!(total, history.len() as u64);
        assert!(measured.get() <= 32, "{} of {}", measured.get(), history.len());
    }
}

#[test]
fn a_view_with_marks_on_its_newest_messages_encodes_those_and_what_is_new() {
    let mut history = History::default();
    for n in 0..200 {
        history.push(Message::user(format!("{n}"))).expect("no call");
        let mut view = history.clone();
        for at in history.len().saturating_sub(2)..history.len() {
            view.replace(at, Message::user(format!("{at}, marked"))).expect("no call");
        }
        let encoded = write(&view, WIRES[0]).1;
        assert!(encoded <= 4, "{encoded} with {n} messages");
    }
}

#[test]
fn every_length_around_a_segment_is_like_a_plain_list() {
    for length in [0, 1, 31, 32, 33, 63, 64, 65, 96, 97] {
        let model: Vec<_> = (0..length).map(|n| Message::user(format!("{n}"))).collect();
        let history = History::from_messages(model.clone()).expect("no calls");
        is_like(&history, &model).expect("a plain list");
    }
}
