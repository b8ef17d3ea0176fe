//! JSON Schemas in the dialects of servers.

pub(crate) mod closed;
pub(crate) mod open_api;
