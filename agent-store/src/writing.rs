//! How a journal writes: what the builders of all of them set.

use std::time::Duration;

use agent_core::{Error, Result};

use crate::{Durability, blob::BLOB_BYTES};

/// How a journal writes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Writing {
    pub(crate) durability: Durability,
    pub(crate) lease_ttl: Duration,
    pub(crate) group: usize,
    pub(crate) queue_bytes: usize,
    pub(crate) blob_bytes: usize,
}

impl Default for Writing {
    fn default() -> Self {
        Self {
            durability: Durability::default(),
            lease_ttl: Duration::from_secs(30),
            group: 256,
            queue_bytes: 256 << 20,
            blob_bytes: BLOB_BYTES,
        }
    }
}

impl Writing {
    /// The shortest lease: its renewal must not come too late because the disk or the network was slow once.
    const MIN_TTL: Duration = Duration::from_secs(1);

    /// Refuses what cannot work.
    pub(crate) fn check(&self) -> Result<()> {
        let (least, ttl) = (Self::MIN_TTL, self.lease_ttl);
        match ttl < least {
            true => {
                Err(Error::config(format!("a lease of {ttl:?} cannot be kept: set lease_ttl to {least:?} or more")))
            }
            false => Ok(()),
        }
    }

    /// How often leases are renewed, and how long what is in the way is waited for: a third of the lease, so that two
    /// renewals can fail before it expires.
    pub(crate) fn heartbeat(&self) -> Duration {
        self.lease_ttl / 3
    }
}

/// The setters of a builder that has a [`Writing`].
macro_rules! writing_setters {
    () => {
        /// Sets when an append is acknowledged. Default: [`Durability::Sync`](crate::Durability::Sync).
        pub fn durability(mut self, durability: crate::Durability) -> Self {
            self.writing.durability = durability;
            self
        }

        /// Sets how long a dead process keeps its sessions from others. Default: 30 seconds; at least one.
        ///
        /// A lease is renewed three times as often. For as long as that a transaction of another process is waited for, and a
        /// lost connection is tried again.
        pub fn lease_ttl(mut self, ttl: std::time::Duration) -> Self {
            self.writing.lease_ttl = ttl;
            self
        }

        /// Sets how many appends share a transaction at most. Default: 256; at least one.
        pub fn group(mut self, appends: usize) -> Self {
            self.writing.group = appends.max(1);
            self
        }

        /// Sets how many bytes of entries may wait to be written. Default: 256 MiB.
        ///
        /// A run waits for the acknowledgement of what it appends, so there is rarely more than a few entries of each. An
        /// append that finds the queue full fails, and its run with it: better than a process without memory.
        pub fn queue_bytes(mut self, bytes: usize) -> Self {
            self.writing.queue_bytes = bytes;
            self
        }

        /// Sets from how many bytes on a string in an entry is kept by content, once for all entries that have it. Default:
        /// 4 KiB; at least one byte. A journal can be read whatever it was written with.
        pub fn blob_bytes(mut self, bytes: usize) -> Self {
            self.writing.blob_bytes = bytes.max(1);
            self
        }
    };
}

pub(crate) use writing_setters;
