//! Below its threshold a compaction costs a step the same, however long the conversation is.

use agent_core::{Message, Middleware, ModelRequest, ModelResponse, Usage, engine::RunDriver};
use agent_middleware::ContextCompaction;
use stats_alloc::Region;

use crate::{
    ALLOCATOR, alone,
    common::root,
    world::{long, turn},
};

/// The fewest allocations of a step: the test harness allocates too.
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
        let region = Region::new(ALLOCATOR);
        compaction.before_model(cx, &mut req).await.expect("goes on");
        compaction.after_model(cx, &mut response).await.expect("goes on");
        fewest = fewest.min(region.change().allocations);
    }
    fewest
}

#[tokio::test]
#[expect(clippy::await_holding_lock, reason = "one test at a time counts")]
async fn a_step_allocates_the_same_in_a_long_conversation_as_in_a_short_one() {
    let _counting = alone();
    let mut counts = Vec::new();
    for n in [10, 2_000] {
        let (run, compaction) = (root(|parts| parts.log.seed(long(n, 40))), ContextCompaction::new());
        counts.push(allocations(&run, &compaction).await);
    }
    assert_eq!(counts[0], counts[1], "{counts:?}");
    assert!(counts[0] <= 4, "{counts:?}");
}
