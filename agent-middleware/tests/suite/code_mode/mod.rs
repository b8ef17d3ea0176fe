//! Programs that call tools, in whole runs.

mod hostile;
mod journal;
mod left;
mod programs;
mod questions;
mod restarts;
mod steps;
mod world;
