//! Patterns over agents.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use agent_core::{
    Block, ErrorKind, Journal, MemoryJournal, Message,
    testing::{ScriptedModel, Turn},
};
use agent_exec::Agent;
use agent_team::pattern::{
    Debate, GroupChat, MapReduce, Optimiser, Parallel, PatternReason, Router, Said, Scope, Sequence,
};

use crate::common::{Thinker, mortal::Mortal, scripted};

fn scope() -> Scope {
    Scope::new("s", "r")
}

fn lines(text: &str) -> Vec<String> {
    text.lines().map(str::to_owned).collect()
}

#[tokio::test]
async fn a_sequence_hands_each_text_to_the_next_agent() {
    let second = Turn::text("two").expect(|seen| match &seen.texts()[..] {
        [one] if one == "one" => Ok(()),
        other => Err(format!("{other:?}")),
    });
    let sequence = Sequence::new([scripted("a", [Turn::text("one")]), scripted("b", [second])]).expect("agents");
    let end = sequence.run(&scope(), "go").await.expect("runs");
    assert_eq!((end.text.as_str(), end.usage.calls), ("two", 2));
    assert_eq!(end.parts.iter().map(|part| part.name.as_str()).collect::<Vec<_>>(), ["1-a", "2-b"]);
}

#[tokio::test(start_paused = true)]
async fn parallel_agents_run_at_once_and_their_texts_are_merged_in_order() {
    let slow = |name: &str, text: &str, seconds| scripted(name, [Turn::text(text).delay(Duration::from_secs(seconds))]);
    let began = tokio::time::Instant::now();
    let agents = [slow("a", "one", 30), slow("b", "two", 10)];
    let end = Parallel::new(agents.clone()).expect("agents").run(&scope(), "go").await.expect("runs");
    assert_eq!((end.text.as_str(), began.elapsed().as_secs() < 80), ("one\n\ntwo", true));
}

#[tokio::test]
async fn a_router_runs_the_chosen_agent_alone_and_refuses_an_unknown_choice() {
    let agents = || [scripted("a", [Turn::text("A")]), scripted("b", [Turn::text("B")])];
    let router = Router::new(str::to_owned, agents()).expect("agents");
    assert_eq!(router.run(&scope(), "b").await.expect("runs").text, "B");
    let unknown = router.run(&scope(), "c").await.expect_err("no agent");
    assert_eq!(unknown.message(), "the router chose 'c', which is no agent; agents: a, b");
}

#[tokio::test(start_paused = true)]
async fn map_reduce_runs_a_bounded_number_of_parts_at_once() {
    let slow = |text: &str| Turn::text(text).delay(Duration::from_secs(5));
    let model = ScriptedModel::new(["1", "2", "3", "4", "5"].map(slow));
    let mapper = Agent::builder("map", model.clone()).build().expect("builds");
    let reducer = scripted(
        "reduce",
        [Turn::text("15").expect(|seen| match &seen.texts()[..] {
            [joined] if joined == "1\n\n2\n\n3\n\n4\n\n5" => Ok(()),
            other => Err(format!("{other:?}")),
        })],
    );
    let pattern = MapReduce::new(lines, mapper, reducer, 2).expect("limited");
    let end = pattern.run(&scope(), "a\nb\nc\nd\ne").await.expect("runs");
    assert_eq!((end.text.as_str(), end.parts.len(), model.peak()), ("15", 6, 2));
}

