//! Tests of teams.

mod common;
mod control;
mod ends;
mod patterns;
mod questions;
mod recovery;
mod running;
