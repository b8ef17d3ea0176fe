//! Errors and panics of hooks.

use agent_core::{
    Chunk, Error, ErrorKind, Exit, Flow, Middleware, ModelRequest, ModelResponse, Result, RunCx, RunEnd, ToolOutput,
    ToolRequest, ToolResults, Verdict, async_trait,
    middleware::ChunkHook,
    testing::{ScriptedModel, Turn},
};
use agent_exec::{Agent, AgentBuilder};
use serde_json::{Value, json};

use crate::common::{Log, Watch, double, finished, hooks, slow, tool};

/// Builds an agent with the tool `f` that doubles `x`; its model calls it once and then says
/// "done".
fn agent() -> AgentBuilder {
    let model = ScriptedModel::new([Turn::call("1", "f", json!({"x": 3})), Turn::text("done")]);
    Agent::builder("a", model).tool(double("f"))
}

// NexAU 33 (B)
#[tokio::test]
async fn a_guard_that_fails_keeps_the_tool_from_running() {
    let log = Log::default();
    let model = ScriptedModel::new([Turn::call("1", "f", json!({}))]);
    let guard = hooks::before_tool(|_, _| Err(Error::new(ErrorKind::Transport, "the policy server is down")));
    let agent = Agent::builder("a", model).tool(slow("f", 0, &log)).middleware(guard).build().expect("builds");
    let e = agent.run("go").await.expect_err("fails closed");
    assert_eq!((e.kind(), e.context("middleware")), (ErrorKind::Transport, Some("before_tool")));
    assert!(log.seen().is_empty());
}

// NexAU 33 (B)
#[tokio::test]
async fn a_hook_that_fails_fails_the_run_which_names_it_and_says_where_it_stood() {
    fn no<T>() -> Result<T> {
        Err(Error::new(ErrorKind::Unexpected, "no"))
    }
    type Add = fn(AgentBuilder) -> AgentBuilder;
    let failing: [(&str, Add); 9] = [
        ("before_agent", |b| b.middleware(hooks::before_agent(|_| no()))),
        ("after_agent", |b| b.middleware(hooks::after_agent(|_, _| no()))),
        ("before_model", |b| b.middleware(hooks::before_model(|_, _| no()))),
        ("after_model", |b| b.middleware(hooks::after_model(|_, _| no()))),
        ("before_tools", |b| b.middleware(hooks::before_tools(|_, _| no()))),
        ("after_tools", |b| b.middleware(hooks::after_tools(|_, _| no()))),
        ("before_tool", |b| b.middleware(hooks::before_tool(|_, _| no()))),
        ("after_tool", |b| b.middleware(hooks::after_tool(|_, _, _| no()))),
        ("on_exit", |b| b.middleware(hooks::on_exit(|_, _| no()))),
    ];
    for (name, add) in failing {
        let e = add(agent()).build().expect("builds").run("go").await.expect_err(name);
        assert_eq!((e.kind(), e.message(), e.context("middleware")), (ErrorKind::Unexpected, "no", Some(name)));
        assert!(name == "after_agent" || e.checkpoint().is_some(), "{name}: a failed run says where it stood");
    }
}

#[tokio::test]
async fn a_hook_that_panics_fails_the_run_and_loses_no_result_of_a_sibling() {
    for calls in [1, 3] {
        let ids = &["2", "1", "3"][..calls];
        let model = ScriptedModel::new([Turn::calls(ids.iter().map(|id| (*id, "f", json!({})))), Turn::text("done")]);
        let log = Log::default();
        let hook = hooks::before_tool(|_, req| match &*req.call.id {
            // keeps the panic's message out of the test's output
            "2" => std::panic::resume_unwind(Box::new("boo")),
            _ => Ok(Flow::Continue),
        });
        let agent = Agent::builder("a", model).tool(slow("f", 0, &log)).middleware(hook).build().expect("builds");
        let e = agent.run("go").await.expect_err("fails");
        assert_eq!((e.kind(), e.context("completed")), (ErrorKind::Middleware, Some(&*ids[1..].join(", "))));
        assert_eq!(log.seen().len(), 2 * (calls - 1));
    }
}

// NexAU 33 (B)
#[tokio::test]
async fn an_observer_that_fails_everywhere_is_reported_and_changes_nothing() {
    struct Clumsy;

    #[async_trait]
    impl Middleware for Clumsy {
        fn name(&self) -> &str {
            "clumsy"
        }
        fn observer(&self) -> bool {
            true
        }
        async fn before_agent(&self, _: &RunCx) -> Result<()> {
            Err(Error::tool("before_agent"))
        }
        async fn after_agent(&self, _: &RunCx, _: &mut Result<RunEnd>) -> Result<()> {
            Err(Error::tool("after_agent"))
        }
        async fn before_model(&self, _: &RunCx, _: &mut ModelRequest) -> Result<Flow<ModelResponse>> {
            Err(Error::tool("before_model"))
        }
        async fn after_tools(&self, _: &RunCx, _: &mut ToolResults) -> Result<Verdict> {
            Err(Error::tool("after_tools"))
        }
        async fn before_tool(&self, _: &RunCx, _: &mut ToolRequest) -> Result<Flow<ToolOutput>> {
            Err(Error::tool("before_tool"))
        }
        async fn on_exit(&self, _: &RunCx, _: &mut Exit) -> Result<Verdict> {
            Err(Error::tool("on_exit"))
        }
        fn chunk_hook(&self) -> Option<&dyn ChunkHook> {
            Some(self)
        }
    }

    impl ChunkHook for Clumsy {
        fn stream_chunk(&self, _: &RunCx, chunk: Chunk) -> Result<Option<Chunk>> {
            match chunk {
                Chunk::Text { .. } => Err(Error::tool("stream_chunk")),
                other => Ok(Some(other)),
            }
        }
    }

    let watch = Watch::default();
    let agent = agent().middleware(watch.clone()).middleware(Clumsy).build().expect("builds");
    let end = finished(agent.run("go").await);
    assert_eq!((end.answer.as_str(), end.steps), ("done", 2));
    let step = ["before_model", "before_tool", "after_tools"];
    let hooks = [&["before_agent"], &step[..], &["before_model", "stream_chunk", "on_exit", "after_agent"]].concat();
    let hooks = hooks.into_iter();
    assert_eq!(watch.warnings(), hooks.map(|hook| format!("tool: {hook} (middleware: clumsy)")).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_run_that_waits_keeps_its_checkpoint_when_a_hook_fails_on_the_way_out() {
    let ask = tool("ask", async |req| req.ask::<String>("name", Value::Null).map(ToolOutput::text));
    let model = ScriptedModel::new([Turn::call("1", "ask", json!({}))]);
    let fails = hooks::after_agent(|_, _| Err(Error::new(ErrorKind::Store, "disk full")));
    let agent = Agent::builder("a", model).tool(ask).middleware(fails).build().expect("builds");
    let e = agent.run("go").await.expect_err("the hook fails");
    assert_eq!(e.checkpoint().expect("kept").questions[0].id, "1/name");
}
