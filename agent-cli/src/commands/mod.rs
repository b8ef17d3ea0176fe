//! The commands.

mod attach;
mod doctor;
mod eval;
mod export;
mod mcp;
mod models;
mod new;
mod past;
#[cfg(feature = "serve")]
mod queue;
#[cfg(feature = "serve")]
mod serve;
mod sessions;
mod shell;
mod start;
mod stdio;
#[cfg(feature = "serve")]
mod store;
mod studio;
mod tools;
#[cfg(feature = "serve")]
mod worker;

#[cfg(feature = "chat")]
pub(crate) use self::attach::attached;
pub(crate) use self::{
    doctor::doctor,
    eval::eval,
    export::export,
    mcp::mcp,
    models::models,
    new::new,
    past::{approve, diff, fork, replay, resume},
    sessions::sessions,
    shell::{completions, man, schema},
    start::run,
    stdio::{acp, stdio},
    studio::studio,
    tools::tools,
};
#[cfg(feature = "serve")]
pub(crate) use self::{queue::queue, serve::serve, store::maintain, worker::worker};
