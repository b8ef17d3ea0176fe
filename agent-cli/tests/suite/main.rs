//! The suites of the `agent` program, in one binary.

mod agent_files;
mod chat;
mod commands;
mod engines;
mod eval;
mod help;
mod own_providers;
mod postgres;
mod serve;
mod support;
