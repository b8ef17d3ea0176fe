//! Stacks of middlewares: their order, and what each of them must stand.

#[path = "../common/mod.rs"]
mod common;

mod at_work;
mod builtins;
mod conformance;
mod order;
