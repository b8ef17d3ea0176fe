//! Signals and answers to runs that a worker holds, and to runs that no worker holds.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use agent_core::{
    Ask, Error, ErrorKind, Message, Retry, RunRequest, ToolOutput, ToolRequest,
    journal::{EntryBody, RunStatus},
    run::RunInput,
    testing::Turn,
};
use agent_dispatch::{Dispatch, JobStatusKind, Signal};
use serde_json::{Value, json};
use tokio::time::sleep;

use super::{Shared, job, troubled::Troubled};
use crate::common::{FnTool, Log, hangs, tool};

const SLOW: Duration = Duration::from_secs(10);

fn slow() -> Turn {
    Turn::text("hello").delay(SLOW)
}

/// Returns a tool that asks, and returns the answer.
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
    shared.comes_to(&run, JobStatusKind::Running).await;
    sleep(Duration::from_secs(1)).await;
    assert!(shared.queue.signal(&run, Signal::Cancel).await.expect("works"));
    shared.comes_to(&run, JobStatusKind::Done).await;
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
    shared.comes_to(&run, JobStatusKind::AtRest).await;
    process.abort();
    shared.queue.answer(&run, BTreeMap::new()).await.expect("goes on");
    let _other = shared.process(shared.agent([]).tool(asks(None)));
    shared.comes_to(&run, JobStatusKind::AtRest).await;
    assert_eq!(shared.count("s", |body| matches!(body, EntryBody::Asked { .. })).await, 1, "it came to its question");
}

/// The question expired after the worker had checked the answer, and before the run did.
#[tokio::test(start_paused = true)]
async fn an_answer_that_the_run_refuses_as_it_goes_on_takes_none_of_the_others_with_it() {
    let shared = Shared::default();
    let both = Turn::call("1", "asks", json!({})).and_call("2", "asks", json!({}));
    let agent = |turns: Vec<Turn>| shared.agent(turns).tool(asks(None));
    let process = shared.process(agent(vec![both]));
    let run = shared.send(job("r")).await;
    shared.comes_to(&run, JobStatusKind::AtRest).await;
    process.abort();
    let stands = agent(Vec::new()).build().expect("builds").unfinished("s").await.expect("reads").expect("it waits");
    let [first, second] = &*stands.questions else { panic!("{:?}", stands.questions) };
    let answers = [(first.id.clone(), json!("yes").into()), (second.id.clone(), json!("no").into())];
    shared.queue.answer(&run, answers.into()).await.expect("it waits");
    let (ended, looked) = (second.id.clone(), AtomicBool::new(false));
    let worker = shared.worker(agent(vec![says("yes")])).shape(move |_, mut request| {
        if let RunInput::Recover { answers } = &mut request.input
            && let Some(answer) = answers.get_mut(&ended).filter(|_| !looked.swap(true, Ordering::SeqCst))
        {
            answer.digest = "of a question that is no more".into();
        }
        Ok(request)
    });
    let _heir = shared.start(worker);
    shared.comes_to(&run, JobStatusKind::Done).await;
}

#[tokio::test(start_paused = true)]
async fn a_run_is_steered_from_any_process_and_hears_it_once() {
    let shared = Shared::default();
    let turns = [Turn::call("1", "asks", json!({})).delay(SLOW), says("and be brief")];
    let _process = shared.process(shared.agent(turns).tool(tool("asks", |_| async { Ok(ToolOutput::text("x")) })));
    let run = shared.send(job("r")).await;
    sleep(Duration::from_secs(1)).await;
    assert!(shared.queue.signal(&run, Signal::Steer(Message::user("and be brief"))).await.expect("works"));
    shared.comes_to(&run, JobStatusKind::Done).await;
    assert_eq!(shared.count("s", |body| matches!(body, EntryBody::Steered { .. })).await, 1);
}

#[tokio::test(start_paused = true)]
async fn answers_come_from_any_process_and_wrong_ones_leave_the_run_where_it_is() {
    let shared = Shared::default();
    let turns = [Turn::call("1", "asks", json!({})), says("yes")];
    let _process = shared.process(shared.agent(turns).tool(asks(None)));
    let run = shared.send(job("r")).await;
    shared.comes_to(&run, JobStatusKind::AtRest).await;
    let answer = async |id: &str, value: Value| {
        shared.queue.answer(&run, BTreeMap::from([(id.to_owned(), value.into())])).await.expect("it waits");
    };
    answer("nobody asked", json!("yes")).await;
    sleep(Duration::from_secs(5)).await;
    shared.comes_to(&run, JobStatusKind::AtRest).await;
    answer("1/input", json!("yes")).await;
    shared.comes_to(&run, JobStatusKind::Done).await;
}

