//! Trying model calls again: [`RetryLayer`].

mod backoff;
mod layer;
mod policy;
mod service;

pub use self::{backoff::Backoff, layer::RetryLayer, service::Retry};
