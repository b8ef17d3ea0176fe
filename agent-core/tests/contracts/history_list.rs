//! The persistent list of a history behaves like a plain list, and a clone recognises the list that
//! it continues.

use agent_core::{History, Message};
use proptest::{collection::vec, prelude::*};

fn is_like(history: &History, model: &[Message]) -> Result<(), TestCaseError> {
    prop_assert_eq!(history.len(), model.len());
    prop_assert_eq!(history.is_empty(), model.is_empty());
    prop_assert_eq!(history.last(), model.last());
    prop_assert!(history.iter().eq(model));
    prop_assert!(history.iter().rev().eq(model.iter().rev()));
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
}

const COPIES: usize = 3;

fn doing() -> impl Strategy<Value = Doing> {
    let count = prop_oneof![4 => 1_usize..4, 1 => 14_usize..20];
    prop_oneof![
        4 => (0..COPIES, count).prop_map(|(to, count)| Doing::Push { to, count }),
        3 => (0..COPIES, prop_oneof![0_usize..4, 0_usize..100])
            .prop_map(|(to, back)| Doing::Replace { to, back }),
        2 => (0..COPIES, 0..COPIES).prop_map(|(from, to)| Doing::Clone { from, to }),
    ]
}

proptest! {
    #[test]
    fn copies_are_plain_lists_that_do_not_touch_each_other(
        length in prop_oneof![Just(0_usize), 14_usize..19, 254_usize..259],
        doings in vec(doing(), 0..30),
    ) {
        let mut named = (0..).map(|n| Message::user(format!("{n}")));
        let first: Vec<_> = named.by_ref().take(length).collect();
        let history = History::from_messages(first.clone()).expect("no calls");
        let mut copies = vec![(history, first); COPIES];
        for doing in doings {
            match doing {
                Doing::Push { to, count } => {
                    let before = copies[to].0.clone();
                    for message in named.by_ref().take(count) {
                        copies[to].0.push(message.clone()).expect("no call");
                        copies[to].1.push(message);
                    }
                    prop_assert!(copies[to].0.since(&before).expect("pushes go on").eq(&copies[to].1[before.len()..]));
                    prop_assert!(!before.continues(&copies[to].0));
                }
                Doing::Replace { to, back } => {
                    let (history, model) = &mut copies[to];
                    let Some(at) = model.len().checked_sub(back + 1) else {
                        prop_assert!(history.replace(model.len(), Message::user("?")).is_err());
                        continue;
                    };
                    let before = history.clone();
                    model[at] = named.next().expect("no end");
                    history.replace(at, model[at].clone()).expect("no call");
                    prop_assert!(!history.continues(&before));
                    prop_assert!(history.continues(&History::default()));
                }
                Doing::Clone { from, to } => copies[to] = copies[from].clone(),
            }
        }
        for (history, model) in &copies {
            is_like(history, model)?;
        }
    }
}

#[test]
fn every_length_around_a_full_node_is_like_a_plain_list() {
    for length in [0, 1, 15, 16, 17, 31, 32, 33, 255, 256, 257, 272, 273] {
        let model: Vec<_> = (0..length).map(|n| Message::user(format!("{n}"))).collect();
        let history = History::from_messages(model.clone()).expect("no calls");
        is_like(&history, &model).expect("a plain list");
    }
}
