//! tower layers around model calls and tool calls: existing ones, and a custom one.

use std::{
    task::{Context, Poll},
    time::Duration,
};

use agent::{core::BoxFuture, prelude::*, testing::Turn};
use agent_examples::{models, show};
use serde_json::json;
use tower::{Layer, Service, limit::ConcurrencyLimitLayer, timeout::TimeoutLayer};

/// Signs tool results. It depends only on the types of a tool call.
#[derive(Clone)]
struct SignLayer(&'static str);

impl<S> Layer<S> for SignLayer {
    type Service = Sign<S>;

    fn layer(&self, inner: S) -> Sign<S> {
        Sign { inner, by: self.0 }
    }
}

#[derive(Clone)]
struct Sign<S> {
    inner: S,
    by: &'static str,
}

impl<S> Service<ToolRequest> for Sign<S>
where
    S: Service<ToolRequest, Response = ToolOutput>,
    S::Future: Send + 'static,
    S::Error: 'static,
{
    type Response = ToolOutput;
    type Error = S::Error;
    type Future = BoxFuture<'static, Result<ToolOutput, S::Error>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, req: ToolRequest) -> Self::Future {
        let (output, by) = (self.inner.call(req), self.by);
        Box::pin(async move { Ok(ToolOutput::text(format!("{} (says {by})", output.await?.to_text()))) })
    }
}

/// Says how high a mountain is.
#[tool(effect = "pure")]
async fn height(mountain: String) -> String {
    format!("{mountain}: 4,158 m")
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let model = models::or_script([
        Turn::call("c1", "height", json!({"mountain": "Jungfrau"})),
        Turn::text("The Jungfrau is 4,158 metres high."),
    ]);
    let agent = Agent::builder("guide", model.await?)
        .tool(height)
        // The first layer is the outermost. The timeout does not include the time that a call waits
        // for the concurrency limit.
        .model_layer(ConcurrencyLimitLayer::new(4))
        .model_layer(TimeoutLayer::new(Duration::from_secs(60)))
        .tool_layer(TimeoutLayer::new(Duration::from_secs(5)))
        .tool_layer(SignLayer("the survey"))
        .build()?;

    let end = agent.run("How high is the Jungfrau?").await?;
    show::history(&end.finished().map_err(|_| Error::tool("the run was stopped"))?.history);
    Ok(())
}
