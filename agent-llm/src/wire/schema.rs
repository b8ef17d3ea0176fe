//! JSON Schemas in the forms that servers take.

pub(crate) mod closed;
pub(crate) mod open_api;
