//! What runs are told and answered while they are with a worker, and while nobody has them.

use std::{collections::BTreeMap, time::Duration};

use agent_core::{
    Ask, Message, ToolOutput, ToolRequest,
    dispatch::{Dispatch, Signal, StandingKind},
    journal::EntryBody,
    testing::Turn,
};
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::{
    Shared,
    common::{FnTool, tool},
    job,
};

const SLOW: Duration = Duration::from_secs(10);

fn slow() -> Turn {
    Turn::text("hello").delay(SLOW)
}

/// A tool that asks, and gives the answer.
fn asks(ends_after: Option<Duration>) -> FnTool {
    tool("asks", move |req: ToolRequest| {
        let ask = Ask::new("input", json!("really?"));
        let ask = match ends_after {
            Some(time) => ask.within(time).or(json!("nobody")),
            None => ask,
        };
        let answer = req.ask_with(ask);
        async move { Ok(ToolOutput::text(answer?.value.to_string())) }
    })
}

fn says(expected: &str) -> Turn {
    let expected = expected.to_owned();
    Turn::text("thanks").expect(move |seen| {
        let said = format!("{:?}", seen.messages);
        if said.contains(&expected) { Ok(()) } else { Err(format!("no '{expected}' in {said}")) }
    })
}

#[tokio::test(start_paused = true)]
async fn a_run_is_cancelled_from_any_process() {
    let shared = Shared::default();
    let _process = shared.process(shared.agent([slow()]));
    let run = shared.send(job("r")).await;
    shared.comes_to(&run, StandingKind::Running).await;
    sleep(Duration::from_secs(1)).await;
    assert!(shared.queue.signal(&run, Signal::Cancel).await.expect("works"));
    shared.comes_to(&run, StandingKind::Done).await;
    assert_eq!(shared.count("s", |body| matches!(body, EntryBody::RunEnded { .. })).await, 1);
}

#[tokio::test(start_paused = true)]
async fn a_run_is_paused_holds_no_worker_and_goes_on_when_it_is_told() {
    let shared = Shared::default();
    let call = Turn::call("1", "asks", json!({})).delay(SLOW);
    let process = shared.process(shared.agent([call]).tool(asks(None)));
    let run = shared.send(job("r")).await;
    sleep(Duration::from_secs(1)).await;
    assert!(shared.queue.signal(&run, Signal::Pause).await.expect("works"));
    shared.comes_to(&run, StandingKind::AtRest).await;
    process.abort();
    shared.queue.answer(&run, BTreeMap::new()).await.expect("goes on");
    let _other = shared.process(shared.agent([]).tool(asks(None)));
    shared.comes_to(&run, StandingKind::AtRest).await;
    assert_eq!(shared.count("s", |body| matches!(body, EntryBody::Asked { .. })).await, 1, "it came to its question");
}

#[tokio::test(start_paused = true)]
async fn a_run_is_steered_from_any_process_and_hears_it_once() {
    let shared = Shared::default();
    let turns = [Turn::call("1", "asks", json!({})).delay(SLOW), says("and be brief")];
    let _process = shared.process(shared.agent(turns).tool(tool("asks", |_| async { Ok(ToolOutput::text("x")) })));
    let run = shared.send(job("r")).await;
    sleep(Duration::from_secs(1)).await;
    assert!(shared.queue.signal(&run, Signal::Steer(Message::user("and be brief"))).await.expect("works"));
    shared.comes_to(&run, StandingKind::Done).await;
    assert_eq!(shared.count("s", |body| matches!(body, EntryBody::Steered { .. })).await, 1);
}

#[tokio::test(start_paused = true)]
async fn answers_come_from_any_process_and_wrong_ones_leave_the_run_where_it_is() {
    let shared = Shared::default();
    let turns = [Turn::call("1", "asks", json!({})), says("yes")];
    let _process = shared.process(shared.agent(turns).tool(asks(None)));
    let run = shared.send(job("r")).await;
    shared.comes_to(&run, StandingKind::AtRest).await;
    let answer = async |id: &str, value: Value| {
        shared.queue.answer(&run, BTreeMap::from([(id.to_owned(), value.into())])).await.expect("it waits");
    };
    answer("nobody asked", json!("yes")).await;
    sleep(Duration::from_secs(5)).await;
    shared.comes_to(&run, StandingKind::AtRest).await;
    answer("1/input", json!("yes")).await;
    shared.comes_to(&run, StandingKind::Done).await;
}

#[tokio::test]
async fn a_question_that_ends_lets_its_run_go_on_by_itself() {
    let shared = Shared::default();
    let turns = [Turn::call("1", "asks", json!({})), says("nobody")];
    // The clock of questions is the world's.
    let _process = shared.process(shared.agent(turns).tool(asks(Some(Duration::from_millis(50)))));
    let run = shared.send(job("r")).await;
    shared.comes_to(&run, StandingKind::Done).await;
}
