//! [`RunCx`]: a run as its hooks, layers and tools see it, and what only its executor sees of it. The rooms [`run`](crate::run)
//! and [`engine`](crate::engine) show it. Models, tools and middlewares stand above it: what a run hands to its descendants
//! is opaque here.

mod ask;
mod clock;
mod engine_cx;
mod inbox;
mod pause;
mod per_run;
mod run_cx;
mod tasks;

pub use self::{
    ask::Ask,
    clock::Clock,
    engine_cx::{EngineCx, EngineKey},
    inbox::Inbox,
    pause::Pause,
    per_run::PerRun,
    run_cx::RunCx,
};
pub(crate) use self::{
    run_cx::{Inner, PendingRequests},
    tasks::Tasks,
};
