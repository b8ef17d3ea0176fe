//! Doubles for tests of middleware, tools and models.

mod every_hook;
mod rng;
mod run;
mod scripted;
mod seen;
mod trace;
mod turn;

pub use self::{
    every_hook::EveryHook,
    rng::SeededRng,
    run::{detached_run, detached_run_as},
    scripted::ScriptedModel,
    seen::Seen,
    trace::HookTrace,
    turn::Turn,
};
