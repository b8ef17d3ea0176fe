//! What stands around a model call and around a tool call: hooks, wraps and layers as they were registered, composed once, and
//! the calls themselves innermost.

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
