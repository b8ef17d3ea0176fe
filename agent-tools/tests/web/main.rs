//! Web tools, against servers on loopback.

#[path = "../support/mod.rs"]
mod support;

#[path = "../support/document.rs"]
mod document;

#[path = "../support/server.rs"]
mod server;

mod bodies;
mod pages;
mod refusals;
mod robots;
mod search;
mod tools;
