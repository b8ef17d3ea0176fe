//! Runs that the executor refuses on an engine that persists steps, whichever engine that is.

use std::sync::Arc;

use agent_core::{
    Checkpoint, Effect, ErrorKind, Journal, MemoryJournal, Message, Result, RunEnd, RunIds, RunRequest, Tool,
    ToolOptions, ToolOutput, ToolRequest, ToolSpec, async_trait,
    engine::ServedRun,
    testing::{ByteEngine, ScriptedModel, Turn},
};
use agent_exec::Agent;
use agent_tools::RemoteAgent;
use serde_json::json;

use crate::common::finished;

fn agent() -> Agent {
    Agent::builder("a", ScriptedModel::new([Turn::text("hi")])).build().expect("builds")
}

fn durable(request: RunRequest) -> RunRequest {
    request.durable(Arc::new(ByteEngine::default().attempt()))
}

/// Returns the message of the refusal, which has this kind.
fn refusal(end: Result<RunEnd>, kind: ErrorKind) -> String {
    let e = end.expect_err("is refused");
    assert_eq!(e.kind(), kind, "{e}");
    e.message().to_owned()
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_driven_again_from_its_beginning_is_refused() {
    let nameless = refusal(agent().start(durable(RunRequest::user("go"))).await, ErrorKind::Config);
    assert!(nameless.contains("run_id"), "{nameless}");
    let checkpoint = Checkpoint::new(RunIds::root("a", "s"), "");
    let resumed = durable(RunRequest::resume(checkpoint, []).run_id("r"));
    let elsewhere = refusal(agent().start(resumed).await, ErrorKind::Config);
    assert!(elsewhere.contains("first messages"), "{elsewhere}");
}

#[tokio::test(start_paused = true)]
async fn a_run_that_is_in_the_past_of_its_session_is_refused() {
    let session = MemoryJournal::default();
    let request = || {
        let attempt = ByteEngine::default().attempt().in_session(session.clone());
        RunRequest::user("go").session("s").run_id("r").durable(Arc::new(attempt))
    };
    finished(agent().start(request()).await);
    let entries = session.read("s", 0, 100).await.expect("is read").len();
    refusal(agent().start(request()).await, ErrorKind::Stale);
    assert_eq!(session.read("s", 0, 100).await.expect("is read").len(), entries);
}

/// Builds an agent that calls this tool once.
fn clerk(travel: impl Tool) -> Agent {
    let call = Turn::call("t1", "travel", json!({"message": "To Bern, please."}));
    let model = ScriptedModel::new([call, Turn::text("done")]);
    Agent::builder("clerk", model).tool(travel).build().expect("builds")
}

#[tokio::test(start_paused = true)]
async fn an_engine_that_sends_no_runs_elsewhere_says_so() {
    let run = clerk(RemoteAgent::new("travel")).start(RunRequest::user("go"));
    let refused = refusal(run.await, ErrorKind::Config);
    assert!(refused.contains("agent 'travel' is served elsewhere"), "{refused}");
}

/// Calls a remote agent without declaring that it only delegates.
struct Silent;

#[async_trait]
impl Tool for Silent {
    fn spec(&self) -> ToolSpec {
        ToolSpec::new("travel", "", json!({"type": "object", "additionalProperties": true}))
    }

    fn options(&self) -> ToolOptions {
        ToolOptions::default().effect(Effect::Idempotent)
    }

    async fn call(&self, req: ToolRequest) -> Result<ToolOutput> {
        let run = ServedRun::new("travel", "other", "r2", "hello", req.cx.ids());
        let refused = req.served(&run).await.expect_err("is refused");
        assert_eq!(refused.kind(), ErrorKind::Config);
        Ok(ToolOutput::text(refused.message()))
    }
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_does_not_say_that_it_delegates_calls_nobody_elsewhere() {
    let end = finished(clerk(Silent).start(durable(RunRequest::user("go").run_id("r"))).await);
    let heard: String = end.history.iter().filter(|m| matches!(m, Message::Tool(_))).map(Message::text).collect();
    assert!(heard.contains("its options must say that it delegates"), "{end:?}");
}
