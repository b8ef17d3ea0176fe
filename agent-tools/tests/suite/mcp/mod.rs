//! Servers of the Model Context Protocol: well-behaved ones in this process, wild ones, programs and HTTP.

mod conformance;
mod damaged;
mod failures;
mod listing;
mod oauth;
mod offers;
mod old;
mod programs;
mod questions;
#[cfg(unix)]
mod real;
mod repairs;
mod resources;
mod results;
mod served;
mod sessions;
mod stateless;
mod stateless_server;
mod support;

use support::{double, wild};
