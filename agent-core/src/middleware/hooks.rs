//! Tower layer of the `before_*` and `after_*` hooks: always the outermost, and entered once per
//! call.

use std::{
    any::Any,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    task::{Context, Poll},
};

use futures::{
    FutureExt,
    future::{BoxFuture, ready},
};
use tower::{Layer, Service};

use super::{Flow, Middleware, Middlewares, ModelNext, ToolNext};
use crate::{
    cx::{EngineCx, Hook, RunCx},
    error::{Error, ErrorKind, Result},
    event::EventKind,
    future::boxed,
    llm::{ChunkSink, ModelResponse},
    model::{ModelRequest, ModelService},
    tool::{ToolRequest, ToolService},
    tooling::ToolOutput,
};

/// Layer of the hooks around model calls.
#[derive(Clone)]
pub struct ModelHooksLayer(Middlewares);

/// Service of [`ModelHooksLayer`], with the middlewares that have a chunk hook.
#[derive(Clone)]
pub struct ModelHooks(Arc<Around<ModelService>>, Middlewares);

/// Hooks and the inner service. Shared by one reference count, since every call clones the service.
struct Around<S> {
    list: Middlewares,
    inner: S,
}

/// Layer of the hooks around tool calls. Also converts a tool's failure to an output for the model.
#[derive(Clone)]
pub struct ToolHooksLayer(Middlewares, bool);

/// Service of [`ToolHooksLayer`].
#[derive(Clone)]
pub struct ToolHooks(Arc<Around<ToolService>>, bool);

impl ModelHooksLayer {
    /// Creates the layer of these hooks, outermost first.
    pub fn new(list: Middlewares) -> Self {
        Self(list)
    }
}

impl ToolHooksLayer {
    /// Creates the layer of these hooks, outermost first. With `raise`, a tool's failure stays an
    /// error.
    pub fn new(list: Middlewares, raise: bool) -> Self {
        Self(list, raise)
    }
}

impl Layer<ModelService> for ModelHooksLayer {
    type Service = ModelHooks;

    fn layer(&self, inner: ModelService) -> ModelHooks {
        ModelHooks(Arc::new(Around { list: self.0.clone(), inner }), with_chunk_hook(&self.0).collect())
    }
}

impl Layer<ToolService> for ToolHooksLayer {
    type Service = ToolHooks;

    fn layer(&self, inner: ToolService) -> ToolHooks {
        ToolHooks(Arc::new(Around { list: self.0.clone(), inner }), self.1)
    }
}

impl Service<ModelRequest> for ModelHooks {
    type Response = ModelResponse;
    type Error = Error;
    type Future = BoxFuture<'static, Result<ModelResponse>>;

    /// Always ready: the inner stack is awaited per call, on a clone.
    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, req: ModelRequest) -> Self::Future {
        if !self.0.has_hooks(&req.cx) {
            return match stopped(&req.cx) {
                Ok(()) => self.0.inner.run(req),
                Err(e) => ready(Err(e)).boxed(),
            };
        }
        boxed(|| model(self.clone(), req))
    }
}

impl Service<ToolRequest> for ToolHooks {
    type Response = ToolOutput;
    type Error = Error;
    type Future = BoxFuture<'static, Result<ToolOutput>>;

    /// Always ready: the inner stack is awaited per call, on a clone.
    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, req: ToolRequest) -> Self::Future {
        let raise = self.1;
        if !self.0.has_hooks(&req.cx) {
            return self.0.inner.run(req).map(move |result| as_output(result, raise)).boxed();
        }
        boxed(|| tool(self.0.clone(), raise, req))
    }
}

super::debug_by_name!(ModelHooksLayer, ModelHooks, 0.list);
super::debug_by_name!(ToolHooksLayer, ToolHooks, 0.list);

impl<S> Around<S> {
    /// False if the run has no middleware: its calls then allocate nothing for hooks.
    fn has_hooks(&self, cx: &RunCx) -> bool {
        !self.list.is_empty() || !cx.inherited().is_empty()
    }
}

fn stopped(cx: &RunCx) -> Result<()> {
    cx.stop_requested().map_or(Ok(()), |reason| Err(Error::new(ErrorKind::Stopped, reason)))
}

