//! Tests of teams.

mod common;
mod control;
mod ends;
mod questions;
mod recovery;
mod running;
