//! The same entries produce the same history: appends add, replacements reset, undo reverts to
//! before a run.

use std::{collections::BTreeMap, sync::Arc};

use agent_core::{
    Checkpoint, Journal, MemoryJournal, Message, ModelResponse, Question, RunIds, ToolOutput, Usage,
    journal::{Entry, EntryBody, SessionIndex},
    run::checkpoint::ChildRun,
};
use proptest::{collection::vec, prelude::*};
use serde_json::json;

use crate::fold_model::{Agent, Call, Doing, Log, Turn, asks, done};

pub(crate) fn doing() -> impl Strategy<Value = Doing> {
    let call = any::<[bool; 3]>().prop_map(|[finished, answered, changed]| Call { finished, answered, changed });
    let turn = (vec(call, 1..4), proptest::bool::weighted(0.1), proptest::bool::weighted(0.7))
        .prop_map(|(calls, replaced, ended)| Doing::Turn(Turn { calls, replaced, ended }));
    prop_oneof![
        3 => Just(Doing::RunStarts),
        4 => Just(Doing::Heard),
        3 => any::<bool>().prop_map(|edited| Doing::Answered { edited }),
        4 => turn,
        1 => (0_usize..3).prop_map(|messages| Doing::Replaced { messages }),
        2 => (0_usize..4).prop_map(|ago| Doing::Undone { ago }),
        1 => (1_u64..9).prop_map(|tokens| Doing::RunEnds { tokens }),
        1 => Just(Doing::RunResumes),
        1 => Just(Doing::Noise),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn any_log_means_what_a_naive_reading_says(doings in vec((0_usize..2, doing()), 0..40)) {
        let (mut log, mut agents) = (Log::default(), [Agent::new("a"), Agent::new("b")]);
        for (who, doing) in &doings {
            agents[*who].act(doing, &mut log);
        }
        for (agent, name) in agents.iter().zip(["a", "b"]) {
            let view = log.fold(name);
            prop_assert_eq!(view.history.iter().cloned().collect::<Vec<_>>(), agent.history());
            prop_assert_eq!(view.usage, agent.usage());
            let newest = view.last_run.as_ref().map(|(run, status)| (run.to_string(), status.clone()));
            prop_assert_eq!(newest.unwrap_or((format!("{name}-r0"), None)), (agent.newest_run(), agent.ended.clone()));
            prop_assert_eq!(log.fold(name), view, "folding again gives the same");
        }
        prop_assert!(log.texts("nobody").is_empty());
    }
}

/// Two runs: the first received one message, the second three.
fn two_runs() -> Log {
    let mut log = Log::default();
    log.run("a", "r1");
    log.heard("r1", "1");
    log.ended("r1", Usage::new(3, 1));
    log.run("a", "r2");
    ["2", "3", "4"].iter().for_each(|text| log.heard("r2", text));
    log.ended("r2", Usage::new(4, 1));
    log
}

fn replaced(log: &mut Log, run: &str, text: &str) {
    log.replaced(run, &[text.to_owned()]);
}

#[test]
fn appends_of_all_runs_stand_one_after_the_other() {
    assert_eq!(two_runs().texts("a"), ["1", "2", "3", "4"]);
}

#[test]
fn the_last_replacement_is_where_the_history_begins() {
    let mut log = two_runs();
    replaced(&mut log, "r2", "summary");
    log.heard("r2", "5");
    assert_eq!(log.texts("a"), ["summary", "5"]);
    replaced(&mut log, "r2", "shorter");
    log.heard("r2", "6");
    assert_eq!(log.texts("a"), ["shorter", "6"]);
    assert_eq!(log.0.len(), 12, "older entries are still there");
}

#[test]
fn undo_goes_back_to_before_a_run_however_much_it_added() {
    let mut log = two_runs();
    log.undone("r2", "r2");
    assert_eq!(log.texts("a"), ["1"]);
    log.undone("r2", "r1");
    assert!(log.texts("a").is_empty());
}

#[test]
fn of_nested_undos_the_earliest_cut_counts() {
    let mut log = two_runs();
    log.undone("r2", "r1");
    log.undone("r2", "r2");
    assert!(log.texts("a").is_empty(), "what was undone does not come back");
}

#[test]
fn what_comes_after_an_undo_is_kept() {
    let mut log = two_runs();
    log.undone("r2", "r2");
    log.heard("r2", "again");
    log.run("a", "r3");
    log.heard("r3", "5");
    assert_eq!(log.texts("a"), ["1", "again", "5"]);
    replaced(&mut log, "r3", "summary");
    assert_eq!(log.texts("a"), ["summary"]);
}

#[test]
fn undo_past_a_replacement_brings_back_what_it_replaced() {
    let mut log = two_runs();
    log.run("a", "r3");
    replaced(&mut log, "r3", "summary");
    log.heard("r3", "5");
    log.undone("r3", "r3");
    assert_eq!(log.texts("a"), ["1", "2", "3", "4"]);
}

#[test]
fn undo_is_the_agents_own() {
    let mut log = two_runs();
    log.run("b", "r3");
    log.heard("r3", "b's");
    log.undone("r3", "r1");
    assert_eq!(log.texts("a"), Vec::<String>::new());
    assert_eq!(log.texts("b"), ["b's"]);
    log.undone("r3", "no such run");
    assert_eq!(log.texts("b"), ["b's"]);
}

#[test]
fn undo_keeps_a_turn_that_an_earlier_run_left_open() {
    let mut log = Log::default();
    log.run("a", "r1");
    log.said("r1", asks(1), None); // the process dies here
    log.run("a", "r2");
    log.heard("r2", "2");
    log.undone("r2", "r2");
    let texts = log.texts("a");
    assert_eq!(texts, ["", "No result was recorded: the call was interrupted."]);
}

#[test]
fn starts_and_ends_of_runs_say_nothing_of_the_history() {
    let mut log = two_runs();
    let before = log.texts("a");
    log.run("a", "r3");
    log.ended("r3", Usage::new(5, 1));
    log.run("a", "r4");
    assert_eq!(log.texts("a"), before);
    assert_eq!(log.fold("a").last_run, Some(("r4".into(), None)));
}

#[test]
fn a_call_whose_answer_no_hook_accepted_is_answered_the_same_each_time() {
    let mut log = Log::default();
    log.run("a", "r1");
    log.said("r1", asks(2), None);
    log.add("r1", EntryBody::ToolFinished { call_id: "c1".into(), output: ToolOutput::text("done") });
    let view = log.fold("a");
    assert_eq!(log.fold("a"), view);
    let results: Vec<_> = view.history.iter().filter_map(Message::as_tool).collect();
    assert_eq!(results.iter().map(|r| (r.call_id(), r.is_error())).collect::<Vec<_>>(), [("c0", true), ("c1", true)]);
}

#[test]
fn an_answer_that_was_not_accepted_is_not_in_the_history() {
    let mut log = two_runs();
    let response = ModelResponse::new("never accepted");
    log.add("r2", EntryBody::ModelFinished { step: 1, response: std::sync::Arc::new(response) });
    assert_eq!(log.texts("a").len(), 4);
}

#[test]
fn storage_is_the_hierarchys_and_is_not_undone() {
    let mut log = two_runs();
    let mut change = |run: &str, globals: [(&str, Option<u32>); 2]| {
        let globals = globals.map(|(key, value)| (key.to_owned(), value.map(Into::into))).into();
        log.add(run, EntryBody::StateChanged { state: BTreeMap::new(), globals });
    };
    change("r2", [("x", Some(1)), ("y", Some(1))]);
    change("a run of a sub-agent", [("x", None), ("z", Some(2))]);
    log.undone("r2", "r1");
    assert_eq!(json!(log.fold("a").globals), json!({"y": 1, "z": 2}));
    assert_eq!(log.fold("a").globals, log.fold("b").globals);
}

#[test]
fn usage_adds_up_over_the_agents_runs_and_counts_a_run_once() {
    let mut log = two_runs();
    log.run("b", "r3");
    log.ended("r3", Usage::new(5, 1));
    log.resumed("a", "r2");
    assert_eq!(log.fold("a").last_run, Some(("r2".into(), None)), "it is under way again");
    log.ended("r2", Usage::new(9, 2)); // total usage, before and after the pause
    let mut both = Usage::new(3, 1);
    both += Usage::new(9, 2);
    assert_eq!((log.fold("a").usage, log.fold("b").usage), (both, Usage::new(5, 1)));
    assert_eq!(log.fold("a").last_run, Some(("r2".into(), Some(done()))));
}

#[tokio::test]
async fn a_session_of_many_pages_folds_like_its_entries() {
    for length in [199, 498, 499, 500, 501, 999] {
        let journal = MemoryJournal::default();
        let writer = journal.open("s", "a").await.expect("is free");
        let mut log = Log::default();
        log.run("a", "r1");
        (0..length).for_each(|n| log.heard("r1", &format!("{n}")));
        writer.append(log.0.clone()).await.expect("appends");
        let view = journal.index("s").await.expect("folds").look(|index| index.view("a"));
        assert_eq!((view.history.len(), &view), (length, &log.fold("a")));
    }
}

/// A tree of two runs: `top` of the agent "a", and `below`.
struct Tree {
    index: SessionIndex,
    seq: u64,
    top: Arc<str>,
    child: Arc<RunIds>,
}

impl Tree {
    fn new() -> Self {
        let above = RunIds::root("a", "s");
        let child = Arc::new(above.child("b", None, Some("below".into())));
        let mut tree = Self { index: SessionIndex::default(), seq: 0, top: above.run_id.clone(), child };
        tree.above(EntryBody::RunStarted { ids: Arc::new(above), fingerprint: String::new() });
        tree.above(EntryBody::linked(ChildRun::new("c".into(), "b", "below".into())));
        tree.begins();
        tree
    }

    fn begins(&mut self) {
        self.below(EntryBody::RunStarted { ids: self.child.clone(), fingerprint: String::new() });
    }

    fn above(&mut self, body: EntryBody) {
        self.apply(self.top.clone(), body);
    }

    fn below(&mut self, body: EntryBody) {
        self.apply("below".into(), body);
    }

    fn apply(&mut self, run: Arc<str>, body: EntryBody) {
        self.seq += 1;
        let mut entry = Entry::new(run, self.seq, body);
        entry.seq = self.seq;
        self.index.apply(&entry);
    }

    fn stands(&self) -> Checkpoint {
        self.index.unfinished("a").expect("open")
    }
}

#[test]
fn what_a_run_below_does_not_ask_any_more_those_above_it_do_not_ask_either() {
    let asked = |place: &str| {
        let mut question = Question::new(format!("{place}q/input"), "input", json!({}));
        question.digest = "the child's".into();
        EntryBody::Asked { question: question.into() }
    };
    let mut tree = Tree::new();
    tree.below(asked(""));
    tree.above(asked("c/"));
    assert_eq!(tree.stands().questions.len(), 1);
    tree.below(EntryBody::Answered { id: "q/input".into(), answer: json!(1), by: None, digest: "the child's".into() });
    assert_eq!(tree.stands().questions.len(), 0, "nobody waits for it");
}

#[test]
fn what_a_run_below_used_before_it_began_again_still_counts() {
    let mut tree = Tree::new();
    for tokens in [5, 7] {
        tree.below(EntryBody::SideModelFinished { usage: Usage::new(tokens, 0).into() });
        tree.begins();
    }
    assert_eq!(tree.stands().tree_usage.input, 12);
}
