//! [`Limits`].

use std::time::Duration;

/// What one program may use, with all that it starts. What holds of it on this machine is in the [`Guarantees`](super::Guarantees).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Time of the processor for each process. Default: 10 minutes.
    pub cpu: Duration,
    /// Bytes of memory: for each process, and for all together where control groups hold. Default: 2 GiB.
    pub memory: u64,
    /// Processes and threads at a time. Default: 256.
    pub processes: u32,
    /// Bytes of a file that is written. Default: 1 GiB.
    pub file: u64,
    /// Files that a process has open. Default: 1,024.
    pub open_files: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self { cpu: Duration::from_secs(600), memory: 2 << 30, processes: 256, file: 1 << 30, open_files: 1_024 }
    }
}
