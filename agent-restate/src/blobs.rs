//! Storage for values that are too large for a journal: [`BlobStore`].

use std::{borrow::Cow, fmt, io, path::PathBuf, sync::Arc, time::Duration};

use agent_core::{Error, ErrorKind, Result};
use async_trait::async_trait;
use bytes::Bytes;
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};

use crate::record::Stored;

/// Content-addressed storage for large values, shared by all processes of a deployment.
#[async_trait]
pub trait BlobStore: Send + Sync + 'static {
    /// Stores `bytes` under `name`, their SHA-256 in hexadecimal. Idempotent: the same bytes may be
    /// stored more than once.
    ///
    /// # Errors
    /// [`ErrorKind::Store`] if the bytes were not stored.
    async fn put(&self, name: &str, bytes: Bytes) -> Result<()>;

    /// Returns the bytes with that name.
    ///
    /// # Errors
    /// [`ErrorKind::Store`] if no such blob exists or it cannot be read.
    async fn get(&self, name: &str) -> Result<Bytes>;
}

#[async_trait]
impl<T: BlobStore + ?Sized> BlobStore for Arc<T> {
    async fn put(&self, name: &str, bytes: Bytes) -> Result<()> {
        (**self).put(name, bytes).await
    }

    async fn get(&self, name: &str) -> Result<Bytes> {
        (**self).get(name).await
    }
}

/// Blob store that keeps each blob as a file of a folder shared by all processes.
#[derive(Clone, Debug)]
pub struct FileBlobs(PathBuf);

impl FileBlobs {
    /// Uses this folder, which is created when the first blob is stored.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self(folder.into())
    }

    fn path(&self, name: &str) -> Result<PathBuf> {
        Ok(self.0.join(checked(name)?))
    }
}

/// Returns the name if it is a valid blob name (64 hexadecimal digits).
pub(crate) fn checked(name: &str) -> Result<&str> {
    let is_hash = name.len() == 64 && name.bytes().all(|b| b.is_ascii_hexdigit());
    if is_hash { Ok(name) } else { Err(Error::new(ErrorKind::Store, "invalid blob name")) }
}

#[async_trait]
impl BlobStore for FileBlobs {
    async fn put(&self, name: &str, bytes: Bytes) -> Result<()> {
        let (path, folder) = (self.path(name)?, self.0.clone());
        let write = move || {
            if path.exists() {
                return Ok(());
            }
            std::fs::create_dir_all(&folder)?;
            // Write to a temporary name first: a blob's own name appears only once the file is
            // complete.
            let part = path.with_extension(agent_core::run::new_id());
            let file = std::fs::File::create(&part)?;
            io::Write::write_all(&mut &file, &bytes)?;
            file.sync_all()?;
            std::fs::rename(part, path)?;
            std::fs::File::open(folder)?.sync_all()
        };
        in_background(write).await.map_err(|e| failed("stored", &e))
    }

    async fn get(&self, name: &str) -> Result<Bytes> {
        let path = self.path(name)?;
        in_background(|| std::fs::read(path)).await.map(Into::into).map_err(|e| failed("read", &e))
    }
}

async fn in_background<T: Send + 'static>(work: impl FnOnce() -> io::Result<T> + Send + 'static) -> io::Result<T> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|e| Err(io::Error::other(e)))
}

fn failed(what: &str, e: &io::Error) -> Error {
    Error::new(
        ErrorKind::Store,
        format!("a blob could not be {what}: {e}; check that all processes share the blob folder"),
    )
}

/// Offloads large values to the blob store, if the endpoint has one.
#[derive(Clone)]
pub(crate) struct Blobs {
    store: Option<Arc<dyn BlobStore>>,
    /// Size in bytes from which a value counts as large.
    large: usize,
}

impl Blobs {
    /// Largest step result or answer, in bytes, without a blob store. Restate accepts messages of
    /// up to 32 MiB, and (as of 1.7) stalls at the second message of 16 MiB.
    pub(crate) const MOST: usize = 14 << 20;

    /// Largest entry, in bytes, without a blob store: an entry adds metadata to the result that it
    /// records.
    pub(crate) const MOST_OF_ENTRY: usize = Self::MOST + (1 << 20);

    pub(crate) fn new(store: Option<Arc<dyn BlobStore>>, large: usize) -> Self {
        Self { store, large }
    }

    /// Rejects a value of more than `most` bytes if there is no blob store: Restate would never
    /// accept it.
    pub(crate) fn admits(&self, what: &str, bytes: usize, most: usize) -> Result<()> {
        if self.takes_all() || bytes <= most {
            return Ok(());
        }
        let message = format!("{what} of {bytes} bytes exceeds Restate's limit: configure the endpoint with blobs(..)");
        Err(Error::new(ErrorKind::Store, message))
    }

    /// True if there is a blob store, so that values of any size are accepted.
    pub(crate) fn takes_all(&self) -> bool {
        self.store.is_some()
    }

