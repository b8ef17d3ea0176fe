//! The built-in parts.

pub(super) mod change;
pub(super) mod knowledge;
pub(super) mod middleware;
pub(super) mod model;
mod script;
pub(super) mod tools;
