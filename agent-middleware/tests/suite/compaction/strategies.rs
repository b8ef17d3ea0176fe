//! Effects of each strategy on a conversation.

use agent_core::{AssistantMessage, Block, History, Media, Message, Part, UserMessage, event::CompactionMode};
use agent_middleware::{
    ContextCompaction,
    compaction::{
        CacheAware, ClampMessages, ClearToolResults, DedupReads, Keep, OffloadToolResults, Pins, SlidingWindow, Task,
        Tiers, strategy_fn,
    },
};

use super::world::{compacted, compacted_in, long, texts, tokens, turn};
use crate::common::root;

#[tokio::test]
async fn old_results_are_replaced_and_nothing_else_changes() {
    let before = long(5, 400);
    let after = compacted(&ClearToolResults::new(), &before, |task| task).await;
    assert_eq!(after.len(), before.len());
    for (at, (old, new)) in before.iter().zip(after.iter()).enumerate() {
        match (old.as_tool(), new.as_tool()) {
            (Some(old), Some(new)) if at < 5 => {
                assert_eq!(new.parts(), [Part::text("Tool call result has been compacted.")]);
                assert_eq!((old.call_id(), old.name(), old.is_error()), (new.call_id(), new.name(), new.is_error()));
            }
            _ => assert_eq!(old, new, "message {at}"),
        }
    }
}

#[tokio::test]
async fn only_the_listed_tools_are_cleared_and_never_the_excluded() {
    let turns = [turn("a", "look", &"x".repeat(400)), turn("b", "plan", &"y".repeat(400)), turn("c", "f", "z")];
    let before = History::from_messages(turns.into_iter().flatten()).expect("paired");
    let cleared = async |strategy: ClearToolResults| {
        let after = compacted(&strategy.keep(Keep::Iterations(1)), &before, |task| task).await;
        before.iter().zip(after.iter()).map(|(old, new)| old != new).collect::<Vec<_>>()
    };
    assert_eq!(cleared(ClearToolResults::new().only(["look"])).await, [false, true, false, false, false, false]);
    assert_eq!(cleared(ClearToolResults::new().except(["look"])).await, [false, false, false, true, false, false]);
    assert_eq!(cleared(ClearToolResults::new().only(Vec::<String>::new())).await, [false; 6]);
    assert_eq!(cleared(ClearToolResults::new().at_least(10_000)).await, [false; 6], "too little would be saved");
}

#[tokio::test]
async fn a_window_keeps_the_task_and_the_newest_iterations_and_counts_what_is_gone() {
    let (run, before) = (root(|_| {}), long(6, 40));
    let after = compacted_in(run.cx(), &SlidingWindow::new(2), &before, |task| task).await;
    let said = texts(&after);
    assert_eq!((said.len(), said[0].as_str()), (6, "Do it."));
    assert!(said[1].contains("messages=\"8\""), "{said:?}");
    assert!(after.iter().skip(2).eq(before.iter().skip(9)));

    let again = compacted_in(run.cx(), &SlidingWindow::new(1), &after, |task| task).await;
    let said = texts(&again);
    assert!(said.len() == 4 && said[1].contains("messages=\"10\""), "one note for both: {said:?}");
    let same = compacted_in(run.cx(), &SlidingWindow::new(1), &again, |task| task).await;
    assert_eq!(texts(&same), said, "when only its own note would go, nothing does");
}

#[tokio::test]
async fn a_turn_with_several_calls_is_never_divided() {
    let calls = AssistantMessage::new((0..3).map(|n| Block::tool_call(format!("p{n}"), "look", "{}")).collect());
    let results = (0..3).map(|n| Message::Tool(agent_core::ToolMessage::text(format!("p{n}"), "look", "r", false)));
    let messages = [Message::user("go"), Message::Assistant(calls)].into_iter().chain(results);
    let before = History::from_messages(messages.chain(turn("z", "look", "r"))).expect("paired");
    for keep in [Keep::Messages(1), Keep::Messages(3), Keep::Messages(4), Keep::Tokens(30), Keep::Iterations(1)] {
        let after = compacted(&SlidingWindow::keeping(keep), &before, |task| task).await;
        let calls: Vec<_> = after.iter().filter(|m| m.as_tool().is_some()).collect();
        assert!([1, 4].contains(&calls.len()), "{keep:?} keeps {}", calls.len());
    }
}

