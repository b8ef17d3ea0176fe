//! A checkpoint survives serialisation to JSON without loss.

use std::collections::BTreeMap;

use agent_core::{
    Answer, Checkpoint, ErrorKind, History, Question, RunIds, ToolOutput, Usage,
    run::checkpoint::{CallState, PendingTurn, Phase},
};
use proptest::{
    collection::{btree_map, vec},
    option,
    prelude::*,
};

use crate::any;

/// A checkpoint without an open turn.
fn plain() -> impl Strategy<Value = Checkpoint> {
    let values = || btree_map(any::<String>(), any::json(), 0..3);
    let question = (any::<String>(), any::<String>(), any::json())
        .prop_map(|(id, kind, payload)| Question::new(id, kind, payload));
    let said = (vec(any::message(), 0..6), values(), option::of(values()));
    let asked = (vec(question, 0..3), values(), vec((any::<String>(), any::json()), 0..3));
    let counted = (any::<u32>(), any::<u32>(), btree_map(any::<String>(), any::<u32>(), 0..3));
    (said, asked, counted).prop_map(
        |((messages, state, globals), (questions, answers, decisions), (step, tokens, calls))| {
            let ids = RunIds::root("agent", "session").child("child", None, None);
            let mut checkpoint = Checkpoint::new(ids, "fingerprint");
            checkpoint.step = step;
            checkpoint.history = History::import(messages).0;
            (checkpoint.state, checkpoint.globals) = (state, globals);
            let answers = answers.into_iter().map(|(id, value)| (id, Answer::from(value).by("ada"))).collect();
            (checkpoint.questions, checkpoint.answers, checkpoint.decisions) = (questions, answers, decisions);
            (checkpoint.usage, checkpoint.tree_usage) = (Usage::new(tokens.into(), 1), Usage::new(tokens.into(), 2));
            checkpoint.tool_calls = calls;
            checkpoint
        },
    )
}

/// A checkpoint with suspended sub-agents, which have suspended sub-agents.
fn any_checkpoint() -> impl Strategy<Value = Checkpoint> {
    plain().prop_recursive(3, 6, 2, |child| {
        let state = prop_oneof![
            Just(CallState::Todo),
            any::output().prop_map(CallState::Done),
            option::of(child).prop_map(|child| CallState::Suspended { child: child.map(Box::new) }),
        ];
        (plain(), any::assistant(), vec(state, 4)).prop_map(|(mut checkpoint, message, states)| {
            let mut turn = PendingTurn::new(message);
            turn.calls.iter_mut().zip(states).for_each(|(call, state)| call.state = state);
            checkpoint.phase = Phase::Tools(turn);
            checkpoint
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn a_checkpoint_comes_back_from_json_as_it_was(checkpoint in any_checkpoint()) {
        let text = checkpoint.to_json().expect("serialises");
        prop_assert_eq!(Checkpoint::from_json(&text).expect("parses"), checkpoint);
    }

    #[test]
    fn an_output_comes_back_from_json_as_it_was(output in any::output()) {
        let text = serde_json::to_string(&output).expect("serialises");
        let back: ToolOutput = serde_json::from_str(&text).expect("parses");
        prop_assert_eq!(back.as_value(), output.as_value());
        prop_assert_eq!(back, output);
    }
}

#[test]
fn a_checkpoint_of_a_newer_release_is_refused() {
    let mut checkpoint = Checkpoint::new(RunIds::root("agent", "session"), "fingerprint");
    checkpoint.version += 1;
    let e = Checkpoint::from_json(&checkpoint.to_json().expect("serialises")).expect_err("newer");
    assert_eq!(e.kind(), ErrorKind::Config);
    assert!(e.message().contains("newer than this release knows"), "{e}");
}

#[test]
fn a_text_that_is_no_checkpoint_is_refused() {
    for text in ["", "{}", "null", "[1]", "not JSON"] {
        assert_eq!(Checkpoint::from_json(text).expect_err("no checkpoint").kind(), ErrorKind::Config, "{text}");
    }
}

#[test]
fn what_an_older_release_left_out_has_its_default() {
    let checkpoint = Checkpoint::new(RunIds::root("agent", "session"), "fingerprint");
    let mut value: BTreeMap<String, serde_json::Value> =
        serde_json::from_str(&checkpoint.to_json().expect("serialises")).expect("parses");
    for field in ["questions", "answers", "decisions", "usage", "tree_usage", "tool_calls"] {
        assert!(value.remove(field).is_some(), "{field} was written");
    }
    let text = serde_json::to_string(&value).expect("serialises");
    assert_eq!(Checkpoint::from_json(&text).expect("parses"), checkpoint);
}
