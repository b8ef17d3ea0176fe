//! Trying model calls again: [`RetryLayer`].

mod backoff;
mod layer;
mod service;

pub use self::{layer::RetryLayer, service::Retry};
