//! [`Limits`].

use std::time::Duration;

/// Resource limits of one program with its descendants. The [`Guarantees`](super::Guarantees) tell
/// which of them are enforced on this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// CPU time per process. Default: 10 minutes.
    pub cpu: Duration,
    /// Memory in bytes: per process, and for all together if control groups are available. Default:
    /// 2 GiB.
    pub memory: u64,
    /// Maximum of concurrent processes and threads. Default: 256.
    pub processes: u32,
    /// Maximum size of a written file in bytes. Default: 1 GiB.
    pub file: u64,
    /// Maximum of open files per process. Default: 1,024.
    pub open_files: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self { cpu: Duration::from_secs(600), memory: 2 << 30, processes: 256, file: 1 << 30, open_files: 1_024 }
    }
}
