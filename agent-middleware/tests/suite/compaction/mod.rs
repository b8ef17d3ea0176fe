//! Compaction: strategies, triggers, and effects on the run.

use crate::common;

mod emergency;
mod outputs;
mod random;
mod strategies;
mod summary;
mod triggers;
mod wild;
mod world;
