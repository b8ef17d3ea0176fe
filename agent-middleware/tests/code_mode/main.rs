//! Programs that call tools, in whole runs.

mod hostile;
mod programs;
mod restarts;
mod steps;
mod world;
