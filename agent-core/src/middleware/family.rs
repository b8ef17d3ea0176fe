//! Inheritance within a tree of runs: callable agents and middlewares.

use std::sync::Arc;

use super::{Middleware, Middlewares, hooks};
use crate::{
    cx::{EngineCx, RunCx},
    error::Result,
    request::SubAgents,
};

/// Agents that a run may call, and middlewares that it inherits and passes on.
pub(crate) struct Family {
    pub(crate) sub_agents: SubAgents,
    pub(crate) inherited: Middlewares,
    pub(crate) for_descendants: Middlewares,
}

impl RunCx {
    fn family(&self) -> &Family {
        self.0.family.downcast_ref().expect("a driver gives each run its family")
    }

    /// The agents that this run may call.
    pub(crate) fn sub_agents(&self) -> &SubAgents {
        &self.family().sub_agents
    }

    /// Middlewares inherited from ancestors, outermost first.
    pub(crate) fn inherited(&self) -> &Middlewares {
        &self.family().inherited
    }
}

impl<'a> EngineCx<'a> {
    /// Middlewares that the child runs inherit.
    pub fn descendant_middlewares(self) -> &'a Middlewares {
        &self.0.family().for_descendants
    }

    /// The middlewares inherited from ancestors, followed by `own`.
    pub fn effective_middlewares(self, own: &Middlewares) -> Middlewares {
        match self.0.inherited() {
            above if above.is_empty() => own.clone(),
            above => above.iter().chain(own.iter()).cloned().collect::<Arc<[_]>>(),
        }
    }

    /// Runs a hook of `m`. An error or a panic is attributed to the middleware; those of an
    /// observer are only reported.
    ///
    /// # Errors
    /// Those of the hook, unless the middleware is an observer;
    /// [`ErrorKind::Middleware`](crate::ErrorKind::Middleware) if the hook panicked.
    pub async fn run_hook<T: Default>(self, m: &dyn Middleware, hook: impl Future<Output = Result<T>>) -> Result<T> {
        hooks::run_hook(self.0, m, hook).await.map(Option::unwrap_or_default)
    }
}
