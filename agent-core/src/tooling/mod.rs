//! Definitions of tools and their calls, independent of any run. The public module
//! [`tool`](crate::tool) re-exports them.

mod options;
mod output;
mod server;
mod spec;

pub use self::{
    options::{Doubt, Effect, OutputText, Reconciled, Render, StateRead, StateWrite, ToolHints, ToolOptions},
    output::{CallResult, ToolOutput, ToolResults, value_to_text},
    server::{Computer, FileSearch, Location, RemoteMcp, Secret, ServerTool, WebFetch, WebSearch},
    spec::{ToolSpec, ToolSpecs, WireKey, portable_keys},
};
