//! File store in a folder.

use std::{
    io,
    path::{Path, PathBuf},
};

use agent::{Error, ErrorKind, Result, async_trait, run::new_id};
use bytes::Bytes;
use sha2::{Digest, Sha256};
use tokio::fs;

use super::{ContentStore, FileInfo, StoreUsage};

/// Extension of the metadata files; content files have none.
const INFO: &str = "json";

/// File store in a folder, with a subfolder per tenant that holds each file and its metadata.
/// Several processes may share the folder.
#[derive(Clone, Debug)]
pub struct DiskFiles {
    root: PathBuf,
}

impl DiskFiles {
    /// Opens a store in this folder, which is created if missing.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] if the folder cannot be created.
    pub fn open(root: impl Into<PathBuf>) -> Result<Self> {
        let root = root.into();
        let failed = |e: io::Error| Error::config(format!("{}: {e}", root.display()));
        std::fs::create_dir_all(&root).map_err(failed)?;
        Ok(Self { root })
    }

    /// Returns a tenant's folder; hashing the name prevents path traversal.
    fn folder(&self, tenant: &str) -> PathBuf {
        self.root.join(Sha256::digest(tenant).iter().map(|byte| format!("{byte:02x}")).collect::<String>())
    }
}

/// Writes a file atomically.
async fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    let beside = path.with_extension(new_id());
    let written = async {
        fs::write(&beside, bytes).await?;
        fs::rename(&beside, path).await
    };
    if let Err(error) = written.await {
        let _ = fs::remove_file(&beside).await;
        return Err(failed(error));
    }
    Ok(())
}

fn failed(error: io::Error) -> Error {
    Error::new(ErrorKind::Store, "access to the folder of uploaded files failed").with_source(error)
}

/// Maps a missing file to `None`.
fn there<T>(done: io::Result<T>) -> Result<Option<T>> {
    match done {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(failed(error)),
    }
}

/// Reads the metadata of all files of a folder.
async fn infos(folder: &Path) -> Result<Vec<FileInfo>> {
    let mut infos = Vec::new();
    let Some(mut entries) = there(fs::read_dir(folder).await)? else { return Ok(infos) };
    while let Some(entry) = entries.next_entry().await.map_err(failed)? {
        if entry.path().extension().is_some_and(|ending| ending == INFO) {
            infos.extend(read_info(&entry.path()).await?);
        }
    }
    Ok(infos)
}

async fn read_info(path: &Path) -> Result<Option<FileInfo>> {
    let Some(text) = there(fs::read(path).await)? else { return Ok(None) };
    let unreadable = |e| Error::new(ErrorKind::Store, "the metadata of a file cannot be decoded").with_source(e);
    serde_json::from_slice(&text).map(Some).map_err(unreadable)
}

#[async_trait]
impl ContentStore for DiskFiles {
    async fn put(&self, tenant: &str, info: &FileInfo, bytes: Bytes) -> Result<()> {
        let folder = self.folder(tenant);
        fs::create_dir_all(&folder).await.map_err(failed)?;
        let path = folder.join(&info.id);
        // The metadata is written last: without it, the file does not exist.
        write(&path, &bytes).await?;
        let text = serde_json::to_vec(info).expect("metadata has string keys");
        write(&path.with_extension(INFO), &text).await
    }

    async fn info(&self, tenant: &str, id: &str) -> Result<Option<FileInfo>> {
        read_info(&self.folder(tenant).join(id).with_extension(INFO)).await
    }

    async fn read(&self, tenant: &str, id: &str) -> Result<Option<Bytes>> {
        Ok(there(fs::read(self.folder(tenant).join(id)).await)?.map(Bytes::from))
    }

    async fn delete(&self, tenant: &str, id: &str) -> Result<()> {
        let path = self.folder(tenant).join(id);
        there(fs::remove_file(path.with_extension(INFO)).await)?;
        there(fs::remove_file(path).await).map(drop)
    }

    async fn usage(&self, tenant: &str) -> Result<StoreUsage> {
        let infos = infos(&self.folder(tenant)).await?;
        Ok(StoreUsage { files: infos.len() as u64, bytes: infos.iter().map(|info| info.bytes).sum() })
    }

    async fn sweep(&self, before: u64) -> Result<u64> {
        let (mut swept, mut tenants) = (0, fs::read_dir(&self.root).await.map_err(failed)?);
        while let Some(folder) = tenants.next_entry().await.map_err(failed)? {
            for info in infos(&folder.path()).await? {
                if info.created < before {
                    let path = folder.path().join(&info.id);
                    there(fs::remove_file(path.with_extension(INFO)).await)?;
                    there(fs::remove_file(path).await)?;
                    swept += 1;
                }
            }
        }
        Ok(swept)
    }
}
