//! Whole runs under guards, and under attack.

mod guardrails;
mod injection;
