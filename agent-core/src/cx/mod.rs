//! [`RunCx`]: a run as its hooks, layers and tools see it; and [`EngineCx`], the executor's view.
//! The public modules [`run`](crate::run) and [`engine`](crate::engine) re-export them. Models,
//! tools and middlewares depend on this module: the values that a run passes to its descendants are
//! opaque here.

mod ask;
mod clock;
mod engine_cx;
mod inbox;
mod pause;
mod per_run;
mod run_cx;
mod scope;
mod tasks;

pub use self::{
    ask::Ask,
    clock::Clock,
    engine_cx::{EngineCx, EngineKey},
    inbox::Inbox,
    pause::Pause,
    per_run::PerRun,
    run_cx::RunCx,
    scope::Hook,
};
pub(crate) use self::{
    run_cx::{Inner, PendingRequests, is_at},
    scope::Scope,
    tasks::Tasks,
};
