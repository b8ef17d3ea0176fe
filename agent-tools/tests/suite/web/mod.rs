//! Web tools, with servers on loopback.

use crate::support;

use crate::support::document;

use crate::support::server;

mod bodies;
mod pages;
mod refusals;
mod robots;
mod search;
mod tools;
