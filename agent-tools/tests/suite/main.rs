//! The suites of agent-tools, in one program.

mod arguments;
#[cfg(feature = "mcp")]
mod mcp;
#[cfg(feature = "openapi")]
mod openapi;
#[cfg(feature = "plugins")]
mod plugins;
mod retrieval;
#[cfg(feature = "sandbox")]
mod sandbox;
#[cfg(feature = "sandbox")]
mod shell;
mod skills;
mod structured;
mod support;
#[cfg(feature = "macros")]
mod tool_macro;
mod tool_sets;
#[cfg(feature = "web")]
mod web;
mod workspace;
