//! Making a slow model call a second time beside the first: [`HedgeLayer`].

mod gate;
mod latency;
mod layer;
mod race;
mod service;

pub use self::{layer::HedgeLayer, service::Hedge};
