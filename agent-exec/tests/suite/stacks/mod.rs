//! Stacks of middlewares: their order, and their conformance.

mod at_work;
mod builtins;
mod conformance;
mod order;
