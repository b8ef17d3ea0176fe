//! Hedging of slow model calls: [`HedgeLayer`].

mod gate;
mod latency;
mod layer;
mod race;
mod service;

pub use self::{layer::HedgeLayer, service::Hedge};
