//! What people send along with what they say: kept once, named in messages, and put before the model when it is asked.

mod disk;
mod kind;
mod memory;
mod put_in;
mod store;

use std::{fmt, sync::Arc, time::Duration};

use agent::{
    Message, Part,
    message::{Media, MediaSource, UserMessage},
};
use bytes::Bytes;
use sha2::{Digest, Sha256};

pub(crate) use self::put_in::PutIn;
pub use self::{
    disk::DiskFiles,
    memory::MemoryFiles,
    store::{ContentStore, FileInfo, StoreUsage},
};
use crate::{caller::Caller, clock::now, error::ApiError};

/// How the address of a file in a message begins; what follows is its id.
pub(crate) const SCHEME: &str = "agent-file:";

/// Letters of a file's name at most.
const LONGEST_NAME: usize = 200;

/// Files that clients upload, and what one tenant may have. Cheap to clone.
///
/// The journal has the id of a file, which is the SHA-256 of its bytes; the bytes are read when a model is asked. So a file that is sent
/// along with many messages is kept once, and what the store does not have any more the model is told of.
///
/// ```no_run
/// use agent_server::{DiskFiles, Files};
///
/// let files = Files::new(DiskFiles::open("uploads")?).max_bytes(50 << 20);
/// # let _ = files;
/// # Ok::<(), agent::Error>(())
/// ```
#[derive(Clone)]
#[must_use]
pub struct Files {
    store: Arc<dyn ContentStore>,
    largest: usize,
    most: u64,
    room: u64,
    keep: Duration,
}

impl Files {
    /// In this store.
    pub fn new(store: impl ContentStore) -> Self {
        let day = Duration::from_secs(86_400);
        Self { store: Arc::new(store), largest: 20 << 20, most: 1_000, room: 1 << 30, keep: 30 * day }
    }

    /// Sets how many bytes a file may have. Default: 20 MiB.
    pub fn max_bytes(mut self, bytes: usize) -> Self {
        self.largest = bytes;
        self
    }

    /// Sets how many files a tenant may have. Default: 1,000.
    pub fn max_files(mut self, most: u64) -> Self {
        self.most = most;
        self
    }

    /// Sets how many bytes the files of a tenant may have together. Default: 1 GiB.
    pub fn max_room(mut self, bytes: u64) -> Self {
        self.room = bytes;
        self
    }

    /// Sets how long a file is kept after it was uploaded last. Default: 30 days.
    pub fn keep(mut self, time: Duration) -> Self {
        self.keep = time;
        self
    }

    /// Bytes of a file at most.
    pub(crate) fn largest(&self) -> usize {
        self.largest
    }

    /// Keeps a file of the caller's tenant. What is there already is kept for as long again.
    ///
    /// # Errors
    /// 413 if it is too large, or if the tenant has no room for it; 400 if it is empty; those of the store.
    pub(crate) async fn put(
        &self,
        caller: &Caller,
        name: Option<&str>,
        said: &str,
        bytes: Bytes,
    ) -> Result<FileInfo, ApiError> {
        let too_large = |message: String| ApiError::new(http::StatusCode::PAYLOAD_TOO_LARGE, "too_large", message);
        if bytes.is_empty() {
            return Err(ApiError::invalid("the file is empty"));
        }
        if bytes.len() > self.largest {
            return Err(too_large(format!("a file has at most {} bytes", self.largest)));
        }
        let info = FileInfo {
            id: Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect(),
            name: name.map(cleaned).filter(|name| !name.is_empty()),
            mime: kind::of(&bytes, said).to_owned(),
            bytes: bytes.len() as u64,
            created: now(),
        };
        if self.store.info(caller.tenant(), &info.id).await?.is_none() {
            let used = self.store.usage(caller.tenant()).await?;
            if used.files >= self.most || used.bytes + info.bytes > self.room {
                return Err(too_large(format!(
                    "there is no room for the file: {} files with {} bytes are kept, of {} with {}: delete some",
                    used.files, used.bytes, self.most, self.room
                )));
            }
        }
        self.store.put(caller.tenant(), &info, bytes).await?;
        Ok(info)
    }

