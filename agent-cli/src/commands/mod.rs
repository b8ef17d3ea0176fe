//! What each command does.

mod attach;
mod doctor;
mod export;
mod mcp;
mod models;
mod new;
mod past;
mod serve;
mod sessions;
mod shell;
mod start;
mod stdio;
mod studio;
mod tools;

pub(crate) use self::{
    attach::attached,
    doctor::doctor,
    export::export,
    mcp::mcp,
    models::models,
    new::new,
    past::{approve, diff, fork, replay, resume},
    serve::serve,
    sessions::sessions,
    shell::{completions, man, schema},
    start::run,
    stdio::{acp, stdio},
    studio::studio,
    tools::tools,
};
