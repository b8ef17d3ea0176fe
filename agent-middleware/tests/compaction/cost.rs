//! Below its threshold, a compaction costs a step the same, however long the conversation is.

use std::alloc::System;

use agent_core::{Message, Middleware, ModelRequest, ModelResponse, Usage, engine::RunDriver};
use agent_middleware::ContextCompaction;
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

use crate::{
    common::root,
    world::{long, turn},
};

#[global_allocator]
static ALLOCATIONS: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Returns the minimum number of allocations of a step: other tests allocate concurrently.
async fn allocations(run: &RunDriver, compaction: &ContextCompaction) -> usize {
    let mut fewest = usize::MAX;
    for _ in 0..200 {
        run.next_step();
        let [call, result] = turn("c", "look", "result");
        let (Message::Assistant(call), Message::Tool(result)) = (call, result) else { panic!("a turn") };
        run.push_turn(call, &[result]).expect("paired");
        let cx = run.cx();
        let mut req = ModelRequest::new(cx.clone());
        let mut response = ModelResponse::new("ok").with_usage(Usage::new(10, 1));
        let region = Region::new(ALLOCATIONS);
        compaction.before_model(cx, &mut req).await.expect("goes on");
        compaction.after_model(cx, &mut response).await.expect("goes on");
        fewest = fewest.min(region.change().allocations);
    }
    fewest
}

#[tokio::test]
async fn a_step_allocates_the_same_in_a_long_conversation_as_in_a_short_one() {
    let mut counts = Vec::new();
    for n in [10, 2_000] {
        let (run, compaction) = (root(|parts| parts.log.seed(long(n, 40))), ContextCompaction::new());
        counts.push(allocations(&run, &compaction).await);
    }
    assert_eq!(counts[0], counts[1], "{counts:?}");
    assert!(counts[0] <= 4, "{counts:?}");
}
