//! Agents as a [Restate](https://restate.dev) service. (Draft.)
mod blobs;
mod client;
mod endpoint;
mod engine;
mod handler;
mod http;
mod journal;
mod known;
mod ledger;
mod past;
mod record;
mod service;
mod session;
mod tell;

pub use self::{
    blobs::{BlobStore, FileBlobs},
    client::{Restate, RestateBuilder},
    endpoint::{AgentEndpoint, AgentEndpointBuilder},
    journal::RestateJournal,
    tell::Outcome,
};

/// The name of the service unless another is given.
pub const DEFAULT_SERVICE: &str = "Sessions";