#[tokio::test]
async fn system_messages_and_what_is_asked_now_stay_unless_they_are_not_pinned() {
    let start = [Message::system("Rules."), Message::user("first"), Message::user("now")];
    let before =
        History::from_messages(start.into_iter().chain((0..4).flat_map(|n| turn(&n.to_string(), "look", "result"))))
            .expect("paired");
    let after = texts(&compacted(&SlidingWindow::new(1), &before, |task| task).await);
    assert_eq!(after[..3], ["Rules.", "first", "now"]);
    fn unpinned(task: Task<'_>) -> Task<'_> {
        let mut pins = Pins::default();
        (pins.system, pins.first_user, pins.last_user) = (false, false, false);
        task.with_pins(pins)
    }
    let after = texts(&compacted(&SlidingWindow::new(1), &before, unpinned).await);
    assert!(after[0].contains("messages=\"9\"") && after.len() == 3, "{after:?}");
}

#[tokio::test]
async fn equal_reads_are_kept_once_and_changed_ones_always() {
    let read = |id: &str, result: &str| {
        let call = AssistantMessage::new(vec![Block::tool_call(id, "read", r#"{"path":"a"}"#)]);
        [Message::Assistant(call), Message::Tool(agent_core::ToolMessage::text(id, "read", result, false))]
    };
    let (old, new) = ("old ".repeat(50), "new ".repeat(50));
    let turns = [read("1", &old), read("2", &old), read("3", &new), read("4", &new), read("5", &new)];
    let before = History::from_messages(turns.into_iter().flatten()).expect("paired");
    let after = compacted(&DedupReads::new(), &before, |task| task).await;
    let long = |r: &&agent_core::ToolMessage| r.parts()[0].as_text().is_some_and(|text| text.len() > 100);
    let whole: Vec<_> = after.iter().filter_map(Message::as_tool).filter(long).collect();
    assert_eq!(whole.iter().map(|r| r.call_id()).collect::<Vec<_>>(), ["2", "5"]);
    assert_eq!(compacted(&DedupReads::new().only(["other"]), &before, |task| task).await, before);
}

#[tokio::test]
async fn oversized_texts_lose_their_middle_and_images_stay() {
    let image = Part::Image(Media::url("https://example.org/cat.png"));
    let said = UserMessage::new(vec![Part::text("x".repeat(10_000)), image.clone()]);
    let messages = [Message::User(said)].into_iter().chain(turn("a", "look", &"y".repeat(10_000)));
    let before = History::from_messages(messages).expect("paired");
    let after = compacted(&ClampMessages::new().to(100, 50), &before, |task| task).await;
    assert!(texts(&after).iter().all(|text| text.len() < 250) && tokens(&after) < 250, "{:?}", texts(&after));
    let Some(Message::User(user)) = after.get(0) else { panic!("a user's message") };
    assert_eq!(user.parts()[1], image);
}

#[tokio::test]
async fn an_emergency_keeps_one_iteration_whatever_the_strategy_keeps() {
    let before = long(8, 100);
    let after = compacted(&SlidingWindow::new(6), &before, |task| task.with_mode(CompactionMode::Emergency)).await;
    assert_eq!(after.len(), 4, "the task, the note, a call and its result");
}

#[tokio::test]
async fn tiers_stop_as_soon_as_the_target_is_reached() {
    let before = long(6, 400);
    let tiers = Tiers::new().then(ClearToolResults::new()).then(SlidingWindow::new(1));
    let gently = compacted(&tiers, &before, |task| task.with_target(600)).await;
    assert_eq!(gently.len(), before.len(), "clearing was enough");
    assert_eq!(compacted(&tiers, &before, |task| task).await.len(), 4);
}

#[tokio::test]
async fn the_planner_leaves_alone_what_does_not_pay_and_takes_what_does() {
    let before = long(12, 400);
    let planner = |steps| CacheAware::new().candidate(SlidingWindow::new(3)).steps(steps);
    let waits = compacted(&planner(1), &before, |task| task.with_most(100_000)).await;
    assert_eq!(waits, before, "one more step does not pay for a rewrite");
    let pays = compacted(&planner(200), &before, |task| task.with_most(2_000)).await;
    assert!(tokens(&pays) < tokens(&before));
    let must = compacted(&planner(1), &before, |task| task.with_most(1)).await;
    assert!(tokens(&must) < tokens(&before), "what does not fit is compacted at any price");
}

#[test]
fn what_needs_an_archive_or_a_model_says_so_when_it_is_built() {
    let e = ContextCompaction::builder().strategy(OffloadToolResults::new()).build().expect_err("no archive");
    assert!(e.message().contains("offload_tool_results") && e.message().contains(".archive(..)"), "{e}");
    let config = serde_json::from_str(r#"{"strategy": {"tiers": ["cache_aware", {"summary": {}}]}}"#).expect("parses");
    let e = ContextCompaction::from_config(config).expect_err("no model");
    assert!(e.message().contains("needs a model"), "{e}");
    for wrong in [r#"{"target": 1.5}"#, r#"{"trigger": {"fraction": 0}}"#, r#"{"max_tokens": 0}"#] {
        let config = serde_json::from_str(wrong).expect("parses");
        assert!(ContextCompaction::from_config(config).is_err(), "{wrong}");
    }
    assert!(serde_json::from_str::<agent_middleware::compaction::CompactionConfig>(r#"{"window": 5}"#).is_err());
}

#[test]
fn every_strategy_can_be_configured() {
    let all = r#"{"strategy": {"tiers": [
        {"dedup_reads": {"tools": ["read"]}}, {"clear_tool_results": {"keep": {"iterations": 5}, "except": ["plan"]}},
        {"clamp_messages": {"head": 10, "tail": 10}}, {"sliding_window": {"window_size": 2}}, "cache_aware"]},
        "trigger": {"any": [{"tokens": 5}, {"all": [{"messages": 3}, {"gap": 300}]}, {"fraction": 0.5}, "never"]}}"#;
    let config: agent_middleware::compaction::CompactionConfig = serde_json::from_str(all).expect("parses");
    let again: agent_middleware::compaction::CompactionConfig =
        serde_json::from_str(&serde_json::to_string(&config).expect("serialises")).expect("parses");
    assert_eq!(config, again);
    assert!(ContextCompaction::from_config(config).is_ok());
}

#[tokio::test]
async fn a_function_is_a_strategy() {
    let newest = strategy_fn("newest", |_, mut units| Ok(units.split_off(units.len() - 1)));
    assert_eq!(compacted(&newest, &long(3, 10), |task| task).await.len(), 2);
}
