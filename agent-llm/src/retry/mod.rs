//! Trying model calls again: [`RetryLayer`].

mod layer;
mod policy;
mod service;

pub use agent_core::model::Backoff;

pub use self::{layer::RetryLayer, service::Retry};
