//! Programs that call tools, in whole runs.

mod hostile;
mod journal;
mod programs;
mod restarts;
mod steps;
mod world;
