//! Deadlines: which has passed, what is answered, and how the run ends.

use std::time::Duration;

use agent_core::{
    Deadlines, Error, ErrorKind, ExitReason, RunRequest,
    testing::{ScriptedModel, Turn},
};
use agent_exec::{Agent, AgentBuilder};
use agent_middleware::Delegation;
use serde_json::json;
use tokio::time::Instant;

use crate::common::{Log, finished, hangs, ms, results, slow};

fn secs(n: u64) -> Duration {
    Duration::from_secs(n)
}

fn agent(turns: impl IntoIterator<Item = Turn>, deadlines: Deadlines) -> AgentBuilder {
    Agent::builder("a", ScriptedModel::new(turns)).deadlines(deadlines)
}

fn told(e: &Error) -> (ErrorKind, Option<&str>, bool) {
    (e.kind(), e.context("deadline"), e.context("changed by").is_some_and(|change| change.contains("Deadlines::")))
}

#[tokio::test(start_paused = true)]
async fn a_run_that_is_too_late_ends_with_its_own_exit_reason_and_every_call_answered() {
    let (log, began) = (Log::default(), Instant::now());
    let turns = [Turn::calls([("c1", "hang", json!({})), ("c2", "nap", json!({}))])];
    let agent = agent(turns, Deadlines::new().run(secs(10))).tool(hangs("hang", &log)).tool(slow("nap", 1_000, &log));
    let end = finished(agent.build().expect("builds").run("go").await);
    assert_eq!((end.reason, began.elapsed()), (ExitReason::Deadline, secs(10)));
    let results = results(&end.history);
    assert_eq!(results[0], ("c1".into(), "The call was cut off: the run's time of 10s was up.".into(), true));
    assert_eq!(results[1], ("c2".into(), "c2".into(), false), "what was done is kept");
    assert!(log.seen().contains(&"c1 dropped".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn a_model_call_beyond_the_runs_time_ends_the_run_and_one_beyond_the_steps_fails_it() {
    let slow = || [Turn::text("a b c").delay(secs(20))];
    let end = finished(agent(slow(), Deadlines::new().run(secs(10))).build().expect("builds").run("go").await);
    assert_eq!((end.reason, end.steps), (ExitReason::Deadline, 0));
    let e = agent(slow(), Deadlines::new().step(secs(10))).build().expect("builds").run("go").await.expect_err("late");
    assert_eq!(told(&e), (ErrorKind::Timeout, Some("step"), true));
    assert!(e.checkpoint().is_some() && e.message().contains("the step took longer than 10s"), "{e}");
}

#[tokio::test(start_paused = true)]
async fn a_steps_tool_calls_are_cut_off_and_the_run_goes_on() {
    let turns = [Turn::call("c", "hang", json!({})), Turn::text("done")];
    let agent = agent(turns, Deadlines::new().step(secs(10))).tool(hangs("hang", &Log::default()));
    let end = finished(agent.build().expect("builds").run("go").await);
    assert_eq!(end.answer, "done");
    assert_eq!(results(&end.history)[0].1, "The call was cut off: the step took longer than 10s.");
}

#[tokio::test(start_paused = true)]
async fn a_stream_must_begin_in_time_and_go_on_in_time() {
    let call = async |pause: u64, deadlines: Deadlines| {
        let agent = agent([Turn::text("a b c").delay(ms(pause))], deadlines).streaming(true);
        agent.build().expect("builds").run("go").await
    };
    let late = |e: Error, which| assert_eq!(told(&e), (ErrorKind::Timeout, Some(which), true), "{e}");
    late(call(2_000, Deadlines::new().first_chunk(secs(1))).await.expect_err("late"), "first_chunk");
    late(call(2_000, Deadlines::new().chunk_gap(secs(1))).await.expect_err("late"), "chunk_gap");
    finished(call(2_000, Deadlines::new().first_chunk(secs(3))).await);
    finished(call(2_000, Deadlines::new().first_chunk(secs(3)).chunk_gap(secs(3))).await);
}

#[tokio::test(start_paused = true)]
async fn the_applications_time_for_a_tool_beats_the_tools_own_which_beats_the_time_for_all() {
    for (deadlines, own, lasts) in [
        (Deadlines::new().tool(secs(2)), None, 2),
        (Deadlines::new().tool(secs(2)), Some(secs(5)), 5),
        (Deadlines::new().tool(secs(2)).tool_named("hang", secs(7)), Some(secs(5)), 7),
    ] {
        let (log, began) = (Log::default(), Instant::now());
        let tool = hangs("hang", &log).with(|mut options| {
            options.timeout = own;
            options
        });
        let turns = [Turn::call("c", "hang", json!({})), Turn::text("done")];
        let end = finished(agent(turns, deadlines).tool(tool).build().expect("builds").run("go").await);
        assert_eq!((end.answer.as_str(), began.elapsed()), ("done", secs(lasts)));
        assert!(results(&end.history)[0].1.contains("timed out"), "the model is told");
    }
}

#[tokio::test(start_paused = true)]
async fn a_sub_agent_has_no_more_time_than_its_caller_has_left() {
    let helper = agent([Turn::text("a b c").delay(secs(20))], Deadlines::new().run(secs(60))).build().expect("builds");
    let ask = Turn::call("d", "delegate", json!({"agent": "helper", "message": "go"})).delay(secs(1));
    let boss =
        agent([ask], Deadlines::new().run(secs(10))).middleware(Delegation::new().to("helper", "Helps.", helper));
    let began = Instant::now();
    let end = finished(boss.build().expect("builds").start(RunRequest::user("go")).await);
    assert_eq!((end.reason, began.elapsed()), (ExitReason::Deadline, secs(10)));
    let answer = &results(&end.history)[0].1;
    assert!(answer.contains("ran out of time"), "{answer}");
}
