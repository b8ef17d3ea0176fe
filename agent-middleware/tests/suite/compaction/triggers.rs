//! Triggers of compaction, and their reports.

use std::{
    sync::{Arc, Mutex},
    time::{Duration, SystemTime},
};

use agent_core::{
    EventKind, History, Message, Middleware, ModelRequest, ModelResponse, Usage, event::CompactionMode,
    middleware::Middlewares,
};
use agent_middleware::{
    ContextCompaction,
    compaction::{Keep, SlidingWindow, Trigger, strategy_fn},
};
use serde_json::json;

use super::{
    common::{alone, call, model_stack, restarted_with},
    world::{World, long, texts, tokens},
};

#[tokio::test]
async fn by_default_the_limit_is_the_models_window() {
    let history = long(10, 400);
    assert!(tokens(&history) > 1_000);
    let world = World::new(ContextCompaction::new(), history.clone());
    world.step(u64::MAX).await.expect("answers");
    assert!(tokens(&world.kept()) < 700, "{}", tokens(&world.kept()));
    assert_eq!(world.sent()[0], world.kept(), "the same call already goes without what was removed");
    let [done] = &world.compactions()[..] else { panic!("one compaction") };
    assert_eq!((done.mode, done.tokens_before), (CompactionMode::Regular, tokens(&history)));
    assert_eq!((done.tokens_after, done.messages_after), (tokens(&world.kept()), world.kept().len()));
    assert_eq!(world.replaced().await, ["compact_auto"]);

    let mut unknown = World::new(ContextCompaction::new(), history.clone());
    unknown.window = None;
    unknown.step(u64::MAX).await.expect("answers");
    assert_eq!(unknown.kept(), history, "a window that nobody knows is never full");
}

#[tokio::test]
async fn room_for_the_answer_is_left_in_the_window() {
    let history = long(10, 400);
    let mut world = World::new(ContextCompaction::new(), history.clone());
    world.window = Some(tokens(&history) * 2);
    world.step(u64::MAX).await.expect("answers");
    assert_eq!(world.kept(), history, "half of the window is free");
    world.reserved = tokens(&history);
    world.step(u64::MAX).await.expect("answers");
    assert!(tokens(&world.kept()) < tokens(&history), "the answer takes the other half");
}

#[tokio::test]
async fn below_the_trigger_nothing_happens() {
    let world = World::new(ContextCompaction::new(), long(2, 400));
    world.step(u64::MAX).await.expect("answers");
    assert!(world.compactions().is_empty() && world.replaced().await.is_empty());
    assert_eq!(world.sent()[0], world.kept());
}

/// Returns an unsuccessful compaction, with the number of attempts.
fn useless() -> (ContextCompaction, Arc<Mutex<u32>>) {
    let tried = Arc::new(Mutex::new(0));
    let count = tried.clone();
    let useless = strategy_fn("useless", move |_, units| {
        *count.lock().expect("free") += 1;
        Ok(units)
    });
    let compaction = ContextCompaction::builder().strategy(useless).trigger(Trigger::Messages(1)).build();
    (compaction.expect("sound"), tried)
}

#[tokio::test]
async fn a_compaction_that_does_not_shrink_replaces_nothing_and_is_not_tried_again_at_once() {
    let (compaction, tried) = useless();
    let world = World::new(compaction, long(10, 400));
    let before = world.kept();
    for _ in 0..5 {
        world.step(u64::MAX).await.expect("answers");
    }
    assert_eq!((world.kept(), *tried.lock().expect("free")), (before, 1));
    let [failed] = &world.compactions()[..] else { panic!("one report") };
    assert_eq!((failed.failure.is_some(), failed.tokens_after), (true, failed.tokens_before));
    assert!(world.replaced().await.is_empty(), "and no entry says that something was replaced");
}

#[tokio::test]
async fn when_there_is_more_it_is_tried_again_whatever_was_learned_of_the_tokens_meanwhile() {
    let (compaction, tried) = useless();
    let world = World::new(compaction, long(10, 400));
    // A provider that counts a third of the estimate.
    let provider = model_stack(&world.list, |req: ModelRequest| async move {
        Ok(ModelResponse::new("ok").with_usage(Usage::new(tokens(&req.messages) / 3, 1)))
    });
    world.run.next_step();
    world.call(provider.clone()).await.expect("answers");
    world.run.push(Message::user("more ".repeat(200))).expect("fits");
    world.run.next_step();
    world.call(provider).await.expect("answers");
    assert_eq!(*tried.lock().expect("free"), 2);
}

#[tokio::test]
async fn a_strategy_that_fails_leaves_the_run_going() {
    let broken = strategy_fn("broken", |_, _| Err(agent_core::Error::tool("no")));
    let world = World::new(ContextCompaction::builder().strategy(broken).build().expect("sound"), long(10, 400));
    world.step(u64::MAX).await.expect("answers");
    assert!(world.compactions()[0].failure.as_ref().expect("a reason").contains("no"));
}

#[tokio::test]
async fn estimates_are_put_right_by_what_the_provider_reports() {
    let compaction = ContextCompaction::builder().strategy(SlidingWindow::new(1)).build().expect("sound");
    let world = World::new(compaction, long(4, 400)); // some 480 of 1,000 tokens
    let reports = |times: u64| {
        super::common::model_stack(&world.list, move |req: agent_core::ModelRequest| async move {
            let size = tokens(&req.messages) * times;
            Ok(ModelResponse::new("ok").with_usage(agent_core::Usage::new(size, 1)))
        })
    };
    for _ in 0..2 {
        world.run.next_step();
        world.call(reports(1)).await.expect("answers");
    }
    assert!(world.compactions().is_empty());
    for _ in 0..2 {
        world.run.next_step();
        world.call(reports(2)).await.expect("answers");
    }
    assert_eq!(
        world.compactions().len(),
        1,
        "the provider counts twice as many, and so does the second of these calls"
    );
}

