//! Where files are.

use agent::{Result, async_trait};
use bytes::Bytes;
use serde::{Deserialize, Serialize};

/// What is known of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FileInfo {
    /// Its id: the SHA-256 of its bytes, in hexadecimal digits.
    pub id: String,
    /// Its name, for people and models.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Its media type, as its bytes show it.
    pub mime: String,
    /// How many bytes it has.
    pub bytes: u64,
    /// When it was uploaded last: milliseconds since 1970, UTC.
    pub created: u64,
}

/// What a tenant has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoreUsage {
    /// Files.
    pub files: u64,
    /// Their bytes together.
    pub bytes: u64,
}

/// Keeps files, each tenant's apart. Ids are checked before they come here: 64 hexadecimal digits.
#[async_trait]
pub trait ContentStore: Send + Sync + 'static {
    /// Keeps a file; one of the same id is replaced. When it answers, the file is there, or nothing of it.
    ///
    /// # Errors
    /// [`ErrorKind::Store`](agent::ErrorKind::Store) if it cannot.
    async fn put(&self, tenant: &str, info: &FileInfo, bytes: Bytes) -> Result<()>;

    /// What is known of a file.
    ///
    /// # Errors
    /// As [`put`](Self::put).
    async fn info(&self, tenant: &str, id: &str) -> Result<Option<FileInfo>>;

    /// The bytes of a file.
    ///
    /// # Errors
    /// As [`put`](Self::put).
    async fn read(&self, tenant: &str, id: &str) -> Result<Option<Bytes>>;

    /// Keeps a file no longer, if it is there.
    ///
    /// # Errors
    /// As [`put`](Self::put).
    async fn delete(&self, tenant: &str, id: &str) -> Result<()>;

    /// What a tenant has.
    ///
    /// # Errors
    /// As [`put`](Self::put).
    async fn usage(&self, tenant: &str) -> Result<StoreUsage>;

    /// Lets go of all files that were uploaded before this time (milliseconds since 1970, UTC), and says how many.
    ///
    /// # Errors
    /// As [`put`](Self::put).
    async fn sweep(&self, before: u64) -> Result<u64>;
}