    /// A file of the caller's tenant.
    ///
    /// # Errors
    /// 404 if there is none of this id; those of the store.
    pub(crate) async fn info(&self, caller: &Caller, id: &str) -> Result<FileInfo, ApiError> {
        let unknown = || ApiError::not_found(format!("there is no file '{id}'"));
        if !is_id(id) {
            return Err(unknown());
        }
        self.store.info(caller.tenant(), id).await?.ok_or_else(unknown)
    }

    /// All of a file.
    ///
    /// # Errors
    /// As [`info`](Self::info).
    pub(crate) async fn read(&self, caller: &Caller, id: &str) -> Result<(FileInfo, Bytes), ApiError> {
        let info = self.info(caller, id).await?;
        let bytes = self.store.read(caller.tenant(), id).await?;
        Ok((info, bytes.ok_or_else(|| ApiError::not_found(format!("there is no file '{id}'")))?))
    }

    /// Keeps a file no longer.
    ///
    /// # Errors
    /// As [`info`](Self::info).
    pub(crate) async fn delete(&self, caller: &Caller, id: &str) -> Result<(), ApiError> {
        let info = self.info(caller, id).await?;
        self.store.delete(caller.tenant(), &info.id).await?;
        Ok(())
    }

    /// Lets go of what was uploaded too long ago, once.
    pub(crate) async fn sweep(&self) {
        let before = now().saturating_sub(u64::try_from(self.keep.as_millis()).unwrap_or(u64::MAX));
        match self.store.sweep(before).await {
            Ok(0) => {}
            Ok(files) => tracing::info!(files, "files were let go of: they were uploaded too long ago"),
            Err(error) => tracing::warn!(%error, "the store of files was not searched for old ones"),
        }
    }

    /// Says of the files that a message names what they are.
    ///
    /// # Errors
    /// 404 if one is not there.
    pub(crate) async fn named(&self, caller: &Caller, message: Message) -> Result<Message, ApiError> {
        let Message::User(user) = &message else { return Ok(message) };
        let mut parts = Vec::with_capacity(user.parts().len());
        for part in user.parts() {
            parts.push(match file_of(part) {
                Some(id) => part_of(&self.info(caller, id).await?),
                None => part.clone(),
            });
        }
        Ok(Message::User(UserMessage::new(parts)))
    }
}

impl fmt::Debug for Files {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Files").field("largest", &self.largest).field("most", &self.most).finish_non_exhaustive()
    }
}

/// A part that names a file of which nothing else is known.
pub(crate) fn unknown_part(id: &str) -> Part {
    Part::Document(Media::url(format!("{SCHEME}{id}")))
}

/// True if a message names a file.
pub(crate) fn names_any(message: &Message) -> bool {
    matches!(message, Message::User(user) if user.parts().iter().any(|part| file_of(part).is_some()))
}

/// The id of the file that a part names.
fn file_of(part: &Part) -> Option<&str> {
    match part {
        Part::Image(Media { source: MediaSource::Url(url), .. })
        | Part::Document(Media { source: MediaSource::Url(url), .. }) => url.strip_prefix(SCHEME),
        _ => None,
    }
}

fn part_of(info: &FileInfo) -> Part {
    let media = Media::url(format!("{SCHEME}{}", info.id)).with_mime(info.mime.as_str());
    let media = info.name.iter().fold(media, |media, name| media.with_name(name.as_str()));
    if info.mime.starts_with("image/") { Part::Image(media) } else { Part::Document(media) }
}

/// True if it may be an id: nothing else becomes a path.
fn is_id(id: &str) -> bool {
    id.len() == 64 && id.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// The last part of a path, without what a terminal or a page would take for something else.
fn cleaned(name: &str) -> String {
    let last = name.rsplit(['/', '\\']).next().unwrap_or_default();
    last.chars().filter(|letter| !letter.is_control() && !"<>\"".contains(*letter)).take(LONGEST_NAME).collect()
}
