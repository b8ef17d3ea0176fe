//! Tower layers, and middleware with a single hook, made from closures.
//!
//! For application-specific policies of a few lines. [`from_fn`], [`before_model_fn`] and the other
//! functions are at the root of the crate; this module contains the types that [`from_fn`] returns,
//! in case they must be named.
//!
//! ```
//! use agent_core::{ModelRequest, ModelResponse, ModelService, Result};
//! use agent_middleware::from_fn::{FromFnLayer, from_fn};
//! use tower::ServiceExt;
//!
//! async fn as_it_is(request: ModelRequest, next: ModelService) -> Result<ModelResponse> {
//!     next.oneshot(request).await
//! }
//!
//! fn layer() -> FromFnLayer<impl AsyncFn(ModelRequest, ModelService) -> Result<ModelResponse>> {
//!     from_fn(as_it_is)
//! }
//! # drop(layer());
//! ```

mod hook_fn;

use std::{
    any::type_name,
    fmt,
    sync::Arc,
    task::{Context, Poll},
};

use agent_core::{Error, Result};
use tower::{Layer, Service};

pub use self::hook_fn::{after_model_fn, after_tool_fn, before_model_fn, before_tool_fn};

/// Creates a tower layer from an async closure.
///
/// The closure receives the request and the rest of the stack. `next` is an ordinary service that
/// can be cloned: run it once, not at all, or repeatedly on clones. The same function creates
/// layers for models, tools and agents; the types of the closure's arguments decide which.
///
/// | around | request | `next` |
/// |---|---|---|
/// | model calls | [`ModelRequest`](agent_core::ModelRequest) | [`ModelService`](agent_core::ModelService) |
/// | tool calls | [`ToolRequest`](agent_core::ToolRequest) | [`ToolService`](agent_core::ToolService) |
/// | whole runs | [`RunRequest`](agent_core::RunRequest) | [`AgentService`](agent_core::middleware::AgentService) |
///
/// Use it for an application-specific policy of a few lines. For a policy with a configuration, or
/// with more than one hook, implement a [`Middleware`](agent_core::Middleware).
///
/// # Order
///
/// The layer applies where it is registered, and is entered once per attempt of an outer retry.
///
/// ```text
/// // right: every attempt is timed separately
/// builder.model_layer(retry).model_layer(from_fn(time_it))
/// // wrong for single attempts: measures all attempts and the delays between them
/// builder.model_layer(from_fn(time_it)).model_layer(retry)
/// ```
///
/// # Example
///
/// A model that may fail once:
///
/// ```
/// use agent_core::{AssistantMessage, Error, ErrorKind, ModelRequest, ModelResponse, ModelService};
/// use agent_middleware::from_fn;
/// use tower::{Layer, ServiceExt, service_fn};
///
/// let once_more = from_fn(async |req: ModelRequest, next: ModelService| match next.clone().oneshot(req.clone()).await {
///     Err(e) if e.is_retryable() => next.oneshot(req).await,
///     answered => answered,
/// });
/// # use agent_core::{History, Retry, testing::detached_run};
/// # use std::sync::atomic::{AtomicU32, Ordering};
/// # static CALLS: AtomicU32 = AtomicU32::new(0);
/// # let shaky = service_fn(|_: ModelRequest| async {
/// #     match CALLS.fetch_add(1, Ordering::SeqCst) {
/// #         0 => Err(Error::new(ErrorKind::Transport, "cut off").with_retry(Retry::Temporary(None))),
/// #         _ => Ok(ModelResponse::new("fine")),
/// #     }
/// # });
/// # let run = detached_run(History::default());
/// # let req = ModelRequest::new(run.cx().clone());
/// let model = once_more.layer(ModelService::new(shaky));
/// # let rt = tokio::runtime::Builder::new_current_thread().build().expect("starts");
/// # rt.block_on(async {
/// assert_eq!(model.oneshot(req).await?.message.text(), "fine");
/// # Ok::<_, Error>(()) })?;
/// # Ok::<_, Error>(())
/// ```
pub fn from_fn<F, Req, Next, Fut, Res>(f: F) -> FromFnLayer<F>
where
    F: Fn(Req, Next) -> Fut,
    Fut: Future<Output = Result<Res>>,
{
    FromFnLayer { f: Arc::new(f) }
}

/// Layer returned by [`from_fn`].
pub struct FromFnLayer<F> {
    f: Arc<F>,
}

/// Service of a [`FromFnLayer`].
pub struct FromFn<F, S> {
    f: Arc<F>,
    inner: S,
}

impl<F, S> Layer<S> for FromFnLayer<F> {
    type Service = FromFn<F, S>;

    fn layer(&self, inner: S) -> FromFn<F, S> {
        FromFn { f: self.f.clone(), inner }
    }
}

impl<F, S, Req, Fut, Res> Service<Req> for FromFn<F, S>
where
    F: Fn(Req, S) -> Fut,
    Fut: Future<Output = Result<Res>>,
    S: Service<Req, Error = Error> + Clone,
{
    type Response = Res;
    type Error = Error;
    type Future = Fut;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<()>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, req: Req) -> Fut {
        // The closure receives the service that is ready; the new clone stays.
        let fresh = self.inner.clone();
        let ready = std::mem::replace(&mut self.inner, fresh);
        (self.f)(req, ready)
    }
}

impl<F> Clone for FromFnLayer<F> {
    fn clone(&self) -> Self {
        Self { f: self.f.clone() }
    }
}

impl<F, S: Clone> Clone for FromFn<F, S> {
    fn clone(&self) -> Self {
        Self { f: self.f.clone(), inner: self.inner.clone() }
    }
}

impl<F> fmt::Debug for FromFnLayer<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("FromFnLayer").field(&format_args!("{}", type_name::<F>())).finish()
    }
}

impl<F, S: fmt::Debug> fmt::Debug for FromFn<F, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = type_name::<F>();
        f.debug_struct("FromFn").field("f", &format_args!("{name}")).field("inner", &self.inner).finish()
    }
}
