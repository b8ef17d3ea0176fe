//! Multi-role problem solving: a [`Solver`] solves a query with a planner, a worker, a verifier and
//! a generator.
//!
//! The crate is an application of `agent-exec` and uses only its public API.
//!
//! * [`Models`] assigns a model to each role, [`Prompts`] defines the prompts.
//! * [`QueryAnalysis`], [`NextStep`], [`ToolCommand`] and [`MemoryVerification`] are the forms of
//!   the roles' answers. Each has a tolerant parser that never guesses.
//! * [`Memory`] contains the facts known to the roles; [`Solution`] is the result, with its audit
//!   record and its traces.
//!
//! A solver's progress is derived from the run's history: the solver replays the history from its
//! beginning, which yields the next action. All operations on runs of agents therefore also work
//! for runs of solvers.

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
