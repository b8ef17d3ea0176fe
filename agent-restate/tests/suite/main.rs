//! The suites of agent-restate, in one program.

mod common;
#[path = "common/deeds.rs"]
mod deeds;
mod engines;
#[path = "common/process.rs"]
mod process;
mod served;
mod sessions;
mod waits;
