//! The suites of agent-store, in one program.

mod common;
mod conformance;
mod ledger;
mod postgres;
mod queue;
mod sqlite;
mod vectors;
