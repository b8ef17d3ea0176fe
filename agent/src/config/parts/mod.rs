//! The built-in parts.

pub(super) mod change;
pub(super) mod knowledge;
pub(super) mod middleware;
pub(super) mod model;
pub(super) mod tools;
