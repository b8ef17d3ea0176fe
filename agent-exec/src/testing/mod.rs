//! Simulated runs: an agent in a world in which everything goes wrong that can, the same way each time for the same seed. And
//! [`Conformance`]: what every middleware must stand; and [`engines`]: what every engine must do.

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
