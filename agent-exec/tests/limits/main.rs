//! How much a run may use and how long it may take, and what becomes of it then.

#[path = "../common/mod.rs"]
mod common;

mod budgets;
mod deadlines;
mod drain;
