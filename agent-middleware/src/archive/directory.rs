//! [`DirectoryArchive`].

use std::{
    ffi::OsStr,
    fs,
    io::{self, Write},
    path::{Path, PathBuf},
    time::{SystemTime, UNIX_EPOCH},
};

use agent_core::{Error, ErrorKind, Media, Part, Result, RunCx, message::MediaSource};
use async_trait::async_trait;
use base64::{Engine, prelude::BASE64_STANDARD};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{Archive, Archived, Hit, find, off_thread};
use crate::digest::digest;

/// File with one line per archiving operation.
const ROUNDS: &str = "rounds.jsonl";

/// Archive in files below a directory: people and other programs can read it too, and it survives
/// restarts. Clones share it.
///
/// Each agent of each session has its own directory. It contains `HANDLE.json` for each text, with
/// the bytes of its inline images and documents in separate files (`HANDLE-1.png`, ..); and
/// `rounds.jsonl`, to which each compaction adds a line with its number, the time in milliseconds
/// since 1970, and the handles of the removed texts. Files are never deleted.
///
/// ```
/// use agent_middleware::{ContextCompaction, archive::DirectoryArchive};
///
/// let compaction = ContextCompaction::builder().archive(DirectoryArchive::new("archive")).build()?;
/// # drop(compaction);
/// # Ok::<(), agent_core::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirectoryArchive {
    root: PathBuf,
}

impl DirectoryArchive {
    /// Creates an archive below `root`; the directory is created when the first text is archived.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// Returns the directory of the run's agent and session.
    pub fn directory(&self, cx: &RunCx) -> PathBuf {
        self.root.join(file_name(&cx.ids().session)).join(file_name(&cx.ids().agent_id))
    }

    /// Runs `work` in the agent's directory, on a thread where it may block.
    async fn with<T: Send + 'static>(
        &self,
        cx: &RunCx,
        work: impl FnOnce(&Path) -> io::Result<T> + Send + 'static,
    ) -> Result<T> {
        let directory = self.directory(cx);
        let failed = |e: io::Error| Error::new(ErrorKind::Store, format!("the archive: {e}")).with_source(e);
        let place = directory.display().to_string();
        let done = off_thread(move || work(&directory)).await?;
        done.map_err(failed).map_err(|e| e.with_context("directory", place))
    }
}

#[async_trait]
impl Archive for DirectoryArchive {
    async fn put(&self, cx: &RunCx, texts: Vec<Archived>) -> Result<()> {
        let write = move |directory: &Path| {
            fs::create_dir_all(directory)?;
            let mut handles = Vec::new();
            for text in texts {
                if !file_of(directory, &text.handle)?.exists() {
                    handles.push(text.handle.clone());
                    Kept::write(text, directory)?;
                }
            }
            if handles.is_empty() { Ok(()) } else { note_round(directory, &handles) }
        };
        self.with(cx, write).await
    }

    async fn get(&self, cx: &RunCx, handle: &str) -> Result<Option<Archived>> {
        let handle = handle.to_owned();
        let read = move |directory: &Path| match file_of(directory, &handle) {
            Ok(file) if file.exists() => Kept::read(&file).map(Some),
            _ => Ok(None),
        };
        self.with(cx, read).await
    }

    async fn search(&self, cx: &RunCx, query: &str, most: usize) -> Result<Vec<Hit>> {
        let query = query.to_owned();
        let look = move |directory: &Path| {
            if !directory.exists() {
                return Ok(Vec::new());
            }
            let mut texts = Vec::new();
            for entry in fs::read_dir(directory)? {
                let file = entry?.path();
                let handle = file.file_stem().and_then(OsStr::to_str).filter(|stem| is_handle(stem));
                if handle.is_some() && file.extension() == Some(OsStr::new("json")) {
                    texts.push(Kept::parse(&file)?.archived);
                }
            }
            texts.sort_by(|a, b| a.handle.cmp(&b.handle)); // directories are unordered
            Ok(find(&query, most, texts.iter()))
        };
        self.with(cx, look).await
    }
}

