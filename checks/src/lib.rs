//! What the programs that measure have in common.

pub mod builtins;
