//! Whole runs under guards, and under attack.

#[path = "../common/mod.rs"]
mod common;
mod guardrails;
mod injection;
