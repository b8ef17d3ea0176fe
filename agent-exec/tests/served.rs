//! Runs of agents that are served elsewhere, as the runs that call them see them.

mod common;

use std::sync::Arc;

use agent_core::{
    AssistantMessage, Block, Effect, Error, ErrorKind, ExitReason, Message, Model, ModelInfo, ModelRequest,
    ModelResponse, Result, RunRequest, Tool, ToolOptions, ToolOutput, ToolRequest, ToolSpec, Usage, async_trait,
    engine::{ServedEnd, ServedRun},
    testing::ByteEngine,
};
use agent_exec::Agent;
use agent_tools::ServedAgent;
use serde_json::json;

use self::common::finished;

/// Calls the tool `travel` once, whichever process it is in.
struct CallsOnce;

#[async_trait]
impl Model for CallsOnce {
    fn info(&self) -> ModelInfo {
        ModelInfo::new("calls once")
    }

    async fn call(&self, req: ModelRequest) -> Result<ModelResponse> {
        let says = match req.messages.last() {
            Some(Message::Tool(_)) => "done".into(),
            _ => {
                let message = json!({"message": "To Bern, please."}).to_string();
                AssistantMessage::new(vec![Block::tool_call("t1", "travel", message)])
            }
        };
        Ok(ModelResponse::new(says).with_usage(Usage::new(1, 1)))
    }
}

fn clerk(travel: impl Tool) -> Agent {
    Agent::builder("clerk", CallsOnce).tool(travel).build().expect("builds")
}

fn request() -> RunRequest {
    RunRequest::user("go").session("s").run_id("r")
}

/// What the agent heard of its call.
fn heard(end: &agent_core::Finished) -> String {
    end.history.iter().filter(|message| matches!(message, Message::Tool(_))).map(Message::text).collect()
}

/// Drives the run in a process that dies at this of its steps, and then in one that does not; the calls that were there, and the end.
async fn run(death: Option<(u64, bool)>) -> (Vec<ServedRun>, agent_core::Finished) {
    let (engine, mut called) = (ByteEngine::default(), Vec::new());
    for death in death.into_iter().map(Some).chain([None]) {
        let attempt = engine.attempt();
        let attempt = death.into_iter().fold(attempt, |attempt, (step, keeps)| attempt.dying_at(step, keeps));
        let run = clerk(ServedAgent::new("travel")).start(request().durable(Arc::new(attempt.clone())));
        let serves = async {
            loop {
                let run = engine.called().await;
                engine.end(&run.run, ServedEnd::new("There you go.", ExitReason::Text, Usage::new(7, 3)));
                called.push(run);
            }
        };
        tokio::select! {
            biased;
            end = run => return (called, finished(end)),
            () = attempt.died() => {}
            () = serves => {}
        }
    }
    unreachable!("the last process does not die")
}

#[tokio::test(start_paused = true)]
async fn a_call_is_one_run_elsewhere_at_whichever_step_its_process_died() {
    let (called, straight) = run(None).await;
    assert_eq!((called.len(), &*called[0].session, &*called[0].run), (1, "s/clerk/travel", "r/1/t1"));
    assert_eq!(called[0].messages, [Message::user("To Bern, please.")]);
    assert_eq!(heard(&straight), "There you go.");
    for step in 1..=4 {
        for keeps in [false, true] {
            let (called, end) = run(Some((step, keeps))).await;
            assert_eq!(called.len(), 1, "died at step {step}, kept: {keeps}");
            assert_eq!(end.history, straight.history);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_run_elsewhere_used_counts_against_the_callers_budget_however_it_ended() {
    let used = Usage::new(400, 200);
    let failed = Error::tool("Agent 'travel' failed.");
    for ended in [ServedEnd::new("There you go.", ExitReason::Text, used), ServedEnd::failed(&failed, used)] {
        let engine = ByteEngine::default();
        let request = request().durable(Arc::new(engine.attempt())).caps(agent_core::Caps::default().tokens(500));
        let run = clerk(ServedAgent::new("travel")).start(request);
        let serves = async {
            let run = engine.called().await;
            engine.end(&run.run, ended);
            std::future::pending::<()>().await;
        };
        let end = tokio::select! { end = run => finished(end), () = serves => unreachable!("it serves on") };
        assert_eq!(end.reason, ExitReason::Budget, "nothing is left for the second model call");
    }
}

#[tokio::test(start_paused = true)]
async fn an_engine_that_sends_no_runs_elsewhere_says_so() {
    let refused = clerk(ServedAgent::new("travel")).start(request()).await.expect_err("it cannot");
    assert_eq!(refused.kind(), ErrorKind::Config);
    assert!(refused.message().contains("agent 'travel' is served elsewhere"), "{refused}");
}

/// Calls an agent elsewhere, and does not say that it does nothing else.
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
    let attempt = Arc::new(ByteEngine::default().attempt());
    let end = finished(clerk(Silent).start(request().durable(attempt)).await);
    assert!(heard(&end).contains("its options must say that it delegates"), "{end:?}");
}
