//! Storage interface of uploaded files.

use std::fmt;

use agent::{Result, async_trait};
use bytes::Bytes;
use serde::{Deserialize, Serialize};

/// Metadata of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FileInfo {
    /// Id: the SHA-256 of the content, in hexadecimal digits.
    pub id: String,
    /// Name for people and models.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Media type, detected from the content.
    pub mime: String,
    /// Size in bytes.
    pub bytes: u64,
    /// Time of the last upload: milliseconds since 1970, UTC.
    pub created: u64,
}

/// Storage used by a tenant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoreUsage {
    /// Number of files.
    pub files: u64,
    /// Total size in bytes.
    pub bytes: u64,
}

/// Exclusive right to add a file of one tenant, until it is dropped: see [`ContentStore::turn`].
pub struct Turn {
    _lock: Box<dyn Send + Sync>,
}

impl Turn {
    /// Wraps the guard of a lock.
    pub fn new(lock: impl Send + Sync + 'static) -> Self {
        Self { _lock: Box::new(lock) }
    }
}

impl fmt::Debug for Turn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Turn")
    }
}

/// Storage of uploaded files, separate for each tenant. Ids are validated by the caller: 64
/// hexadecimal digits.
#[async_trait]
pub trait ContentStore: Send + Sync + 'static {
    /// Stores a file and replaces one of the same id. Atomic: the file is stored completely or not
    /// at all.
    ///
    /// # Errors
    /// [`ErrorKind::Store`](agent::ErrorKind::Store) if the file could not be stored.
    async fn put(&self, tenant: &str, info: &FileInfo, bytes: Bytes) -> Result<()>;

    /// Returns the metadata of a file.
    ///
    /// # Errors
    /// The errors of [`put`](Self::put).
    async fn info(&self, tenant: &str, id: &str) -> Result<Option<FileInfo>>;

    /// Returns the content of a file.
    ///
    /// # Errors
    /// The errors of [`put`](Self::put).
    async fn read(&self, tenant: &str, id: &str) -> Result<Option<Bytes>>;

    /// Deletes a file, if it exists.
    ///
    /// # Errors
    /// The errors of [`put`](Self::put).
    async fn delete(&self, tenant: &str, id: &str) -> Result<()>;

    /// Waits until no other caller, in any process that shares the store, adds a file of the tenant,
    /// and keeps others waiting until the result is dropped. Quotas are checked meanwhile.
    ///
    /// # Errors
    /// The errors of [`put`](Self::put).
    async fn turn(&self, tenant: &str) -> Result<Turn>;

    /// Returns the storage used by a tenant.
    ///
    /// # Errors
    /// The errors of [`put`](Self::put).
    async fn usage(&self, tenant: &str) -> Result<StoreUsage>;

    /// Deletes all files whose last upload is before this time (milliseconds since 1970, UTC), and
    /// returns their number.
    ///
    /// # Errors
    /// The errors of [`put`](Self::put).
    async fn sweep(&self, before: u64) -> Result<u64>;
}
