//! In-memory file store.

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use agent::{Result, async_trait};
use bytes::Bytes;

use super::{ContentStore, FileInfo, StoreUsage, Turn};

/// Files by tenant and id.
type All = HashMap<(String, String), (FileInfo, Bytes)>;

/// In-memory file store: lost with the process.
#[derive(Default)]
pub struct MemoryFiles {
    files: Mutex<All>,
    /// Locked while a file is added.
    turn: Arc<tokio::sync::Mutex<()>>,
}

impl MemoryFiles {
    fn all(&self) -> MutexGuard<'_, All> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn key(tenant: &str, id: &str) -> (String, String) {
    (tenant.to_owned(), id.to_owned())
}

#[async_trait]
impl ContentStore for MemoryFiles {
    async fn put(&self, tenant: &str, info: &FileInfo, bytes: Bytes) -> Result<()> {
        self.all().insert(key(tenant, &info.id), (info.clone(), bytes));
        Ok(())
    }

    async fn info(&self, tenant: &str, id: &str) -> Result<Option<FileInfo>> {
        Ok(self.all().get(&key(tenant, id)).map(|(info, _)| info.clone()))
    }

    async fn read(&self, tenant: &str, id: &str) -> Result<Option<Bytes>> {
        Ok(self.all().get(&key(tenant, id)).map(|(_, bytes)| bytes.clone()))
    }

    async fn delete(&self, tenant: &str, id: &str) -> Result<()> {
        self.all().remove(&key(tenant, id));
        Ok(())
    }

    async fn turn(&self, _: &str) -> Result<Turn> {
        Ok(Turn::new(self.turn.clone().lock_owned().await))
    }

    async fn usage(&self, tenant: &str) -> Result<StoreUsage> {
        let mut usage = StoreUsage::default();
        for ((of, _), (info, _)) in self.all().iter() {
            if of == tenant {
                (usage.files, usage.bytes) = (usage.files + 1, usage.bytes + info.bytes);
            }
        }
        Ok(usage)
    }

    async fn sweep(&self, before: u64) -> Result<u64> {
        let mut all = self.all();
        let then = all.len();
        all.retain(|_, (info, _)| info.created >= before);
        Ok((then - all.len()) as u64)
    }
}

impl fmt::Debug for MemoryFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MemoryFiles({})", self.all().len())
    }
}