#[tokio::test]
async fn a_question_that_ends_lets_its_run_go_on_by_itself() {
    let shared = Shared::default();
    let turns = [Turn::call("1", "asks", json!({})), says("nobody")];
    // Questions expire by the system clock.
    let _process = shared.process(shared.agent(turns).tool(asks(Some(Duration::from_millis(50)))));
    let run = shared.send(job("r")).await;
    shared.comes_to(&run, JobStatusKind::Done).await;
}

fn cancelled(body: &EntryBody) -> bool {
    matches!(body, EntryBody::RunEnded { status: RunStatus::Cancelled, .. })
}

fn brief() -> Signal {
    Signal::Steer(Message::user("and be brief"))
}

#[tokio::test(start_paused = true)]
async fn a_run_that_waits_is_cancelled_and_does_not_go_on() {
    let shared = Shared::default();
    let turns = [Turn::call("1", "asks", json!({})), Turn::text("gone on")];
    let _process = shared.process(shared.agent(turns).tool(asks(None)));
    let run = shared.send(job("r")).await;
    shared.comes_to(&run, JobStatusKind::AtRest).await;
    assert!(shared.queue.signal(&run, Signal::Cancel).await.expect("works"));
    shared.comes_to(&run, JobStatusKind::Done).await;
    assert_eq!(shared.count("s", cancelled).await, 1);
    assert_eq!(shared.count("s", |body| matches!(body, EntryBody::RunEnded { .. })).await, 2, "it rested before");
}

#[tokio::test(start_paused = true)]
async fn a_run_that_is_cancelled_as_it_comes_to_its_question_ends() {
    let shared = Shared::default();
    let (queue, call) = (Troubled::new(&shared.queue), Turn::call("1", "asks", json!({})).delay(SLOW));
    queue.is_silent.store(true, Ordering::SeqCst);
    let _process = shared.start(shared.worker_of(Arc::new(queue.clone()), shared.agent([call]).tool(asks(None))));
    let run = shared.send(job("r")).await;
    sleep(Duration::from_secs(1)).await;
    assert!(shared.queue.signal(&run, Signal::Cancel).await.expect("works"));
    shared.comes_to(&run, JobStatusKind::Done).await;
    assert_eq!(shared.count("s", |body| matches!(body, EntryBody::Asked { .. })).await, 1, "it came to its question");
    assert_eq!((shared.count("s", cancelled).await, queue.claims.load(Ordering::SeqCst)), (1, 2));
}

#[tokio::test(start_paused = true)]
async fn a_message_that_comes_as_the_run_comes_to_its_question_waits_with_it() {
    let shared = Shared::default();
    let queue = Troubled::new(&shared.queue);
    queue.is_silent.store(true, Ordering::SeqCst);
    let turns = [Turn::call("1", "asks", json!({})).delay(SLOW), says("and be brief")];
    let _process = shared.start(shared.worker_of(Arc::new(queue.clone()), shared.agent(turns).tool(asks(None))));
    let run = shared.send(job("r")).await;
    sleep(Duration::from_secs(1)).await;
    assert!(shared.queue.signal(&run, brief()).await.expect("works"));
    shared.comes_to(&run, JobStatusKind::AtRest).await;
    sleep(Duration::from_secs(60)).await;
    assert_eq!(queue.claims.load(Ordering::SeqCst), 1, "it rests");
    shared.queue.answer(&run, BTreeMap::from([("1/input".to_owned(), json!("yes").into())])).await.expect("it waits");
    shared.comes_to(&run, JobStatusKind::Done).await;
}

#[tokio::test(start_paused = true)]
async fn a_run_that_is_paused_and_then_fails_for_the_moment_is_paused_when_it_is_tried_again() {
    let shared = Shared::default();
    let fails = Turn::error(|| Error::new(ErrorKind::Overloaded, "no capacity").with_retry(Retry::Temporary(None)));
    let _process = shared.process(shared.agent([fails.delay(SLOW), Turn::text("gone on")]));
    let run = shared.send(job("r")).await;
    sleep(Duration::from_secs(1)).await;
    assert!(shared.queue.signal(&run, Signal::Pause).await.expect("works"));
    shared.comes_to(&run, JobStatusKind::AtRest).await;
    let paused = |body: &EntryBody| matches!(body, EntryBody::RunEnded { status: RunStatus::Paused, .. });
    assert_eq!(shared.count("s", paused).await, 1);
}