#[tokio::test(start_paused = true)]
async fn a_map_reduce_that_died_at_any_entry_repeats_no_finished_part() {
    let said = |text: String| agent_core::AssistantMessage::new(vec![Block::text(text)]);
    let build = |store: Arc<dyn Journal>, asked: Arc<Mutex<Vec<String>>>| {
        let think = Thinker::new(move |messages: &[Message]| {
            let text = messages.last().map(Message::text).unwrap_or_default();
            asked.lock().expect("free").push(text.clone());
            said(format!("<{text}>"))
        });
        let agent = |name: &str| Agent::builder(name, think.clone()).store(store.clone()).build().expect("builds");
        MapReduce::new(lines, agent("map"), agent("reduce"), 1).expect("limited")
    };
    let counted = Mortal::new(MemoryJournal::default(), u64::MAX, false);
    let whole = build(Arc::new(counted.clone()), Arc::default()).run(&scope(), "a\nb").await.expect("runs");
    assert_eq!(whole.text, "<<a>\n\n<b>>");
    for dies_at in 1..=counted.written() {
        for is_written in [false, true] {
            let (journal, asked) = (MemoryJournal::default(), Arc::default());
            let process = Mortal::new(journal.clone(), dies_at, is_written);
            let (mortal, scope) = (build(Arc::new(process.clone()), Arc::clone(&asked)), scope());
            tokio::select! {
                biased;
                () = process.died() => {}
                end = mortal.run(&scope, "a\nb") => panic!("it lived: {end:?}"),
            }
            tokio::time::sleep(Duration::from_millis(1)).await; // lets aborted tasks end
            let end = build(Arc::new(journal), Arc::clone(&asked)).run(&scope, "a\nb").await.expect("runs");
            assert_eq!(end, whole, "died at {dies_at}, written: {is_written}");
            let asked = asked.lock().expect("free");
            assert!(asked.len() <= 4, "only the call that was cut off is repeated: {asked:?}");
        }
    }
}

#[tokio::test]
async fn debaters_hear_each_other_and_the_judge_hears_all() {
    let bob = Turn::text("No.").expect(|seen| match &seen.texts()[..] {
        [text] if text == "Is it?\n\nada: Yes." => Ok(()),
        other => Err(format!("{other:?}")),
    });
    let judge = Turn::text("Maybe.").expect(|seen| match &seen.texts()[..] {
        [text] if text.ends_with("ada: Yes.\n\nbob: No.\n\nada: Yes!\n\nbob: No!") => Ok(()),
        other => Err(format!("{other:?}")),
    });
    let ada = scripted("ada", [Turn::text("Yes."), Turn::text("Yes!")]);
    let debate = Debate::new([ada, scripted("bob", [bob, Turn::text("No!")])], scripted("judge", [judge]), 2);
    let end = debate.expect("rounds").run(&scope(), "Is it?").await.expect("runs");
    assert_eq!((end.text.as_str(), end.parts.len()), ("Maybe.", 5));
}

#[tokio::test]
async fn an_optimiser_ends_with_the_last_draft_when_its_rounds_are_over() {
    let writer = scripted(
        "writer",
        [
            Turn::text("one"),
            Turn::text("two").expect(|seen| match seen.texts().last() {
                Some(text) if text.ends_with("Feedback:\nno") => Ok(()),
                other => Err(format!("{other:?}")),
            }),
        ],
    );
    let critic = scripted("critic", [Turn::text("no"), Turn::text("still no")]);
    let end = Optimiser::new(writer, critic, 2).expect("rounds").run(&scope(), "Write.").await.expect("runs");
    assert_eq!((end.text.as_str(), end.reason), ("two", PatternReason::Rounds));
}

#[tokio::test]
async fn a_group_chat_ends_after_its_rounds() {
    let ada = scripted("ada", [Turn::text("1"), Turn::text("2")]);
    let chat = GroupChat::new([ada], |_: &[Said]| Some("ada".to_owned()), 2).expect("rounds");
    let end = chat.run(&scope(), "Count.").await.expect("runs");
    assert_eq!((end.text.as_str(), end.reason), ("2", PatternReason::Rounds));
}

#[test]
fn a_pattern_that_cannot_end_or_begin_is_refused_when_it_is_built() {
    let agent = || scripted("a", []);
    let config = |refused: agent_core::Result<()>| assert_eq!(refused.expect_err("refused").kind(), ErrorKind::Config);
    config(Sequence::new([]).map(drop));
    config(Parallel::new([]).map(drop));
    config(Router::by(agent(), []).map(drop));
    config(MapReduce::new(lines, agent(), agent(), 0).map(drop));
    config(Debate::new([agent()], agent(), 0).map(drop));
    config(Debate::new([], agent(), 1).map(drop));
    config(Optimiser::new(agent(), agent(), 0).map(drop));
    config(GroupChat::new([agent()], |_: &[Said]| None, 0).map(drop));
}
