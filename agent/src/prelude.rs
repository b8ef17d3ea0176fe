//! Common imports of applications: `use agent::prelude::*;`.
//!
//! It holds the names that agents, tools and middlewares use, and [`Result`] with this framework's error
//! as its default. Import items that are used once, such as a store or a provider, where you need them.

/// The page of `agent_core` shows the hooks as authors write them.
#[doc(no_inline)]
pub use agent_core::Middleware;

pub use crate::{
    Agent, Effect, Error, ErrorKind, EventKind, Flow, Message, ModelRequest, ModelResponse, Result, RunCx, RunEnd,
    RunRequest, Tool, ToolOutput, ToolRequest, Verdict, async_trait,
};

#[cfg(feature = "macros")]
pub use agent_tools::tool;
