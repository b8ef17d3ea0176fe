//! Retries of failed model calls: [`RetryLayer`].

mod layer;
mod plain;
mod policy;
mod service;

pub use agent_core::model::Backoff;

pub use self::{layer::RetryLayer, service::Retry};
