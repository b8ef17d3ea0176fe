//! Write settings shared by the builders of all journals.

use std::time::Duration;

use agent_core::{Error, Result};

use crate::{Durability, blob::BLOB_BYTES};

/// Write settings of a journal.
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
    /// Shortest lease: a single delay of the disk or the network must not make its renewal late.
    const MIN_TTL: Duration = Duration::from_secs(1);

    /// Rejects settings that cannot work.
    pub(crate) fn check(&self) -> Result<()> {
        let (least, ttl) = (Self::MIN_TTL, self.lease_ttl);
        match ttl < least {
            true => Err(Error::config(format!("a lease of {ttl:?} is too short: set lease_ttl to {least:?} or more"))),
            false => Ok(()),
        }
    }

    /// Returns the renewal interval, which is also the time to wait for locks of others: a third of
    /// the lease, so that two renewals can fail before it expires.
    pub(crate) fn heartbeat(&self) -> Duration {
        self.lease_ttl / 3
    }
}

/// Setters of a builder with a [`Writing`].
macro_rules! writing_setters {
    () => {
        /// Sets when an append is acknowledged. Default: [`Durability::Sync`](crate::Durability::Sync).
        pub fn durability(mut self, durability: crate::Durability) -> Self {
            self.writing.durability = durability;
            self
        }

        /// Sets the duration of a lease: the time after which other processes may take over the
        /// sessions of a dead process. Default: 30 seconds; minimum: one second.
        ///
        /// A lease is renewed three times within its duration. A third of it is also the time to
        /// wait for another process's transaction and to retry a lost connection.
        pub fn lease_ttl(mut self, ttl: std::time::Duration) -> Self {
            self.writing.lease_ttl = ttl;
            self
        }

        /// Sets the maximum number of appends per transaction. Default: 256; minimum: one.
        pub fn group(mut self, appends: usize) -> Self {
            self.writing.group = appends.max(1);
            self
        }

        /// Sets the maximum size of entries that wait to be written, in bytes. Default: 256 MiB.
        ///
        /// A run waits for the acknowledgement of its appends, so each run rarely has more than a
        /// few entries in the queue. An append that finds the queue full fails, and its run with
        /// it; the limit protects the process from running out of memory.
        pub fn queue_bytes(mut self, bytes: usize) -> Self {
            self.writing.queue_bytes = bytes;
            self
        }

        /// Sets the size in bytes from which a string in an entry is stored by content, once for
        /// all entries that contain it. Default: 4 KiB; minimum: one byte. Reading does not depend
        /// on this setting.
        pub fn blob_bytes(mut self, bytes: usize) -> Self {
            self.writing.blob_bytes = bytes.max(1);
            self
        }
    };
}

pub(crate) use writing_setters;
