//! Helpers shared by the measuring programs.

pub mod builtins;
