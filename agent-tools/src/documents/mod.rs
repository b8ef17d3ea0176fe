//! Untrusted documents, parsed within limits and off the threads that drive runs.

pub(crate) mod parser_pool;
pub(crate) mod pdf;
