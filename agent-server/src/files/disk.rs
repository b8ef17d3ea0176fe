//! File store in a folder.

use std::{
    collections::BTreeSet,
    ffi::OsStr,
    io,
    path::{Path, PathBuf},
    time::Duration,
};

use agent::{Error, ErrorKind, Result, async_trait, run::new_id};
use bytes::Bytes;
use sha2::{Digest, Sha256};
use tokio::fs;

use super::{ContentStore, FileInfo, StoreUsage, Turn};

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

/// File that is locked while a file is added.
const LOCK: &str = "lock";

/// Age after which a file without metadata was left by a crash.
const LEFT: Duration = Duration::from_secs(3600);

/// Content of a tenant's folder.
#[derive(Default)]
struct Folder {
    infos: Vec<FileInfo>,
    others: Vec<Other>,
}

/// File without readable metadata: an upload in progress, or what a crash left.
struct Other {
    path: PathBuf,
    bytes: u64,
    is_left: bool,
}

/// Lists a folder. Logs and skips what cannot be read: one damaged file must not affect others.
async fn list(folder: &Path) -> Result<Folder> {
    let mut found = Folder::default();
    let Some(mut entries) = there(fs::read_dir(folder).await)? else { return Ok(found) };
    let (mut files, mut named) = (Vec::new(), BTreeSet::new());
    while let Some(entry) = entries.next_entry().await.map_err(failed)? {
        let path = entry.path();
        if path.extension().is_none_or(|ending| ending != INFO) {
            files.push(path);
            continue;
        }
        match read_info(&path).await {
            Ok(info) => found.infos.extend(info),
            Err(error) => tracing::warn!(file = %path.display(), %error, "an uploaded file is skipped"),
        }
        named.insert(path);
    }
    for path in files {
        let is_content = |info: &FileInfo| path.file_name().is_some_and(|name| *name == *info.id);
        if found.infos.iter().any(is_content) || path.file_name().is_some_and(|name| name == LOCK) {
            continue;
        }
        let Ok(metadata) = fs::metadata(&path).await else { continue };
        let age = metadata.modified().ok().and_then(|at| at.elapsed().ok()).unwrap_or_default();
        // The content of a file whose metadata is damaged can still be rescued.
        let is_left = age > LEFT && !(path.extension().is_none() && named.contains(&path.with_extension(INFO)));
        if metadata.is_file() {
            found.others.push(Other { path, bytes: metadata.len(), is_left });
        }
    }
    Ok(found)
}

/// Deletes expired files, and what crashes left, in a tenant's folder.
async fn sweep(folder: &Path, before: u64) -> Result<u64> {
    let (mut swept, found) = (0, list(folder).await?);
    for info in found.infos.iter().filter(|info| info.created < before) {
        let path = folder.join(&info.id);
        there(fs::remove_file(path.with_extension(INFO)).await)?;
        there(fs::remove_file(path).await)?;
        swept += 1;
    }
    for other in found.others.iter().filter(|other| other.is_left) {
        there(fs::remove_file(&other.path).await)?;
    }
    Ok(swept)
}

/// True for the name of a tenant's folder: others, such as a file system's `lost+found`, are not
/// the store's.
fn is_folder(name: &OsStr) -> bool {
    name.to_str().is_some_and(|name| name.len() == 64 && name.bytes().all(|byte| byte.is_ascii_hexdigit()))
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

    async fn turn(&self, tenant: &str) -> Result<Turn> {
        let folder = self.folder(tenant);
        let lock = move || {
            std::fs::create_dir_all(&folder)?;
            let file = std::fs::OpenOptions::new().create(true).append(true).open(folder.join(LOCK))?;
            file.lock()?;
            Ok(file)
        };
        let locking = tokio::task::spawn_blocking(lock).await.map_err(io::Error::other);
        Ok(Turn::new(locking.and_then(|locked| locked).map_err(failed)?))
    }

    async fn usage(&self, tenant: &str) -> Result<StoreUsage> {
        let Folder { infos, others } = list(&self.folder(tenant)).await?;
        let bytes = infos.iter().map(|info| info.bytes).chain(others.iter().map(|other| other.bytes)).sum();
        Ok(StoreUsage { files: infos.len() as u64, bytes })
    }

    async fn sweep(&self, before: u64) -> Result<u64> {
        let (mut swept, mut tenants) = (0, fs::read_dir(&self.root).await.map_err(failed)?);
        while let Some(folder) = tenants.next_entry().await.map_err(failed)? {
            if !is_folder(&folder.file_name()) {
                continue;
            }
            match sweep(&folder.path(), before).await {
                Ok(files) => swept += files,
                Err(error) => {
                    tracing::warn!(folder = %folder.path().display(), %error, "a folder of uploaded files could not be searched");
                }
            }
        }
        Ok(swept)
    }
}
