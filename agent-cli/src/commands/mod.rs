//! What each command does.

mod attach;
mod doctor;
mod eval;
mod export;
mod mcp;
mod models;
mod new;
mod past;
mod queue;
mod serve;
mod sessions;
mod shell;
mod start;
mod stdio;
mod studio;
mod tools;
mod worker;

pub(crate) use self::{
    attach::attached,
    doctor::doctor,
    eval::eval,
    export::export,
    mcp::mcp,
    models::models,
    new::new,
    past::{approve, diff, fork, replay, resume},
    queue::queue,
    serve::serve,
    sessions::sessions,
    shell::{completions, man, schema},
    start::run,
    stdio::{acp, stdio},
    studio::studio,
    tools::tools,
    worker::worker,
};
