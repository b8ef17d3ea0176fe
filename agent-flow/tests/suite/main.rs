//! The suites of agent-flow, in one program.

mod recovery;
mod solver;
