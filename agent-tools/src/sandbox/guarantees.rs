//! [`Guarantees`].

use std::fmt;

/// Isolation guarantees of a sandbox, on the machine that it runs on.
///
/// `Display` prints a list for people, which states missing guarantees as clearly as existing ones.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Guarantees {
    /// Short description of the isolation backend.
    pub by: String,
    /// Programs neither read, write nor change files outside, except those that are given to them.
    /// They may learn names and sizes.
    pub files: bool,
    /// Programs reach neither a network nor a socket of the host.
    pub network: bool,
    /// Programs neither read, change nor signal processes of the host.
    pub processes: bool,
    /// The number of processes is limited, which contains a fork bomb.
    pub process_count: bool,
    /// The memory of all processes together is limited. Without this guarantee, the memory of each
    /// process is limited, except memory that it shares with others.
    pub memory: bool,
    /// Nothing outlives the command that started it, nor the application's process, however that
    /// ends.
    pub no_survivors: bool,
}

impl Guarantees {
    /// Creates a value without any guarantee.
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
