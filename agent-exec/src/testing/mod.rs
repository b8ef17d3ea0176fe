//! Test kits: simulated runs with fault injection, reproducible by their seed ([`Simulation`]);
//! conformance of middleware ([`Conformance`]) and of engines ([`engines`]).

mod conformance;
pub mod engines;
mod invariants;
mod simulation;
#[cfg(test)]
mod tests;
mod world;

pub use self::{
    conformance::{Conformance, Violation},
    simulation::{Broken, Simulated, Simulation},
    world::World,
};
