//! Tower layer of the `wrap_*` hooks of adjacent middlewares.

use std::task::{Context, Poll};

use futures::future::BoxFuture;
use tower::{Layer, Service};

use super::{Middlewares, ModelNext, ToolNext};
use crate::{
    error::{Error, Result},
    future::boxed,
    llm::ModelResponse,
    model::{ModelRequest, ModelService},
    tool::{ToolRequest, ToolService},
    tooling::ToolOutput,
};

macro_rules! wrap {
    ($(#[$doc:meta])* $layer:ident, $service:ident, $inner:ty, $next:ident, $req:ty, $res:ty) => {
        $(#[$doc])*
        #[derive(Clone)]
        pub struct $layer(Middlewares);

        /// Service of the layer of the same name.
        #[derive(Clone)]
        pub struct $service {
            list: Middlewares,
            inner: $inner,
        }

        impl $layer {
            /// Creates the layer of these wraps, outermost first.
            pub fn new(list: Middlewares) -> Self {
                Self(list)
            }
        }

        impl Layer<$inner> for $layer {
            type Service = $service;

            fn layer(&self, inner: $inner) -> $service {
                $service { list: self.0.clone(), inner }
            }
        }

        impl Service<$req> for $service {
            type Response = $res;
            type Error = Error;
            type Future = BoxFuture<'static, Result<$res>>;

            /// Always ready: the inner stack is awaited per attempt, on a clone.
            fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<()>> {
                Poll::Ready(Ok(()))
            }

            fn call(&mut self, req: $req) -> Self::Future {
                let Self { list, inner } = self.clone();
                boxed(|| async move { $next::new(&list, &inner).run(req).await })
            }
        }

        super::debug_by_name!($layer, $service, list);
    };
}

wrap!(
    /// Layer of the `wrap_model_call` hooks of adjacent middlewares, entered once per attempt.
    ModelWrapLayer, ModelWrap, ModelService, ModelNext, ModelRequest, ModelResponse
);
wrap!(
    /// Layer of the `wrap_tool_call` hooks of adjacent middlewares, entered once per attempt.
    ToolWrapLayer, ToolWrap, ToolService, ToolNext, ToolRequest, ToolOutput
);
