//! Whole runs with guards, and under attack.

mod guardrails;
mod injection;