/// File format of a text.
#[derive(Serialize, Deserialize)]
struct Kept {
    #[serde(flatten)]
    archived: Archived,
    /// Files with the bytes of its media; `None` for media that is not inline.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    files: Vec<Option<String>>,
}

impl Kept {
    /// Writes the text last, so that it never refers to a missing file.
    fn write(mut archived: Archived, directory: &Path) -> io::Result<()> {
        let mut files = Vec::new();
        for (at, part) in archived.media.iter_mut().enumerate() {
            let inline =
                data_of(part).and_then(|(data, mime)| Some((BASE64_STANDARD.decode(&*data).ok()?, data, mime)));
            let Some((bytes, data, mime)) = inline else {
                files.push(None);
                continue;
            };
            let name = format!("{}-{}.{}", archived.handle, at + 1, extension(mime));
            replace(&directory.join(&name), &bytes)?;
            data.clear();
            files.push(Some(name));
        }
        let file = file_of(directory, &archived.handle)?;
        replace(&file, &serde_json::to_vec(&Self { archived, files })?)
    }

    fn read(file: &Path) -> io::Result<Archived> {
        let Self { mut archived, files } = Self::parse(file)?;
        for (part, name) in archived.media.iter_mut().zip(files) {
            if let (Some((data, _)), Some(name)) = (data_of(part), name) {
                *data = BASE64_STANDARD.encode(fs::read(file.with_file_name(name))?);
            }
        }
        Ok(archived)
    }

    fn parse(file: &Path) -> io::Result<Self> {
        let damaged = |e| io::Error::new(io::ErrorKind::InvalidData, format!("{}: {e}", file.display()));
        serde_json::from_slice(&fs::read(file)?).map_err(damaged)
    }
}

/// Returns the base64 data of inline media, and its type.
fn data_of(part: &mut Part) -> Option<(&mut String, Option<&str>)> {
    match part {
        Part::Image(Media { source: MediaSource::Base64(data), mime, .. })
        | Part::Document(Media { source: MediaSource::Base64(data), mime, .. }) => Some((data, mime.as_deref())),
        _ => None,
    }
}

fn extension(mime: Option<&str>) -> &str {
    match mime.and_then(|mime| mime.split_once('/')) {
        Some(("image", "jpeg")) => "jpg",
        Some((_, kind)) if kind.len() < 6 && kind.bytes().all(|b| b.is_ascii_alphanumeric()) => kind,
        _ => "bin",
    }
}

/// Returns the file of a handle. Handles come from the model, so invalid ones are refused.
fn file_of(directory: &Path, handle: &str) -> io::Result<PathBuf> {
    let none = || io::Error::new(io::ErrorKind::InvalidInput, "a handle is made of letters and digits");
    is_handle(handle).then(|| directory.join(format!("{handle}.json"))).ok_or_else(none)
}

fn is_handle(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric())
}

/// Returns a unique file name in which people can recognise the id.
fn file_name(id: &str) -> String {
    /// Characters of the id; together with the digest the name fits every file system.
    const SHOWN: usize = 40;
    let shown = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
    format!("{}-{}", id.chars().take(SHOWN).map(shown).collect::<String>(), digest([id]))
}

/// Writes a file atomically.
fn replace(file: &Path, bytes: &[u8]) -> io::Result<()> {
    let unfinished = file.with_extension("unfinished");
    fs::write(&unfinished, bytes)?;
    fs::rename(unfinished, file)
}

fn note_round(directory: &Path, handles: &[String]) -> io::Result<()> {
    let file = directory.join(ROUNDS);
    let before = if file.exists() { fs::read_to_string(&file)?.lines().count() } else { 0 };
    let at = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
    let line = json!({"round": before + 1, "at": u64::try_from(at).unwrap_or(u64::MAX), "handles": handles});
    writeln!(fs::OpenOptions::new().create(true).append(true).open(file)?, "{line}")
}
