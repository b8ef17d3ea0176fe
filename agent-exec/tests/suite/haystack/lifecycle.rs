//! Warming up and closing.

use std::sync::Arc;

use agent_core::{
    Error, ErrorKind, Model, ModelInfo, ModelRequest, ModelResponse, Result, RunCx, RunRequest, Tool, ToolOutput,
    ToolRequest, ToolSpec, Toolset, async_trait,
    testing::{ScriptedModel, Turn},
};
use agent_exec::Agent;
use agent_llm::{Failover, LayeredModel, XmlTools};
use agent_tools::ToolExt;
use serde_json::json;
use tower::layer::util::Identity;

use crate::common::{Log, finished, stopped};

/// A part that logs the calls it receives.
#[derive(Clone)]
struct Part {
    name: &'static str,
    log: Log,
    model: ScriptedModel,
}

impl Part {
    fn new(name: &'static str, log: &Log) -> Self {
        Self { name, log: log.clone(), model: ScriptedModel::new((0..9).map(|_| Turn::text("done"))) }
    }

    fn note(&self, what: &str) -> Result<()> {
        self.log.note(format!("{what} {}", self.name));
        match self.name {
            "broken" => Err(Error::new(ErrorKind::Transport, "nobody answers")),
            _ => Ok(()),
        }
    }
}

#[async_trait]
impl Tool for Part {
    fn spec(&self) -> ToolSpec {
        ToolSpec::new(self.name, "", json!({"type": "object"}))
    }

    async fn call(&self, _: ToolRequest) -> Result<ToolOutput> {
        Ok(ToolOutput::text("ran"))
    }

    async fn warm_up(&self) -> Result<()> {
        tokio::task::yield_now().await;
        self.note("warms up")
    }

    async fn close(&self) -> Result<()> {
        self.note("closes")
    }
}

#[async_trait]
impl Toolset for Part {
    async fn tools(&self, _: &RunCx) -> Result<Vec<Arc<dyn Tool>>> {
        Ok(Vec::new())
    }

    async fn warm_up(&self) -> Result<()> {
        self.note("warms up")
    }

    async fn close(&self) -> Result<()> {
        self.note("closes")
    }
}

#[async_trait]
impl Model for Part {
    fn info(&self) -> ModelInfo {
        self.model.info()
    }

    async fn call(&self, req: ModelRequest) -> Result<ModelResponse> {
        self.log.note("calls");
        self.model.call(req).await
    }

    async fn warm_up(&self) -> Result<()> {
        self.note("warms up")
    }

    async fn close(&self) -> Result<()> {
        self.note("closes")
    }
}

#[tokio::test]
async fn before_its_first_run_an_agent_warms_up_once_tools_first_and_closes_when_it_is_told() {
    let log = Log::default();
    let part = |name| Part::new(name, &log);
    let tool = Part::new("tool", &log).named("other");
    let builder = Agent::builder("a", part("model")).tool(tool).toolset(part("set"));
    let agent = builder.build().expect("builds");
    let (one, two) = tokio::join!(agent.run("go"), agent.run("go"));
    finished(one);
    finished(two);
    let warm = ["warms up tool", "warms up set", "warms up model"];
    assert_eq!(log.seen(), [&warm[..], &["calls", "calls"]].concat());
    agent.close().await.expect("closes");
    assert_eq!(log.seen()[5..], ["closes tool", "closes set", "closes model"]);
    agent.warm_up().await.expect("warms up");
    finished(agent.run("go").await);
    assert_eq!(log.seen()[8..], [&warm[..], &["calls"]].concat());
}

#[tokio::test]
async fn a_part_that_cannot_be_opened_fails_the_run_before_the_model_and_is_closed_like_the_others() {
    let log = Log::default();
    let agent = Agent::builder("a", Part::new("model", &log)).tool(Part::new("broken", &log)).build().expect("builds");
    for _ in 0..2 {
        assert_eq!(agent.run("go").await.expect_err("fails").kind(), ErrorKind::Transport);
    }
    assert_eq!(log.seen(), ["warms up broken", "warms up broken"], "each run tries");
    assert_eq!(agent.close().await.expect_err("fails").kind(), ErrorKind::Transport);
    assert_eq!(log.seen()[2..], ["closes broken", "closes model"]);
}

#[tokio::test]
async fn a_tool_that_a_run_brings_is_warmed_up_by_the_run_and_closed_by_whoever_brought_it() {
    let log = Log::default();
    let agent = Agent::builder("a", Part::new("model", &log)).build().expect("builds");
    let request = RunRequest::user("go").tools(vec![Arc::new(Part::new("mine", &log))]);
    finished(agent.start(request).await);
    agent.close().await.expect("closes");
    assert_eq!(log.seen(), ["warms up model", "warms up mine", "calls", "closes model"]);
}

#[tokio::test]
async fn models_around_models_pass_it_on() {
    let log = Log::default();
    let part = |name| Part::new(name, &log);
    let models = Failover::builder(part("first")).fallback(part("second")).build().expect("two models");
    let model = LayeredModel::new(XmlTools::new(models), Identity::new());
    let agent = Agent::builder("a", model).build().expect("builds");
    agent.warm_up().await.expect("warms up");
    agent.close().await.expect("closes");
    assert_eq!(log.seen(), ["warms up first", "warms up second", "closes first", "closes second"]);
}

#[tokio::test]
async fn a_run_that_is_cancelled_while_something_opens_ends_as_cancelled() {
    struct Stuck;

    #[async_trait]
    impl Tool for Stuck {
        fn spec(&self) -> ToolSpec {
            ToolSpec::new("stuck", "", json!({"type": "object"}))
        }

        async fn call(&self, _: ToolRequest) -> Result<ToolOutput> {
            Ok(ToolOutput::text("ran"))
        }

        async fn warm_up(&self) -> Result<()> {
            std::future::pending().await
        }
    }

    let agent = Agent::builder("a", ScriptedModel::new([])).tool(Stuck).build().expect("builds");
    let run = agent.start(RunRequest::user("go"));
    let handle = run.handle();
    let (end, ()) = tokio::join!(run, async { handle.cancel() });
    assert_eq!(stopped(end).0, "cancelled");
}
