//! Doubles for tests of middleware, tools and models.

mod run;
mod scripted;
mod seen;
mod trace;
mod turn;

pub use self::{run::detached_run, scripted::ScriptedModel, seen::Seen, trace::HookTrace, turn::Turn};
