//! Agents, models and tools of the tests.

use std::time::Duration;

use agent_core::{
    BoxFuture, Effect, Error, Finished, Model, ModelInfo, ModelRequest, ModelResponse, Result, RunEnd, Tool,
    ToolOptions, ToolOutput, ToolRequest, ToolSpec, Usage, async_trait,
    testing::{ScriptedModel, Turn},
};
use serde_json::json;

/// A scripted model with a name, a provider, and ids for its responses.
#[derive(Clone)]
pub(crate) struct Named(ScriptedModel);

impl Named {
    pub(crate) fn new(name: &str, turns: impl IntoIterator<Item = Turn>) -> Self {
        Self(ScriptedModel::new(turns).with_info(ModelInfo::new(name).with_provider("google")))
    }
}

#[async_trait]
impl Model for Named {
    fn info(&self) -> ModelInfo {
        self.0.info()
    }

    async fn call(&self, req: ModelRequest) -> Result<ModelResponse> {
        let mut response = self.0.call(req).await?;
        response.id = Some(format!("response-{}", self.0.calls()).into());
        response.model = Some(format!("{}-001", self.info().name).into());
        Ok(response)
    }
}

type Body = Box<dyn Fn(ToolRequest) -> BoxFuture<'static, Result<ToolOutput>> + Send + Sync>;

/// A tool made from a closure, which accepts any arguments.
pub(crate) struct FnTool(&'static str, Body);

pub(crate) fn tool<F, Fut>(name: &'static str, body: F) -> FnTool
where
    F: Fn(ToolRequest) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<ToolOutput>> + Send + 'static,
{
    FnTool(name, Box::new(move |req| Box::pin(body(req))))
}

pub(crate) fn lookup() -> FnTool {
    tool("lookup", async |req: ToolRequest| {
        tokio::time::sleep(Duration::from_millis(5)).await;
        Ok(ToolOutput::text(format!("found {}", req.args["key"].as_str().unwrap_or_default())))
    })
}

pub(crate) fn broken() -> FnTool {
    tool("broken", async |_| Err(Error::tool("the disk at /secret is full")))
}

#[async_trait]
impl Tool for FnTool {
    fn spec(&self) -> ToolSpec {
        ToolSpec::new(self.0, "A tool of a test.", json!({"type": "object", "additionalProperties": true}))
    }

    fn options(&self) -> ToolOptions {
        ToolOptions::default().effect(Effect::Pure)
    }

    async fn call(&self, req: ToolRequest) -> Result<ToolOutput> {
        (self.1)(req).await
    }
}

/// Returns usage with a value in each field.
pub(crate) fn used(input: u64, output: u64) -> Usage {
    let mut usage = Usage::new(input, output);
    (usage.cached, usage.cache_write, usage.reasoning) = (100, 20, 3);
    usage
}

pub(crate) fn finished(end: Result<RunEnd>) -> Finished {
    end.expect("the run does not fail").finished().expect("the run finishes")
}
