//! Four roles on one executor: [`Solver`] has a planner, a worker, a verifier and a generator solve a query.
//!
//! It is an application on `agent-exec`, and uses nothing of it that a stranger's crate could not use.
//!
//! * [`Models`] says which model plays which role, [`Prompts`] what they are asked.
//! * [`QueryAnalysis`], [`NextStep`], [`ToolCommand`] and [`MemoryVerification`] are the forms of what they answer. Each has a
//!   tolerant reader, which never guesses.
//! * [`Memory`] is what they know; [`Solution`] is what came out, with its record and its traces.
//!
//! A solver's course is not kept anywhere beside the run's history: it is played over the history again, up to where that ends,
//! and says what comes next. Whatever can be done to the run of an agent can be done to a solver's.

mod ask;
mod cache;
mod command;
mod conductor;
mod memory;
mod models;
mod output;
mod progress;
mod prompts;
mod query;
mod read;
mod schemas;
mod script;
mod solution;
mod solver;
mod tools;

pub use self::{
    ask::{Method, Role, RoleCall},
    cache::QueryCache,
    command::{PlannedCall, ToolCommand},
    memory::{Action, CallOutcome, Memory, StepProblem},
    models::{Models, Slot},
    output::Output,
    prompts::{DefaultPrompts, Prompts, Scene},
    query::{Query, QueryFile},
    schemas::{MemoryVerification, NextStep, QueryAnalysis, Unreadable},
    solution::{Ending, RoleTrace, Solution},
    solver::{Solver, SolverBuilder},
    tools::ToolMetadata,
};
