//! The provider refuses the prompt as too long.

use std::sync::{Arc, Mutex};

use agent_core::{
    AssistantMessage, Chunk, Error, ErrorKind, EventKind, ModelRequest, ModelResponse, event::CompactionMode,
};
use agent_middleware::{
    ContextCompaction,
    compaction::{SlidingWindow, Trigger},
};

use super::{
    common::model_stack,
    world::{World, long, overflow, tokens},
};

fn never() -> ContextCompaction {
    ContextCompaction::builder().trigger(Trigger::Never).build().expect("sound")
}

#[tokio::test]
async fn a_refused_prompt_is_compacted_and_sent_exactly_once_more() {
    let world = World::new(never(), long(10, 400));
    world.step(500).await.expect("answers the second time");
    let sent = world.sent();
    assert_eq!((sent.len(), &sent[1]), (2, &world.kept()), "what is kept is what fitted");
    let [done] = &world.compactions()[..] else { panic!("one compaction") };
    assert_eq!((done.mode, done.failure.as_ref()), (CompactionMode::Emergency, None));
    assert_eq!(world.replaced().await, ["compact_emergency"]);
    world.step(500).await.expect("answers at once");
    assert_eq!(world.sent().len(), 3);
}

#[tokio::test]
async fn what_is_still_too_long_is_the_providers_error() {
    let world = World::new(never(), long(10, 400));
    let e = world.step(1).await.expect_err("too long");
    assert_eq!((e.kind(), world.sent().len()), (ErrorKind::ContextOverflow, 2));
    let events = world.events.lock().expect("free");
    assert!(events.iter().any(|kind| matches!(kind, EventKind::Warning { message } if message.contains("even after"))));
}

#[tokio::test]
async fn other_errors_are_none_of_its_business() {
    let world = World::new(never(), long(10, 400));
    let fails = model_stack(&world.list, |_| async { Err(Error::new(ErrorKind::Overloaded, "busy")) });
    world.run.next_step();
    assert_eq!(world.call(fails).await.expect_err("busy").kind(), ErrorKind::Overloaded);
    assert!(world.compactions().is_empty());
}

#[tokio::test]
async fn it_can_be_turned_off() {
    let off = ContextCompaction::builder().trigger(Trigger::Never).without_emergency().build().expect("sound");
    let world = World::new(off, long(10, 400));
    assert_eq!(world.step(500).await.expect_err("too long").kind(), ErrorKind::ContextOverflow);
    assert_eq!(world.sent().len(), 1);
}

#[tokio::test]
async fn an_oversized_last_message_loses_its_middle() {
    let world = World::new(never(), long(1, 40_000));
    world.step(600).await.expect("answers the second time");
    assert_eq!(world.kept().len(), 3);
}

#[tokio::test]
async fn readers_of_chunks_drop_what_the_refused_call_had_said() {
    let world = World::new(never(), long(10, 400));
    let chunks = Arc::new(Mutex::new(Vec::new()));
    let model = model_stack(&world.list, |req: ModelRequest| async move {
        let message = req.sink.collect(AssistantMessage::from("half"))?;
        match tokens(&req.messages) > 500 {
            true => Err(overflow()),
            false => Ok(ModelResponse::new(message)),
        }
    });
    world.run.next_step();
    let mut req = ModelRequest::new(world.run.cx().clone());
    let seen = chunks.clone();
    req.sink = req.sink.with_observer(move |chunk: &Chunk| seen.lock().expect("free").push(chunk.clone()));
    tower::ServiceExt::oneshot(model, req).await.expect("answers");
    let chunks = chunks.lock().expect("free");
    assert_eq!(chunks.iter().filter(|chunk| **chunk == Chunk::Restart).count(), 1, "{chunks:?}");
}

/// Retries every call twice, whatever the error.
fn stubborn() -> impl agent_core::Middleware {
    struct Stubborn;

    #[agent_core::async_trait]
    impl agent_core::Middleware for Stubborn {
        async fn wrap_model_call(
            &self,
            req: ModelRequest,
            next: agent_core::ModelNext<'_>,
        ) -> agent_core::Result<ModelResponse> {
            for _ in 0..2 {
                if let Ok(answered) = next.run(req.clone()).await {
                    return Ok(answered);
                }
            }
            next.run(req).await
        }
    }
    Stubborn
}

#[tokio::test]
async fn a_retry_on_either_side_never_compacts_twice() {
    for outside in [true, false] {
        let compaction = ContextCompaction::builder().strategy(SlidingWindow::new(2)).build().expect("sound");
        let (compaction, retry): (Arc<dyn agent_core::Middleware>, Arc<dyn agent_core::Middleware>) =
            (Arc::new(compaction), Arc::new(stubborn()));
        let list = if outside { [retry, compaction] } else { [compaction, retry] };
        let world = World::with(Arc::new(list), long(10, 400), |_| {});
        let attempts = Arc::new(Mutex::new(Vec::new()));
        let seen = attempts.clone();
        let flaky = model_stack(&world.list, move |req: ModelRequest| {
            let seen = seen.clone();
            async move {
                let mut seen = seen.lock().expect("free");
                seen.push(tokens(&req.messages));
                match seen.len() {
                    1 => Err(Error::new(ErrorKind::Overloaded, "busy")),
                    2 => Err(overflow()),
                    3 if outside => Err(Error::new(ErrorKind::Overloaded, "busy again")),
                    _ => Ok(ModelResponse::new("ok")),
                }
            }
        });
        world.run.next_step();
        world.call(flaky).await.expect("answers");
        let modes: Vec<_> = world.compactions().iter().map(|c| c.mode).collect();
        let expected: &[_] = if outside {
            &[CompactionMode::Regular, CompactionMode::Emergency]
        } else {
            &[CompactionMode::Regular] // the inner retry continued by itself
        };
        assert_eq!(modes, expected, "outside: {outside}");
        let sizes = attempts.lock().expect("free");
        assert!(sizes.is_sorted_by(|a, b| a >= b), "an attempt came back with what was refused: {sizes:?}");
    }
}
