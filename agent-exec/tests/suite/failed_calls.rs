//! Hooks of failed model and tool calls.

use std::sync::{Arc, Mutex};

use agent_core::{
    Error, ErrorKind, Flow, Middleware, ModelResponse, Result, RunCx, RunRequest, ToolOutput, ToolRequest, async_trait,
    testing::{ScriptedModel, Turn},
};
use agent_exec::Agent;
use serde_json::json;

use crate::{
    children::{told, tool as custom},
    common::finished,
};

type Seen = Arc<Mutex<Vec<String>>>;

/// Records the hooks of its calls; answers failures, or replaces them by another error.
struct OnError {
    name: &'static str,
    seen: Seen,
    answer: Option<&'static str>,
    other: Option<ErrorKind>,
}

fn watch(name: &'static str, seen: &Seen) -> OnError {
    OnError { name, seen: seen.clone(), answer: None, other: None }
}

impl OnError {
    fn answering(mut self, answer: &'static str) -> Self {
        self.answer = Some(answer);
        self
    }

    fn failing_with(mut self, kind: ErrorKind) -> Self {
        self.other = Some(kind);
        self
    }

    fn note(&self, hook: &str, what: &str) {
        self.seen.lock().expect("free").push(format!("{} {hook} {what}", self.name));
    }

    fn decide<T>(&self, answer: impl FnOnce(&'static str) -> T) -> Result<Flow<T>> {
        match (self.answer, self.other) {
            (_, Some(kind)) => Err(Error::new(kind, "replaced")),
            (Some(text), None) => Ok(Flow::Answer(answer(text))),
            (None, None) => Ok(Flow::Continue),
        }
    }
}

#[async_trait]
impl Middleware for OnError {
    fn name(&self) -> &str {
        self.name
    }

    async fn on_model_error(&self, _: &RunCx, error: &Error) -> Result<Flow<ModelResponse>> {
        self.note("on_model_error", error.message());
        self.decide(ModelResponse::new)
    }

    async fn after_model(&self, _: &RunCx, res: &mut ModelResponse) -> Result<()> {
        self.note("after_model", &res.message.text());
        Ok(())
    }

    async fn on_tool_error(&self, _: &RunCx, req: &ToolRequest, error: &Error) -> Result<Flow<ToolOutput>> {
        self.note("on_tool_error", &format!("{}: {}", req.call.name, error.message()));
        self.decide(ToolOutput::text)
    }

    async fn after_tool(&self, _: &RunCx, _: &ToolRequest, out: &mut ToolOutput) -> Result<()> {
        self.note("after_tool", &out.to_text());
        Ok(())
    }
}

fn failing() -> ScriptedModel {
    ScriptedModel::new([Turn::error(|| Error::new(ErrorKind::Quota, "no credit"))])
}

fn seen(seen: &Seen) -> Vec<String> {
    seen.lock().expect("free").clone()
}

#[tokio::test]
async fn a_failed_model_call_is_shown_innermost_first_and_fails_the_run_if_nobody_answers() {
    let log = Seen::default();
    let builder = Agent::builder("a", failing()).middleware(watch("outer", &log)).middleware(watch("inner", &log));
    let error = builder.build().expect("builds").run("go").await.expect_err("fails");
    assert_eq!((error.kind(), error.message()), (ErrorKind::Quota, "no credit"));
    assert_eq!(seen(&log), ["inner on_model_error no credit", "outer on_model_error no credit"]);
}

#[tokio::test]
async fn an_answer_replaces_the_failure_and_the_middlewares_outside_see_a_response() {
    let log = Seen::default();
    let builder = Agent::builder("a", failing())
        .middleware(watch("outer", &log))
        .middleware(watch("apology", &log).answering("Sorry."))
        .middleware(watch("inner", &log));
    let end = finished(builder.build().expect("builds").run("go").await);
    assert_eq!(end.answer, "Sorry.");
    assert_eq!(
        seen(&log),
        ["inner on_model_error no credit", "apology on_model_error no credit", "outer after_model Sorry."]
    );
}

#[tokio::test]
async fn an_error_replaces_the_failure_and_names_its_middleware() {
    let log = Seen::default();
    let builder = Agent::builder("a", failing())
        .middleware(watch("outer", &log))
        .middleware(watch("inner", &log).failing_with(ErrorKind::Limit));
    let error = builder.build().expect("builds").run("go").await.expect_err("fails");
    assert_eq!((error.kind(), error.context("middleware")), (ErrorKind::Limit, Some("inner")));
    assert_eq!(seen(&log), ["inner on_model_error no credit", "outer on_model_error replaced"]);
}

#[tokio::test]
async fn a_failed_tool_call_can_be_answered_before_the_model_learns_of_the_failure() {
    let log = Seen::default();
    let model = ScriptedModel::new([Turn::call("c", "breaks", json!({})), Turn::text("done")]);
    let breaks = custom("breaks", async |_: ToolRequest| Err(Error::tool("it broke")));
    let builder = Agent::builder("a", model)
        .tool(breaks)
        .middleware(watch("outer", &log))
        .middleware(watch("stand-in", &log).answering("a stand-in's result"));
    let end = finished(builder.build().expect("builds").run("go").await);
    assert_eq!(told(&end.history), ["a stand-in's result"]);
    let tools: Vec<_> = seen(&log).into_iter().filter(|line| line.contains("tool")).collect();
    assert_eq!(tools, ["stand-in on_tool_error breaks: it broke", "outer after_tool a stand-in's result"]);
}

#[tokio::test]
async fn a_suspended_call_is_no_failure() {
    let log = Seen::default();
    let model = ScriptedModel::new([Turn::call("c", "asks", json!({})), Turn::text("done")]);
    let asks = custom("asks", async |req: ToolRequest| {
        let may: bool = req.ask("may", json!({}))?;
        Ok(ToolOutput::text(may.to_string()))
    });
    let builder = Agent::builder("a", model).tool(asks).middleware(watch("stand-in", &log).answering("not asked"));
    let agent = builder.build().expect("builds");
    let checkpoint = agent.run("go").await.expect("waits").checkpoint().expect("a checkpoint").clone();
    assert_eq!(seen(&log).iter().filter(|line| line.contains("_error")).count(), 0);
    let answers = [(checkpoint.questions[0].id.clone(), json!(true))];
    let end = finished(agent.start(RunRequest::resume(checkpoint, answers)).await);
    assert_eq!(told(&end.history), ["true"]);
}
