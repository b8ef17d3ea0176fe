//! Untrusted documents, parsed within limits and off the threads that drive runs.

pub(crate) mod apart;
pub(crate) mod pdf;
