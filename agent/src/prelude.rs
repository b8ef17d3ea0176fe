//! Common imports of applications: `use agent::prelude::*;`.
//!
//! It holds what one writes down to build agents, tools and middleware, and [`Result`] with this framework's error as its
//! default. Items used once, such as a store or a provider, are imported where they are needed.

/// Its page there has the hooks as their authors write them.
#[doc(no_inline)]
pub use agent_core::Middleware;

pub use crate::{
    Agent, Effect, Error, ErrorKind, EventKind, Flow, Message, ModelRequest, ModelResponse, Result, RunCx, RunEnd,
    RunRequest, Tool, ToolOutput, ToolRequest, Verdict, async_trait,
};

#[cfg(feature = "macros")]
pub use agent_tools::tool;
