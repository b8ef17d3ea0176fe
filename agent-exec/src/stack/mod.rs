//! Composed stacks around model and tool calls: hooks, then wraps and layers as registered, and the
//! call itself innermost.

mod compose;
mod composed;
mod core;
mod entry;
mod guard;
mod model_core;
mod named;
pub(crate) mod table;
mod tools;

pub(crate) use self::{
    compose::{Item, middlewares, model, short_name},
    entry::ToolEntry,
    guard::caught,
    named::Named,
    table::ToolTable,
    tools::Tools,
};
