//! Sandbox file operations via its shell: for a sandbox that can start programs and has no better
//! method.
//!
//! Requires `sh`, `cat`, `cp`, `dirname`, `find`, `head`, `mkdir`, `mv`, `readlink`, `rm`, `stat`
//! and `wc` of GNU or BusyBox in the sandbox. Their output is untrusted: bounded, and parsed
//! strictly.

use std::time::Duration;

use agent_core::{Error, Result, Retry, run::new_id};
use bytes::Bytes;
use tokio::time::timeout;

use super::{Command, Entry, EntryKind, LARGEST_FILE, Sandbox};

/// Timeout of one script.
const LONGEST: Duration = Duration::from_secs(60);

/// Maximum size of a listing in bytes.
const LARGEST_LISTING: usize = 8 << 20;

/// Maximum of bytes that a script writes beside the content.
const LINE: usize = 64;

/// Bytes written to a script at a time.
const PIECE: usize = 64 << 10;

/// Exit codes for expected failures.
const MISSING: i32 = 40;
const FOLDER: i32 = 41;
const NOT_REGULAR: i32 = 42;
const TOO_LARGE: i32 = 43;
const CUT: i32 = 44;
const NOT_FOLDER: i32 = 45;

/// Writes the size on a line, followed by the content, so that truncation is detected.
const READ: &str = "[ -e \"$1\" ] || exit 40; [ -d \"$1\" ] && exit 41; [ -f \"$1\" ] || exit 42
size=$(wc -c < \"$1\") || exit 1; [ \"$size\" -le \"$2\" ] || exit 43; echo $size; head -c \"$size\" < \"$1\"";

/// The temporary file gets the mode of the file that it replaces, and replaces it once all bytes
/// have arrived.
const WRITE: &str = "file=$1; if [ -h \"$file\" ]; then file=$(readlink -f -- \"$file\") || exit 1; fi
[ -d \"$file\" ] && exit 41; [ -e \"$file\" ] && [ ! -f \"$file\" ] && exit 42
folder=$(dirname -- \"$file\") && mkdir -p -- \"$folder\" || exit 1
draft=$folder/.$2.draft; trap 'rm -f -- \"$draft\"' EXIT
if [ -e \"$file\" ]; then cp -p -- \"$file\" \"$draft\" || exit 1; fi
cat > \"$draft\" || exit 1; [ \"$(wc -c < \"$draft\")\" -eq \"$3\" ] || exit 44; mv -f -- \"$draft\" \"$file\"";

const LIST: &str = "[ -e \"$1\" ] || exit 40; [ -d \"$1\" ] || exit 45
cd -- \"$1\" && find . -mindepth 1 -maxdepth 1 -exec stat -c '%f %s %n' -- {} +";

const STAT: &str = "[ -e \"$1\" ] || [ -h \"$1\" ] || exit 40; exec stat -c '%f %s' -- \"$1\"";

const REMOVE: &str =
    "[ -e \"$1\" ] || [ -h \"$1\" ] || exit 40; [ -d \"$1\" ] && [ ! -h \"$1\" ] && exit 41; exec rm -f -- \"$1\"";

pub(super) async fn read<S: Sandbox + ?Sized>(sandbox: &S, path: &str) -> Result<Bytes> {
    let most = usize::try_from(LARGEST_FILE).unwrap_or(usize::MAX);
    let said = script(sandbox, READ, path, &[&most.to_string()], None, most + LINE).await?;
    let whole = said.iter().position(|byte| *byte == b'\n').and_then(|end| {
        let size: usize = std::str::from_utf8(&said[..end]).ok()?.trim().parse().ok()?;
        (said.len() == end + 1 + size).then(|| said.slice(end + 1..))
    });
    whole.ok_or_else(|| Error::tool(format!("'{path}' changed while it was read: read it again")))
}

pub(super) async fn write<S: Sandbox + ?Sized>(sandbox: &S, path: &str, content: Bytes) -> Result<()> {
    super::check_size(path, content.len())?;
    let (draft, size) = (new_id(), content.len().to_string());
    script(sandbox, WRITE, path, &[&draft, &size], Some(content), LINE).await.map(drop)
}

/// Replaces a file of the sandbox by another one, a draft of `size` bytes, and removes the draft.
#[cfg(feature = "e2b")]
pub(super) async fn take<S: Sandbox + ?Sized>(sandbox: &S, path: &str, draft: &str, size: usize) -> Result<()> {
    let take = format!("exec < \"$4\" || exit 1; rm -f -- \"$4\"\n{WRITE}");
    script(sandbox, &take, path, &[&new_id(), &size.to_string(), draft], None, LINE).await.map(drop)
}

pub(super) async fn list<S: Sandbox + ?Sized>(sandbox: &S, path: &str) -> Result<Vec<Entry>> {
    let said = script(sandbox, LIST, path, &[], None, LARGEST_LISTING).await?;
    // A name may contain a line feed: its lines are then invalid, or name nothing. A model cannot
    // name such a file.
    let line = |line: &str| {
        let (known, name) = line.split_once(" ./")?;
        Some(Entry { name: name.to_owned(), ..entry(known)? })
    };
    Ok(String::from_utf8_lossy(&said).lines().filter_map(line).collect())
}

pub(super) async fn stat<S: Sandbox + ?Sized>(sandbox: &S, path: &str) -> Result<Option<Entry>> {
    let said = match try_script(sandbox, STAT, path, &[], None, LINE).await? {
        Ended::Well(said) => said,
        Ended::With(MISSING) => return Ok(None),
        Ended::With(code) => return Err(explained(path, code)),
    };
    let name = path.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    let found = entry(String::from_utf8_lossy(&said).trim());
    let found = found.ok_or_else(|| Error::tool(format!("the sandbox does not say what '{path}' is")))?;
    Ok(Some(Entry { name: name.to_owned(), ..found }))
}

pub(super) async fn remove<S: Sandbox + ?Sized>(sandbox: &S, path: &str) -> Result<()> {
    script(sandbox, REMOVE, path, &[], None, LINE).await.map(drop)
}

/// Parses a mode in hexadecimal, and a size.
fn entry(said: &str) -> Option<Entry> {
    let (mode, size) = said.split_once(' ')?;
    let mode = u32::from_str_radix(mode, 16).ok()?;
    let kind = match mode & 0o170_000 {
        0o100_000 => EntryKind::File,
        0o040_000 => EntryKind::Folder,
        0o120_000 => EntryKind::Link,
        _ => EntryKind::Other,
    };
    let size = size.trim().parse().ok()?;
    Some(Entry { size: Some(size), ..Entry::new("", kind) }.read_only(mode & 0o222 == 0))
}

enum Ended {
    Well(Bytes),
    With(i32),
}

async fn script<S: Sandbox + ?Sized>(
    sandbox: &S,
    script: &str,
    path: &str,
    args: &[&str],
    input: Option<Bytes>,
    most: usize,
) -> Result<Bytes> {
    match try_script(sandbox, script, path, args, input, most).await? {
        Ended::Well(said) => Ok(said),
        Ended::With(code) => Err(explained(path, code)),
    }
}

async fn try_script<S: Sandbox + ?Sized>(
    sandbox: &S,
    script: &str,
    path: &str,
    args: &[&str],
    input: Option<Bytes>,
    most: usize,
) -> Result<Ended> {
    // A path that begins with a dash must not be an option; errors are reported by exit code.
    let path = if path.is_empty() { "." } else { path };
    let path = if path.starts_with('-') { format!("./{path}") } else { path.to_owned() };
    let mut command = Command::shell(format!("exec 2>/dev/null\n{script}")).arg("sh").arg(&path);
    for arg in args {
        command = command.arg(*arg);
    }
    let run = async {
        let mut process = sandbox.start(command).await?;
        let (to, mut content) = (process.take_input(), input.unwrap_or_default());
        let feed = async move {
            let Some(to) = to else { return };
            // A script that stops reading has reported the reason by its exit code.
            while !content.is_empty() && to.write(content.split_to(PIECE.min(content.len()))).await.is_ok() {}
        };
        let gather = async {
            let mut said = Vec::new();
            while let Some(piece) = process.output().await {
                said.extend_from_slice(&piece);
                if said.len() > most {
                    let what = format!("'{path}' cannot be used: the sandbox says more of it than {most} bytes");
                    return Err(Error::tool(what));
                }
            }
            Ok((said, process.exit().await?))
        };
        tokio::join!(feed, gather).1
    };
    let late = |_| Error::tool("the sandbox does not answer").with_retry(Retry::Temporary(None));
    let (said, exit) = timeout(LONGEST, run).await.map_err(late)??;
    Ok(match exit.code {
        Some(0) => Ended::Well(said.into()),
        code => Ended::With(code.unwrap_or(1)),
    })
}

pub(super) fn explained(path: &str, code: i32) -> Error {
    let why = match code {
        MISSING => return Error::tool(format!("'{path}' does not exist")),
        FOLDER => "it is a directory",
        NOT_REGULAR => "it is not a regular file",
        TOO_LARGE => return super::too_large(path),
        CUT => "not all of its content arrived",
        NOT_FOLDER => "it is no directory",
        127 => "the sandbox has no shell, or none of the programs that files need",
        _ => "the sandbox does not allow it, or has no space left",
    };
    Error::tool(format!("'{path}' cannot be used: {why}"))
}