/// Converts a failure that the model can handle to an error output.
fn as_output(result: Result<ToolOutput>, raise: bool) -> Result<ToolOutput> {
    match result {
        Err(e) if !raise && e.kind().is_model_visible() => Ok(ToolOutput::error(e.message().to_owned())),
        other => other,
    }
}

async fn model(ModelHooks(hooks, chunk_hooks): ModelHooks, mut req: ModelRequest) -> Result<ModelResponse> {
    let cx = req.cx.clone();
    let (list, inner) = (EngineCx(&cx).effective_middlewares(&hooks.list), &hooks.inner);
    let mut entered = list.len();
    let mut answer = None;
    for (i, m) in list.iter().enumerate() {
        let at = cx.in_hook(Hook::BeforeModel, i, None);
        req.cx = at.clone();
        match run_hook(&cx, &**m, m.before_model(&at, &mut req)).await? {
            Some(Flow::Answer(response)) => {
                (entered, answer) = (i, Some(response));
                break;
            }
            Some(Flow::Continue) | None => {}
        }
    }
    req.cx = cx.in_hook(Hook::WrapModel, 0, None);
    stopped(&cx)?;
    let mut response = match answer {
        Some(response) => response,
        None => {
            let chunk_hooks: Middlewares = match cx.inherited() {
                above if above.is_empty() => chunk_hooks,
                above => with_chunk_hook(above).chain(chunk_hooks.iter().cloned()).collect(),
            };
            if !chunk_hooks.is_empty() {
                req.sink = transform(&cx, chunk_hooks, &req.sink);
            }
            let answered = match cx.inherited() {
                above if above.is_empty() => inner.run(req).await,
                above => ModelNext::new(above, inner).run(req).await,
            };
            match answered {
                Ok(response) => response,
                Err(e) => {
                    let response;
                    (response, entered) = boxed(|| model_failed(&cx, &list, e)).await?;
                    response
                }
            }
        }
    };
    for (i, m) in list[..entered].iter().enumerate().rev() {
        let at = cx.in_hook(Hook::AfterModel, i, None);
        run_hook(&cx, &**m, m.after_model(&at, &mut response)).await?;
    }
    Ok(response)
}

async fn tool(hooks: Arc<Around<ToolService>>, raise: bool, mut req: ToolRequest) -> Result<ToolOutput> {
    let cx = req.cx.clone();
    let (list, inner) = (EngineCx(&cx).effective_middlewares(&hooks.list), &hooks.inner);
    let mut entered = list.len();
    let mut answer = None;
    for (i, m) in list.iter().enumerate() {
        let at = cx.in_hook(Hook::BeforeTool, i, Some(&req.call.id));
        req.cx = at.clone();
        match run_hook(&cx, &**m, m.before_tool(&at, &mut req)).await? {
            Some(Flow::Answer(output)) => {
                (entered, answer) = (i, Some(output));
                break;
            }
            Some(Flow::Continue) | None => {}
        }
    }
    req.cx = cx.in_hook(Hook::WrapTool, 0, Some(&req.call.id));
    let asked = (entered > 0).then(|| req.clone());
    let mut output = match answer {
        Some(output) => output,
        None => {
            let result = match cx.inherited() {
                above if above.is_empty() => inner.run(req).await,
                above => ToolNext::new(above, inner).run(req).await,
            };
            let result = match (result, &asked) {
                (Err(e), Some(asked)) => {
                    let failed = boxed(|| tool_failed(&cx, &list, asked, e)).await;
                    failed.map(|(output, at)| {
                        entered = at;
                        output
                    })
                }
                (result, _) => result,
            };
            as_output(result, raise)?
        }
    };
    if let Some(mut req) = asked {
        for (i, m) in list[..entered].iter().enumerate().rev() {
            req.cx = cx.in_hook(Hook::AfterTool, i, Some(&req.call.id));
            run_hook(&cx, &**m, m.after_tool(&req.cx, &req, &mut output)).await?;
        }
    }
    Ok(output)
}

