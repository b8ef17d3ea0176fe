//! Stacks of middlewares: their order, and what each of them must stand.

mod at_work;
mod builtins;
mod conformance;
mod order;
