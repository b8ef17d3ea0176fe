//! The suites of agent-restate, in one program.

mod common;
mod engines;
mod served;
mod sessions;
mod waits;
