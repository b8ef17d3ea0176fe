//! Doubles for tests of middleware, tools and models.

mod run;
mod trace;

pub use self::{run::detached_run, trace::HookTrace};
