//! Simulated runs: an agent in a world in which everything goes wrong that can, the same way each time for the same seed.

mod invariants;
mod simulation;
mod world;

pub use self::{
    simulation::{Simulated, Simulation},
    world::World,
};
