//! Documents of others, read within limits and away from the threads that drive runs.

pub(crate) mod apart;
pub(crate) mod pdf;
