//! [`Guarantees`].

use std::fmt;

/// What a sandbox keeps its programs from, on the machine that it runs on.
///
/// Printed, it is a list for people: what does not hold is said as openly as what does.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Guarantees {
    /// What keeps the programs in, in a few words.
    pub by: String,
    /// Files outside are neither read nor written nor changed in any way, but for those that are given. Their names and sizes may be learned.
    pub files: bool,
    /// Nothing is reached over a network, nor over a socket of the host.
    pub network: bool,
    /// Processes of the host are neither read, nor changed, nor sent signals.
    pub processes: bool,
    /// The number of processes is limited: a fork bomb stays small.
    pub process_count: bool,
    /// The memory of all processes together is limited. Without it, that of each process is, but for what it shares with others.
    pub memory: bool,
    /// Nothing outlives the command that started it, nor the process of the application, however that ends.
    pub no_survivors: bool,
}

impl Guarantees {
    /// Nothing of it holds.
    pub fn none(by: impl Into<String>) -> Self {
        Self {
            by: by.into(),
            files: false,
            network: false,
            processes: false,
            process_count: false,
            memory: false,
            no_survivors: false,
        }
    }
}

impl fmt::Display for Guarantees {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "isolation: {}", self.by)?;
        for (holds, what) in [
            (self.files, "files outside are out of reach"),
            (self.network, "no network"),
            (self.processes, "processes of the host are out of reach"),
            (self.process_count, "the number of processes is limited"),
            (self.memory, "the memory of all processes together is limited"),
            (self.no_survivors, "nothing outlives its command"),
        ] {
            writeln!(f, "  {} {what}", if holds { "yes" } else { "NO " })?;
        }
        Ok(())
    }
}
