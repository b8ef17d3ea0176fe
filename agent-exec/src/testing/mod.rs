//! Simulated runs: an agent in a world in which everything goes wrong that can, the same way each time for the same seed.

mod invariants;
mod simulation;
#[cfg(test)]
mod tests;
mod world;

pub use self::{
    simulation::{Broken, Simulated, Simulation},
    world::World,
};
