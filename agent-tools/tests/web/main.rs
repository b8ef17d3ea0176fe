//! Web tools, against servers on loopback.

#[path = "../support/mod.rs"]
mod support;

mod bodies;
mod pages;
mod refusals;
mod robots;
mod search;
mod server;
