//! The rest of a stack, passed to `wrap_*` hooks.

use std::{fmt, sync::Arc};

use super::{Middleware, hooks::panicked};
use crate::{
    error::Result,
    future::catch_panic,
    llm::ModelResponse,
    model::{ModelRequest, ModelService},
    tool::{ToolRequest, ToolService},
    tooling::ToolOutput,
};

macro_rules! next {
    ($(#[$doc:meta])* $name:ident, $req:ty, $res:ty, $svc:ty, $hook:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy)]
        pub struct $name<'a> {
            rest: &'a [Arc<dyn Middleware>],
            inner: &'a $svc,
        }

        impl<'a> $name<'a> {
            /// Creates a stack of the wraps of `rest` around `inner`.
            pub fn new(rest: &'a [Arc<dyn Middleware>], inner: &'a $svc) -> Self {
                Self { rest, inner }
            }

            /// Runs the rest of the stack. `next` is `Copy`: run it again to retry or to fail over.
            pub fn run(self, req: $req) -> impl Future<Output = Result<$res>> + Send + 'a {
                let first = self.rest.first();
                let made = move || match first {
                    Some(m) => m.$hook(req.in_wrap(self.rest.len()), Self { rest: &self.rest[1..], ..self }),
                    None => self.inner.run(req),
                };
                catch_panic(made, move |panic| match first {
                    Some(m) => panicked(panic).with_context("middleware", m.name()),
                    None => panicked(panic),
                })
            }
        }

        impl fmt::Debug for $name<'_> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_list().entries(self.rest.iter().map(|m| m.name())).finish()
            }
        }
    };
}

next!(
    /// The rest of the model stack.
    ModelNext, ModelRequest, ModelResponse, ModelService, wrap_model_call
);
next!(
    /// The rest of the tool stack.
    ToolNext, ToolRequest, ToolOutput, ToolService, wrap_tool_call
);