#[tokio::test(start_paused = true)]
async fn what_a_run_is_told_while_its_session_is_in_use_is_told_when_it_is_free() {
    let deeds = Log::default();
    for signal in [Signal::Cancel, brief()] {
        let shared = Shared::default();
        let elsewhere = shared.agent([Turn::call("1", "hangs", json!({}))]).tool(hangs("hangs", &deeds).repeatable());
        let outside = elsewhere.build().expect("builds").start(RunRequest::user("go").session("s"));
        let outside = tokio::spawn(outside);
        sleep(Duration::from_secs(1)).await;
        let _process = shared.process(shared.agent([says("and be brief")]).tool(hangs("hangs", &deeds).repeatable()));
        let run = shared.send(job("r")).await;
        sleep(Duration::from_secs(5)).await;
        assert!(shared.queue.signal(&run, signal.clone()).await.expect("works"));
        sleep(Duration::from_secs(60)).await;
        outside.abort();
        shared.comes_to(&run, JobStatusKind::Done).await;
        let expected = usize::from(signal == Signal::Cancel);
        let ended = |body: &EntryBody| cancelled(body);
        assert_eq!(shared.count("s", ended).await, expected, "{signal:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_question_that_ends_later_by_the_workers_clock_than_by_the_queues_keeps_nobody_busy() {
    let shared = Shared::default();
    let queue = Troubled::new(&shared.queue);
    let call = Turn::call("1", "asks", json!({}));
    // Questions expire by the system clock, and the queue's clock is ahead of it.
    let hour = Duration::from_secs(3_600);
    let agent = shared.agent([call]).tool(asks(Some(hour)));
    let _process = shared.start(shared.worker_of(Arc::new(queue.clone()), agent));
    let run = shared.send(job("r")).await;
    shared.comes_to(&run, JobStatusKind::AtRest).await;
    sleep(hour * 3 + hour / 2).await;
    assert_eq!(queue.claims.load(Ordering::SeqCst), 4, "once an hour");
    shared.comes_to(&run, JobStatusKind::AtRest).await;
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_is_refused_takes_no_other_one_with_it() {
    let shared = Shared::default();
    let of_type = |req: ToolRequest| {
        let answer = req.ask_with(Ask::new("input", json!("how many?")).schema(json!({"type": "integer"})));
        async move { Ok(ToolOutput::text(format!("there are {}", answer?.value))) }
    };
    let calls = Turn::calls([("1", "counts", json!({})), ("2", "counts", json!({}))]);
    let asks = shared.process(shared.agent([calls]).tool(tool("counts", of_type)));
    let run = shared.send(job("r")).await;
    shared.comes_to(&run, JobStatusKind::AtRest).await;
    asks.abort();
    let given = async |id: &str, value: Value| {
        shared.queue.answer(&run, BTreeMap::from([(id.to_owned(), value.into())])).await.expect("it waits");
    };
    given("1/input", json!(7)).await;
    given("2/input", json!("many")).await;
    let _process = shared.process(shared.agent([says("there are 7")]).tool(tool("counts", of_type)));
    shared.comes_to(&run, JobStatusKind::AtRest).await;
    let note = shared.shown(&run).await.error.unwrap_or_default();
    assert!(note.contains("the answer to '2/input'") && !note.contains("1/input"), "{note}");
    let answered = |body: &EntryBody| matches!(body, EntryBody::Answered { .. });
    assert_eq!(shared.count("s", answered).await, 1, "the other one was taken");
    // Only this answer is refused, which does not count as a failure.
    given("2/input", json!("many")).await;
    sleep(Duration::from_secs(5)).await;
    let shown = shared.shown(&run).await;
    assert_eq!((shown.standing.kind(), shown.failures), (JobStatusKind::AtRest, 0), "{shown:?}");
    assert!(shown.error.is_some_and(|note| note.contains("the answer to '2/input'")));
    given("2/input", json!(8)).await;
    shared.comes_to(&run, JobStatusKind::Done).await;
}
