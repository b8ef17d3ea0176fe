//! The suites of the `agent` program, in one binary.

#![allow(clippy::unwrap_used)]

mod agent_files;
mod bare_middleware;
mod chat;
mod commands;
mod engines;
mod eval;
mod help;
mod language;
mod options;
mod outcomes;
mod own_providers;
mod postgres;
mod serve;
mod support;
mod teams;