#[tokio::test]
async fn after_a_gap_the_cache_is_cold_and_the_conversation_is_compacted() {
    let now = Arc::new(Mutex::new(SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000)));
    let compaction = || {
        let clock = now.clone();
        ContextCompaction::builder()
            .trigger(Trigger::gap(Duration::from_secs(300)))
            .strategy(SlidingWindow::new(1))
            .clock(move || *clock.lock().expect("free"))
            .build()
            .expect("sound")
    };
    let world = World::new(compaction(), long(4, 100));
    world.step(u64::MAX).await.expect("answers");
    *now.lock().expect("free") += Duration::from_secs(299);
    world.step(u64::MAX).await.expect("answers");
    assert!(world.compactions().is_empty());
    *now.lock().expect("free") += Duration::from_secs(360);
    // Another process continues: the time of the last response belongs to the session.
    let run = restarted_with(&world.run, world.kept(), |_| {});
    let later = World::of(alone(compaction()), run);
    later.step(u64::MAX).await.expect("answers");
    assert_eq!(later.compactions().len(), 1);
}

#[tokio::test]
async fn the_model_may_ask_for_it_once_and_say_what_matters() {
    let compaction = || {
        let focused = strategy_fn("focused", |task, mut units| {
            assert_eq!(task.focus(), Some("the names"));
            Ok(units.split_off(task.recent(Keep::Iterations(1), &units)))
        });
        ContextCompaction::builder().on_request().strategy(focused).build().expect("sound")
    };
    let world = World::new(compaction(), long(4, 10));
    world.step(u64::MAX).await.expect("answers");
    let tools = world.list[0].tools();
    let request = call(world.run.cx(), "c", "compact_context", json!({"focus": "the names"}));
    tools[0].call(request).await.expect("noted");
    // It survives a restart.
    let run = restarted_with(&world.run, world.kept(), |_| {});
    let world = World::of(alone(compaction()), run);
    for _ in 0..2 {
        world.step(u64::MAX).await.expect("answers");
    }
    assert_eq!(world.compactions().iter().map(|c| c.mode).collect::<Vec<_>>(), [CompactionMode::Requested]);
    assert_eq!(world.replaced().await, ["compact_focused"]);
}

#[tokio::test]
async fn what_was_added_for_one_call_is_there_after_the_compaction_and_not_kept() {
    let reminder = agent_middleware::before_model_fn("reminder", |_, req| {
        req.messages.push(Message::user("Remember the milk."))?;
        Ok(agent_core::Flow::Continue)
    });
    let compaction = ContextCompaction::builder().strategy(SlidingWindow::new(1)).build().expect("sound");
    let alone: [Arc<dyn Middleware>; 1] = [Arc::new(ContextCompaction::new())];
    let both: [Arc<dyn Middleware>; 2] = [Arc::new(reminder), Arc::new(compaction)];
    let lists: [Middlewares; 2] = [Arc::new(alone), Arc::new(both)];
    for list in lists {
        let reminded = list.len() > 1;
        let world = World::with(list, long(10, 400), |_| {});
        world.step(u64::MAX).await.expect("answers");
        assert_eq!(world.compactions().len(), 1);
        assert_eq!(texts(&world.sent()[0]).last().expect("said") == "Remember the milk.", reminded);
        assert!(!texts(&world.kept()).iter().any(|text| text.contains("milk")));
    }
}

#[tokio::test]
async fn a_call_that_was_rewritten_outside_is_left_as_it_is_and_the_next_one_is_small() {
    let redactor = agent_middleware::before_model_fn("redactor", |_, req| {
        let messages = req.messages.iter().map(|m| match m {
            Message::User(_) => Message::user("[redacted]"),
            other => other.clone(),
        });
        req.messages = History::from_messages(messages.collect::<Vec<_>>())?;
        Ok(agent_core::Flow::Continue)
    });
    let list: [Arc<dyn Middleware>; 2] = [Arc::new(redactor), Arc::new(ContextCompaction::new())];
    let world = World::with(Arc::new(list), long(10, 400), |_| {});
    for _ in 0..2 {
        world.step(u64::MAX).await.expect("answers");
    }
    let sent = world.sent();
    assert!(sent.iter().all(|sent| texts(sent)[0] == "[redacted]"), "what was taken out is never brought back");
    assert!(tokens(&sent[1]) < tokens(&sent[0]) / 2);
}

#[tokio::test]
async fn what_is_kept_is_replaced_before_the_model_is_called_and_so_it_is_done_after_a_crash() {
    let world = World::new(ContextCompaction::new(), long(10, 400));
    let dies = super::common::model_stack(&world.list, |_| async { Err(agent_core::Error::tool("the process died")) });
    world.run.next_step();
    world.call(dies).await.expect_err("dies");
    let run = restarted_with(&world.run, world.kept(), |_| {});
    let again = World::of(alone(ContextCompaction::new()), run);
    again.step(u64::MAX).await.expect("answers");
    assert!(again.compactions().is_empty(), "{:?}", again.compactions());
    let started = |world: &World| {
        let events = world.events.lock().expect("free");
        events.iter().filter(|kind| matches!(kind, EventKind::CompactionStarted { .. })).count()
    };
    assert_eq!((started(&world), started(&again)), (1, 0));
}
