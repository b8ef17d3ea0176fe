//! A history never contains an unpaired call or result, regardless of the operations on it.

use std::collections::HashSet;

use agent_core::{AssistantMessage, History, Message, ToolMessage, history::Repair};
use proptest::{collection::vec, prelude::*, sample::Index};

use crate::any;

/// The requirements of every provider, in an independent formulation.
fn is_paired(messages: &[Message]) -> bool {
    let mut at = 0;
    while let Some(message) = messages.get(at) {
        at += 1;
        match message {
            Message::Tool(_) => return false,
            Message::Assistant(m) if m.is_empty() => return false,
            Message::Assistant(m) => {
                let ids: Vec<_> = m.calls().map(|call| &*call.id).collect();
                let distinct: HashSet<_> = ids.iter().filter(|id| !id.is_empty()).collect();
                let answers = messages[at..].iter().map_while(Message::as_tool).map(ToolMessage::call_id);
                if distinct.len() != ids.len() || !answers.eq(ids.iter().copied()) {
                    return false;
                }
                at += ids.len();
            }
            Message::System(_) | Message::User(_) => {}
        }
    }
    true
}

fn messages(history: &History) -> Vec<Message> {
    history.iter().cloned().collect()
}

/// An operation on a history.
#[derive(Clone, Debug)]
enum Doing {
    Push(Message),
    Turn(AssistantMessage, Vec<ToolMessage>),
    /// A turn whose results match its calls.
    PairedTurn(AssistantMessage),
    Remove(Index),
    Swap(Index, Index),
    Insert(Index, Message),
    Replace(Index, Message),
    Import(Vec<Message>),
    Restart(Vec<Message>),
}

fn doing() -> impl Strategy<Value = Doing> {
    let index = any::<Index>;
    prop_oneof![
        3 => any::message().prop_map(Doing::Push),
        2 => (any::assistant(), vec(any::result(), 0..3)).prop_map(|(message, results)| Doing::Turn(message, results)),
        4 => any::assistant().prop_map(Doing::PairedTurn),
        1 => index().prop_map(Doing::Remove),
        1 => (index(), index()).prop_map(|(a, b)| Doing::Swap(a, b)),
        1 => (index(), any::message()).prop_map(|(at, message)| Doing::Insert(at, message)),
        2 => (index(), any::message()).prop_map(|(at, message)| Doing::Replace(at, message)),
        1 => vec(any::message(), 0..8).prop_map(Doing::Import),
        1 => vec(any::message(), 0..3).prop_map(Doing::Restart),
    ]
}

/// Applies the operation. Returns true if the history accepted it.
fn apply(doing: Doing, history: &mut History) -> bool {
    match doing {
        Doing::Push(message) => history.push(message).is_ok(),
        Doing::Turn(message, results) => history.push_turn(message, results).is_ok(),
        Doing::PairedTurn(message) => {
            let results =
                message.calls().map(|call| ToolMessage::text(&*call.id, &*call.name, "done", false)).collect();
            history.push_turn(message, results).is_ok()
        }
        Doing::Remove(at) if !history.is_empty() => history.edit(|all| drop(all.remove(at.index(all.len())))).is_ok(),
        Doing::Swap(a, b) if !history.is_empty() => {
            let (a, b) = (a.index(history.len()), b.index(history.len()));
            history.edit(|all| all.swap(a, b)).is_ok()
        }
        Doing::Remove(_) | Doing::Swap(..) => true,
        Doing::Insert(at, message) => history.edit(|all| all.insert(at.index(all.len() + 1), message)).is_ok(),
        Doing::Replace(at, message) => {
            let at = at.index(history.len() + 1);
            let mut all = messages(history);
            let taken = history.replace(at, message.clone()).is_ok();
            let allowed = all.get_mut(at).map(|old| *old = message).is_some() && is_paired(&all);
            assert_eq!(taken, allowed, "a message is replaced exactly when all stay paired");
            taken
        }
        Doing::Import(more) => {
            let all = messages(history).into_iter().chain(more);
            *history = History::import(all).0;
            true
        }
        Doing::Restart(all) => History::from_messages(all).map(|new| *history = new).is_ok(),
    }
}

proptest! {
    #[test]
    fn nothing_that_is_done_leaves_a_history_unpaired(doings in vec(doing(), 0..20)) {
        let mut history = History::default();
        for doing in doings {
            let before = history.clone();
            let taken = apply(doing.clone(), &mut history);
            prop_assert!(is_paired(&messages(&history)), "after {doing:?}: {history:?}");
            prop_assert!(taken || history == before, "{doing:?} was refused and changed the history");
        }
    }

    #[test]
    fn messages_are_taken_exactly_when_they_are_paired(all in vec(any::message(), 0..5)) {
        let paired = is_paired(&all);
        prop_assert_eq!(History::from_messages(all.clone()).is_ok(), paired);
        let json = serde_json::to_string(&all).expect("serialises");
        match serde_json::from_str::<History>(&json) {
            Ok(history) => prop_assert_eq!(messages(&history), all),
            Err(e) => prop_assert!(!paired, "{}", e),
        }
    }

    #[test]
    fn import_makes_any_messages_acceptable_and_says_what_it_did(all in vec(any::message(), 0..8)) {
        let (history, repairs) = History::import(all.clone());
        prop_assert!(is_paired(&messages(&history)), "{history:?}");
        prop_assert_eq!(repairs.is_empty(), is_paired(&all), "{:?}", repairs);

        // Messages that are neither calls nor results are unchanged and in place.
        let plain = |m: &&Message| matches!(m, Message::System(_) | Message::User(_));
        prop_assert!(history.iter().filter(plain).eq(all.iter().filter(plain)));
        // Every answer of the input is kept, and every missing one is reported.
        let results = |messages: &[Message]| messages.iter().filter(|m| m.as_tool().is_some()).count();
        let count = |what: fn(&Repair) -> bool| repairs.iter().filter(|r| what(r)).count();
        let orphans = count(|r| matches!(r, Repair::OrphanResult { .. }));
        let missing = count(|r| matches!(r, Repair::MissingResult { .. }));
        prop_assert_eq!(results(&messages(&history)) + orphans, results(&all) + missing);

        let (again, repairs) = History::import(messages(&history));
        prop_assert_eq!((again, repairs), (history, Vec::new()), "what was repaired needs no repair");
    }
}
