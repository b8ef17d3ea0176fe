//! Every provider accepts every compacted conversation.

use agent_core::{
    ErrorKind, History, Message, ModelRequest, event::CompactionMode, model::ApproximateCounter, testing::detached_run,
};
use agent_llm::conformance::refusals;
use agent_middleware::{
    ContextCompaction,
    archive::MemoryArchive,
    compaction::{Task, Trigger, Unit},
};
use proptest::prelude::*;

use super::{
    common::block_on,
    wild::{CODECS, strategy, turns, wrong},
    world::World,
};

/// Returns the number of cases: a few hundred, or `COMPACTIONS` if set.
fn cases() -> u32 {
    std::env::var("COMPACTIONS").ok().and_then(|n| n.parse().ok()).unwrap_or(300)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases()))]

    #[test]
    fn no_compaction_leaves_what_a_provider_refuses(
        turns in turns(),
        strategies in prop::collection::vec(strategy(), 1..5),
        target in 0u64..400,
        emergency in any::<bool>(),
    ) {
        let run = detached_run(History::default());
        let mode = if emergency { CompactionMode::Emergency } else { CompactionMode::Regular };
        let history = History::from_messages(turns.concat()).expect("paired");
        let refused = wrong(run.cx(), &history);
        prop_assert!(refused.is_empty(), "before: {refused:?}\n{history:?}");
        let mut units = Unit::split(&history);
        for strategy in &strategies {
            let task = Task::new(run.cx(), &ApproximateCounter, target).with_mode(mode);
            units = block_on(strategy.compact(&task, units)).expect("compacts");
            let smaller = Unit::join(units.clone()).expect("paired");
            let refused = wrong(run.cx(), &smaller);
            prop_assert!(refused.is_empty(), "after {}: {refused:?}\n{smaller:?}", strategy.name());
            prop_assert_eq!(Unit::split(&smaller), units.clone());
        }
    }

    /// A conversation that grows while it is compacted repeatedly, and by the emergency path if the
    /// provider accepts less than expected.
    #[test]
    fn no_run_sends_or_keeps_what_a_provider_refuses(
        turns in turns(),
        strategy in strategy(),
        emergency in prop::option::of(strategy()),
        window in 60u64..600,
        fits in 20u64..600,
        often in any::<bool>(),
    ) {
        let compaction = ContextCompaction::builder().strategy(strategy).archive(MemoryArchive::new());
        let compaction = if often { compaction.trigger(Trigger::Messages(3)) } else { compaction };
        let compaction = match emergency {
            Some(strategy) => compaction.emergency(strategy),
            None => compaction,
        };
        let mut world = World::new(compaction.build().expect("sound"), History::default());
        world.window = Some(window);
        block_on(live(&world, turns, fits));
        let (cx, kept) = (world.run.cx(), world.kept());
        let mut last = History::default();
        for sent in world.sent().into_iter().chain([kept]) {
            // An extended conversation keeps its valid prefix.
            let refused = if sent.continues(&last) && !last.is_empty() { Vec::new() } else { wrong(cx, &sent) };
            prop_assert!(refused.is_empty(), "{refused:?}\n{sent:?}");
            last = sent;
        }
        for done in world.compactions().iter().filter(|done| done.failure.is_none()) {
            prop_assert!(done.tokens_after < done.tokens_before, "{done:?}");
        }
    }
}

/// Runs a step for each turn of the model.
async fn live(world: &World, turns: Vec<Vec<Message>>, fits: u64) {
    for turn in turns {
        let mut turn = turn.into_iter();
        let first = turn.next().expect("somebody speaks");
        if let Some(message) = first.as_assistant() {
            let refused = world.step(fits).await.err().map(|e| e.kind());
            assert!(refused.is_none_or(|kind| kind == ErrorKind::ContextOverflow), "{refused:?}");
            world.run.engine().log().record_accepted(world.run.cx().step(), message, None);
        }
        let results: Vec<_> = turn.filter_map(|message| message.as_tool().cloned()).collect();
        let pushed = match &first {
            Message::Assistant(message) if message.has_calls() => world.run.push_turn(message.clone(), &results),
            _ => world.run.push(first),
        };
        pushed.expect("fits");
    }
}

#[test]
fn the_judge_itself_sees_what_is_wrong() {
    let run = detached_run(History::default());
    let mut request = ModelRequest::new(run.cx().clone());
    request.messages = History::from_messages([Message::assistant("hi"), Message::user("hello")]).expect("paired");
    let refused: Vec<_> = CODECS.iter().map(|codec| refusals(&**codec, &request).len()).collect();
    assert_eq!(refused, [0, 0, 1, 0], "Anthropic's wire wants a user to speak first");
}
