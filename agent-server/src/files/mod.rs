//! Uploaded files: stored once, referenced in messages, and inserted into model requests.

mod content;
mod disk;
mod kind;
mod memory;
mod store;

use std::{fmt, sync::Arc, time::Duration};

use agent::{
    AgentBuilder, Message, Part,
    message::{Media, MediaSource, UserMessage},
};
use bytes::Bytes;
use sha2::{Digest, Sha256};

pub use self::{
    disk::DiskFiles,
    memory::MemoryFiles,
    store::{ContentStore, FileInfo, StoreUsage, Turn},
};
use crate::{caller::Caller, clock::now, error::ApiError};

/// URI prefix of a file reference in a message; the file's id follows.
pub(crate) const SCHEME: &str = "agent-file:";

/// Maximum length of a file name in characters.
const LONGEST_NAME: usize = 200;

/// Uploaded files and the quota of a tenant. Cheap to clone.
///
/// The journal holds only the id of a file, the SHA-256 of its bytes; the bytes are read when a
/// model is called. A file that occurs in many messages is stored once. A note to the model
/// replaces a file that no longer exists.
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
    /// Uses this store, with the default limits.
    pub fn new(store: impl ContentStore) -> Self {
        let day = Duration::from_secs(86_400);
        Self { store: Arc::new(store), largest: 20 << 20, most: 1_000, room: 1 << 30, keep: 30 * day }
    }

    /// Sets the maximum size of a file in bytes. Default: 20 MiB.
    pub fn max_bytes(mut self, bytes: usize) -> Self {
        self.largest = bytes;
        self
    }

    /// Sets the maximum number of files per tenant. Default: 1,000.
    pub fn max_files(mut self, most: u64) -> Self {
        self.most = most;
        self
    }

    /// Sets the maximum total size of a tenant's files in bytes. Default: 1 GiB.
    pub fn max_room(mut self, bytes: u64) -> Self {
        self.room = bytes;
        self
    }

    /// Sets the retention of a file after its last upload. Default: 30 days.
    pub fn keep(mut self, time: Duration) -> Self {
        self.keep = time;
        self
    }

    /// Adds a layer to an agent that inserts the content of files into its model requests. The
    /// server does this for its agents; do it for the agents of workers and of other execution
    /// backends, with the same store. The agent's fingerprint does not change.
    ///
    /// ```
    /// use agent::{Agent, testing::{ScriptedModel, Turn}};
    /// use agent_server::{Files, MemoryFiles};
    ///
    /// let files = Files::new(MemoryFiles::default());
    /// let agent = files.attach(Agent::builder("support", ScriptedModel::new([Turn::text("Seen.")]))).build()?;
    /// # let _ = agent;
    /// # Ok::<(), agent::Error>(())
    /// ```
    pub fn attach(&self, agent: AgentBuilder) -> AgentBuilder {
        agent.model_layer(content::FileContent(self.clone()))
    }

    /// Returns the maximum size of a file in bytes.
    pub(crate) fn largest(&self) -> usize {
        self.largest
    }

    /// Stores a file of the caller's tenant. Uploading an existing file restarts its retention.
    ///
    /// # Errors
    /// 413 if the file is too large or exceeds the tenant's quota; 400 if it is empty; the errors
    /// of the store.
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
            return Err(too_large(format!("the file is too large: at most {} bytes are allowed", self.largest)));
        }
        let info = FileInfo {
            id: Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect(),
            name: name.map(cleaned).filter(|name| !name.is_empty()),
            mime: kind::of(&bytes, said).to_owned(),
            bytes: bytes.len() as u64,
            created: now(),
        };
        let _turn = self.store.turn(caller.tenant()).await?;
        if self.store.info(caller.tenant(), &info.id).await?.is_none() {
            let used = self.store.usage(caller.tenant()).await?;
            if used.files >= self.most || used.bytes + info.bytes > self.room {
                return Err(too_large(format!(
                    "the tenant's file quota is exceeded: {} files with {} bytes are stored, of at most {} files with {} bytes; delete some",
                    used.files, used.bytes, self.most, self.room
                )));
            }
        }
        self.store.put(caller.tenant(), &info, bytes).await?;
        Ok(info)
    }

    /// Returns the metadata of a file of the caller's tenant.
    ///
    /// # Errors
    /// 404 if no file has this id; the errors of the store.
    pub(crate) async fn info(&self, caller: &Caller, id: &str) -> Result<FileInfo, ApiError> {
        let unknown = || ApiError::not_found(format!("unknown file '{id}'"));
        if !is_id(id) {
            return Err(unknown());
        }
        self.store.info(caller.tenant(), id).await?.ok_or_else(unknown)
    }

    /// Returns the metadata and content of a file.
    ///
    /// # Errors
    /// The errors of [`info`](Self::info).
    pub(crate) async fn read(&self, caller: &Caller, id: &str) -> Result<(FileInfo, Bytes), ApiError> {
        let info = self.info(caller, id).await?;
        let bytes = self.store.read(caller.tenant(), id).await?;
        Ok((info, bytes.ok_or_else(|| ApiError::not_found(format!("unknown file '{id}'")))?))
    }

    /// Deletes a file.
    ///
    /// # Errors
    /// The errors of [`info`](Self::info).
    pub(crate) async fn delete(&self, caller: &Caller, id: &str) -> Result<(), ApiError> {
        let info = self.info(caller, id).await?;
        self.store.delete(caller.tenant(), &info.id).await?;
        Ok(())
    }

    /// Deletes expired files, once.
    pub(crate) async fn sweep(&self) {
        let before = now().saturating_sub(u64::try_from(self.keep.as_millis()).unwrap_or(u64::MAX));
        match self.store.sweep(before).await {
            Ok(0) => {}
            Ok(files) => tracing::info!(files, "expired files were deleted"),
            Err(error) => tracing::warn!(%error, "the file store could not be searched for expired files"),
        }
    }

    /// Completes the file references of a message with the files' names and types.
    ///
    /// # Errors
    /// 404 if a file does not exist.
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

/// Returns a reference to a file of unknown name and type.
pub(crate) fn unknown_part(id: &str) -> Part {
    Part::Document(Media::url(format!("{SCHEME}{id}")))
}

/// True if a message references a file.
pub(crate) fn names_any(message: &Message) -> bool {
    matches!(message, Message::User(user) if user.parts().iter().any(|part| file_of(part).is_some()))
}

/// Returns the id of the file that a part references.
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

/// True if the text is a valid id: nothing else becomes a path.
fn is_id(id: &str) -> bool {
    id.len() == 64 && id.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// Returns the last part of a path, without characters that terminals or HTML interpret.
fn cleaned(name: &str) -> String {
    let last = name.rsplit(['/', '\\']).next().unwrap_or_default();
    last.chars().filter(|letter| !letter.is_control() && !"<>\"".contains(*letter)).take(LONGEST_NAME).collect()
}
