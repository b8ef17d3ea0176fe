//! Resource limits of programs in a sandbox.

use agent_core::Result;
use agent_tools::sandbox::Limits;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::config::file::seconds;

/// Resource limits of programs; omitted limits have their defaults.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct ProgramLimits {
    /// Seconds of the processor for each process. Default: 600.
    #[schemars(range(min = 0.001))]
    cpu: Option<f64>,
    /// Bytes of memory. Default: 2 GiB.
    memory: Option<u64>,
    /// Processes at a time. Default: 256.
    processes: Option<u32>,
    /// Bytes of a file that is written. Default: 1 GiB.
    file: Option<u64>,
    /// Files that a process has open. Default: 1,024.
    open_files: Option<u32>,
}

impl ProgramLimits {
    /// # Errors
    /// Invalid durations.
    pub(super) fn limits(self) -> Result<Limits> {
        let mut limits = Limits::default();
        limits.cpu = self.cpu.map(seconds).transpose()?.unwrap_or(limits.cpu);
        limits.memory = self.memory.unwrap_or(limits.memory);
        limits.processes = self.processes.unwrap_or(limits.processes);
        limits.file = self.file.unwrap_or(limits.file);
        limits.open_files = self.open_files.unwrap_or(limits.open_files);
        Ok(limits)
    }
}