    /// Returns the form of a value in a journal: inline, or the name of its blob. Retries while the
    /// blob store is unavailable.
    pub(crate) async fn keep(&self, json: Box<RawValue>) -> Result<Stored> {
        let Some(store) = self.store.as_ref().filter(|_| json.get().len() >= self.large) else {
            return Ok(Stored::Here(json));
        };
        let bytes = Bytes::from(String::from(Box::<str>::from(json)));
        let name = hex(&Sha256::digest(&bytes));
        patiently(PUTS, || store.put(&name, bytes.clone())).await?;
        Ok(Stored::Blob(name))
    }

    /// Reads a value for a run: [`fetch`](Self::fetch) with retries while the blob store is
    /// unavailable.
    pub(crate) async fn find<'a>(&self, stored: &'a Stored) -> Result<Cow<'a, RawValue>> {
        patiently(GETS, || self.fetch(stored)).await
    }

    /// Reads a value that a journal holds inline or by the name of its blob.
    pub(crate) async fn fetch<'a>(&self, stored: &'a Stored) -> Result<Cow<'a, RawValue>> {
        let name = match stored {
            Stored::Here(json) => return Ok(Cow::Borrowed(json)),
            Stored::Blob(name) => name,
        };
        let store = self.store.as_ref().ok_or_else(|| {
            Error::new(
                ErrorKind::Store,
                "the value is in a blob store: configure the reader with the endpoint's blobs(..)",
            )
        })?;
        let bytes = store.get(name).await?;
        if hex(&Sha256::digest(&bytes)) != *name {
            return Err(Error::new(ErrorKind::Store, format!("blob {name} is damaged")));
        }
        let json = serde_json::from_slice(&bytes).map(Cow::Owned);
        json.map_err(|e| Error::new(ErrorKind::Store, "a blob is not JSON").with_source(e))
    }
}

/// Attempts to store a blob, spread over 51 seconds: only this process has the value.
const PUTS: u32 = 10;

/// Attempts to read a blob, spread over 1.5 seconds; afterwards Restate retries the run, possibly
/// in another process.
const GETS: u32 = 5;

/// Retries an operation up to `tries` times with exponential back-off, starting at 100 ms.
async fn patiently<T, F: Future<Output = Result<T>>>(tries: u32, attempt: impl Fn() -> F) -> Result<T> {
    let mut pause = Duration::from_millis(100);
    for _ in 1..tries {
        match attempt().await {
            Err(e) => tracing::warn!(error = %e, "the blob store is unavailable: retrying"),
            done => return done,
        }
        tokio::time::sleep(pause).await;
        pause *= 2;
    }
    attempt().await
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

impl fmt::Debug for Blobs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Blobs").field("large", &self.large).field("is_given", &self.store.is_some()).finish()
    }
}

/// Conformance tests for blob stores.
#[cfg(test)]
pub(crate) mod conformance {
    use super::*;
    use crate::record::raw;

    /// Checks an empty store.
    pub(crate) async fn check(store: Arc<dyn BlobStore>) {
        let blobs = Blobs::new(Some(store.clone()), 100);
        assert!(matches!(blobs.keep(raw(&"small").expect("is JSON")).await.expect("is kept"), Stored::Here(_)));
        let large = "x".repeat(1_000_000);
        let json = || raw(&large).expect("is JSON");
        let twice = tokio::join!(blobs.keep(json()), blobs.keep(json()));
        for stored in [twice.0, twice.1, blobs.keep(json()).await] {
            let stored = stored.expect("is kept");
            assert!(matches!(stored, Stored::Blob(_)));
            let found = blobs.fetch(&stored).await.expect("is there");
            assert_eq!(serde_json::from_str::<String>(found.get()).expect("JSON"), large);
        }
        let name = hex(&Sha256::digest(b"what was said"));
        let error = store.get(&name).await.expect_err("nobody put it");
        assert_eq!(error.kind(), ErrorKind::Store, "{error}");
        store.put(&name, Bytes::from_static(b"\"something else\"")).await.expect("is kept");
        let error = blobs.fetch(&Stored::Blob(name)).await.expect_err("it is damaged");
        assert!(error.message().contains("damaged"), "{error}");
        let error = store.get("../etc/passwd").await.expect_err("it is refused");
        assert!(error.message().contains("invalid blob name"), "{error}");
        let error = store.put("../etc/passwd", Bytes::new()).await.expect_err("it is refused");
        assert!(error.message().contains("invalid blob name"), "{error}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn files_keep_what_is_large_once_by_its_content() {
        let folder = tempfile::tempdir().expect("a folder");
        let blobs = folder.path().join("blobs");
        conformance::check(Arc::new(FileBlobs::new(&blobs))).await;
        assert_eq!(std::fs::read_dir(blobs).expect("a folder").count(), 2);
    }
}
