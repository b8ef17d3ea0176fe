//! Tests of teams.

mod common;
mod control;
mod directed;
mod ends;
mod kills;
mod pattern_teams;
mod patterns;
mod questions;
mod recovery;
mod running;
mod simulate;