/// Offers a failed model call to the middlewares, innermost first. Returns the response of the one
/// that answers, and its position.
///
/// # Errors
/// The failure, or the error of a hook that replaced it.
async fn model_failed(cx: &RunCx, list: &Middlewares, mut e: Error) -> Result<(ModelResponse, usize)> {
    for (i, m) in list.iter().enumerate().rev() {
        if !e.kind().is_failure() {
            break;
        }
        let at = cx.in_hook(Hook::OnModelError, i, None);
        match run_hook(cx, &**m, m.on_model_error(&at, &e)).await {
            Ok(Some(Flow::Answer(response))) => return Ok((response, i)),
            Ok(_) => {}
            Err(other) => e = other,
        }
    }
    Err(e)
}

/// Like [`model_failed`], for a tool call.
async fn tool_failed(cx: &RunCx, list: &Middlewares, req: &ToolRequest, mut e: Error) -> Result<(ToolOutput, usize)> {
    let mut req = req.clone();
    for (i, m) in list.iter().enumerate().rev() {
        if !e.kind().is_failure() {
            break;
        }
        req.cx = cx.in_hook(Hook::OnToolError, i, Some(&req.call.id));
        match run_hook(cx, &**m, m.on_tool_error(&req.cx, &req, &e)).await {
            Ok(Some(Flow::Answer(output))) => return Ok((output, i)),
            Ok(_) => {}
            Err(other) => e = other,
        }
    }
    Err(e)
}

/// The middlewares with a chunk hook.
fn with_chunk_hook(list: &Middlewares) -> impl Iterator<Item = Arc<dyn Middleware>> {
    list.iter().filter(|m| m.chunk_hook().is_some()).cloned()
}

/// Creates one transform of all chunk hooks, innermost first.
fn transform(cx: &RunCx, list: Middlewares, sink: &ChunkSink) -> ChunkSink {
    let cx = cx.clone();
    sink.with(move |mut chunk| {
        for m in list.iter().rev() {
            let before = m.observer().then(|| chunk.clone());
            let hook = AssertUnwindSafe(|| match m.chunk_hook() {
                Some(hook) => hook.stream_chunk(&cx, chunk),
                None => Ok(Some(chunk)),
            });
            let result = catch_unwind(hook).unwrap_or_else(|panic| Err(panicked(panic)));
            match attributed(&cx, &**m, result)?.unwrap_or(before) {
                Some(next) => chunk = next,
                None => return Ok(None),
            }
        }
        Ok(Some(chunk))
    })
}

/// Runs a hook of `m`; a panic becomes an error.
pub(super) async fn run_hook<T>(
    cx: &RunCx,
    m: &dyn Middleware,
    hook: impl Future<Output = Result<T>>,
) -> Result<Option<T>> {
    attributed(cx, m, AssertUnwindSafe(hook).catch_unwind().await.unwrap_or_else(|panic| Err(panicked(panic))))
}

/// Creates the error of a hook that panicked.
#[cold]
pub(super) fn panicked(panic: Box<dyn Any + Send>) -> Error {
    Error::from_panic(ErrorKind::Middleware, "a hook", panic)
}

/// Attributes an error to its middleware; an observer's error is reported and dropped (`None`).
#[inline]
fn attributed<T>(cx: &RunCx, m: &dyn Middleware, result: Result<T>) -> Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(e) => attribute(cx, m, e).map(|()| None),
    }
}

#[cold]
fn attribute(cx: &RunCx, m: &dyn Middleware, e: Error) -> Result<()> {
    let reported = m.observer() && e.kind() != ErrorKind::Interrupted;
    let named = e.with_context("middleware", m.name());
    if !reported {
        return Err(named);
    }
    cx.emit(EventKind::Warning { message: named.to_string() });
    Ok(())
}

#[cfg(test)]
mod tests {
    use tower::{ServiceExt, service_fn};

    use super::*;
    use crate::{history::History, testing::detached_run};

    #[tokio::test]
    async fn a_run_that_is_to_stop_calls_no_model_though_it_has_no_hooks() {
        let run = detached_run(History::default());
        let answers = service_fn(|_: ModelRequest| async { Ok::<_, Error>(ModelResponse::new("called")) });
        let service = ModelHooksLayer::new(Arc::new([])).layer(ModelService::new(answers));
        let request = || ModelRequest::new(run.cx().clone());
        assert_eq!(service.clone().oneshot(request()).await.expect("answered").message.text(), "called");
        run.cx().stop("enough");
        let e = service.oneshot(request()).await.expect_err("stopped");
        assert_eq!((e.kind(), e.message()), (ErrorKind::Stopped, "enough"));
    }
}
