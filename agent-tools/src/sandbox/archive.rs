//! Bulk copies to and from a remote sandbox, as an archive for the sandbox's own `tar`.
//!
//! Files thus belong to the user that programs run as, appear where programs see them, and count
//! against the sandbox's limits; a container engine's own copy function ensures none of that.
//! Archives from a sandbox are untrusted: bounded, and parsed strictly.

use std::{
    borrow::Cow,
    io::{self, BufWriter, Read, Write},
    path::{Path, PathBuf},
    time::Duration,
};

use agent_core::{Error, Result, Retry};
use bytes::{Buf, Bytes};
use cap_std::fs::Dir;
use tar::{Archive, Builder, EntryType, Header, PaxExtensions};
use tokio::{sync::mpsc, time::timeout};

use super::{
    Command, Copied, Sandbox,
    by_shell::explained,
    tree::{Folder, MODE, Sink, Tally, changed, open, plain, uncopied, walk},
};
use crate::blocking::blocking;

/// Timeout of one copy.
const LONGEST: Duration = Duration::from_secs(1_800);

/// Channel capacity in chunks, and bytes per chunk.
const PIECES: usize = 16;
const PIECE: usize = 64 << 10;

/// Maximum size of an entry's name and extended headers, in bytes.
const LONGEST_HEAD: u64 = 64 << 10;

/// Maximum of bytes after the end of an archive.
const LARGEST_REST: u64 = 1 << 20;

const UPLOAD: &str = "exec 2>/dev/null; mkdir -p -- \"$1\" && [ -d \"$1\" ] || exit 45; exec tar -xmopf - -C \"$1\"";

const DOWNLOAD: &str =
    "exec 2>/dev/null; [ -e \"$1\" ] || exit 40; [ -d \"$1\" ] || exit 45; cd -- \"$1\" && exec tar -cf - .";

pub(super) async fn upload<S: Sandbox + ?Sized>(sandbox: &S, from: &Path, to: &str) -> Result<Copied> {
    let from = open(from, false)?;
    let (send, pieces) = mpsc::channel(PIECES);
    let mut process = sandbox.start(Command::shell(UPLOAD).arg("sh").arg(folder(to))).await?;
    let input = process.take_input();
    let pack = blocking(move || pack(&from, Pipe(send)).map_err(|e| uncopied(&e)));
    let feed = async {
        // Dropping both makes the packer stop if the receiver has stopped reading.
        let (Some(input), mut pieces) = (input, pieces) else { return };
        // A process that has stopped reading reports the reason by its exit code.
        while let Some(piece) = pieces.recv().await
            && input.write(piece).await.is_ok()
        {}
    };
    let end = async {
        while process.output().await.is_some() {}
        process.exit().await
    };
    let (packed, (), exit) = in_time(async { Ok(tokio::join!(pack, feed, end)) }).await?;
    match exit?.code {
        Some(0) => packed,
        // A receiver that stops reading aborts the packing, so its own reason is the better one.
        code => Err(explained(to, code.unwrap_or(1))),
    }
}

pub(super) async fn download<S: Sandbox + ?Sized>(sandbox: &S, from: &str, to: &Path) -> Result<Copied> {
    let to = open(to, true)?;
    let (send, pieces) = mpsc::channel(PIECES);
    let mut process = sandbox.start(Command::shell(DOWNLOAD).arg("sh").arg(folder(from))).await?;
    drop(process.take_input());
    let unpack = blocking(move || {
        let (mut folder, mut from) = (Folder::new(to), Gathered { pieces, piece: Bytes::new() });
        let copied = unpack(&mut from, &mut folder).and_then(|copied| folder.finish().map(|()| copied));
        copied.map_err(|e| uncopied(&e))
    });
    let pass = async {
        while let Some(piece) = process.output().await {
            if send.send(piece).await.is_err() {
                // The unpacker's error is the reason. The killed process's output is drained.
                process.kill();
            }
        }
        drop(send);
        process.exit().await
    };
    let (copied, exit) = in_time(async { Ok(tokio::join!(unpack, pass)) }).await?;
    match (copied, exit?.code) {
        (copied, Some(0)) => copied,
        (Err(e), Some(137) | None) => Err(e),
        (_, code) => Err(explained(from, code.unwrap_or(1))),
    }
}

async fn in_time<T>(work: impl Future<Output = Result<T>>) -> Result<T> {
    let late = |_| Error::tool("copying takes too long").with_retry(Retry::Temporary(None));
    timeout(LONGEST, work).await.map_err(late)?
}

/// Returns a path that cannot be taken for an option.
fn folder(path: &str) -> String {
    match path {
        "" => ".".to_owned(),
        option if option.starts_with('-') => format!("./{option}"),
        path => path.to_owned(),
    }
}

fn pack(from: &Dir, to: impl Write) -> io::Result<Copied> {
    let mut packed = Packed(Builder::new(BufWriter::with_capacity(PIECE, to)));
    let copied = walk(from, &mut packed)?;
    packed.0.into_inner()?.flush()?;
    Ok(copied)
}

/// Sink that writes copies to an archive.
struct Packed<W: Write>(Builder<W>);

impl<W: Write> Sink for Packed<W> {
    fn folder(&mut self, path: &Path, mode: u32) -> io::Result<()> {
        self.0.append_data(&mut header(EntryType::Directory, mode, 0), path, io::empty())
    }

    fn file(&mut self, path: &Path, mode: u32, size: u64, content: &mut dyn Read) -> io::Result<()> {
        let mut content = content.take(size);
        self.0.append_data(&mut header(EntryType::Regular, mode, size), path, &mut content)?;
        if content.limit() > 0 { Err(changed(path)) } else { Ok(()) }
    }
}

fn header(kind: EntryType, mode: u32, size: u64) -> Header {
    let mut header = Header::new_gnu();
    header.set_entry_type(kind);
    header.set_mode(mode);
    header.set_size(size);
    header
}

/// Unpacks an archive. Names that exceed a header are in entries of their own, which are read here,
/// within bounds.
fn unpack(from: &mut dyn Read, to: &mut Folder) -> io::Result<Copied> {
    let (mut archive, mut tally, mut long) = (Archive::new(from), Tally::new(), None::<PathBuf>);
    for entry in archive.entries()?.raw(true) {
        let mut entry = entry?;
        let kind = entry.header().entry_type();
        if kind.is_gnu_longname() || kind.is_pax_local_extensions() {
            let told = head(&mut entry)?;
            let name = if kind.is_gnu_longname() {
                Some(told.split(|byte| *byte == 0).next().unwrap_or_default())
            } else {
                path_of(&told)
            };
            long = name.and_then(|name| std::str::from_utf8(name).ok()).map(PathBuf::from).or(long);
            continue;
        }
        let path = long.take().map_or_else(|| entry.path().map(Cow::into_owned), Ok)?;
        let elsewhere = || io::Error::other(format!("'{}' would lie elsewhere", path.display()));
        let path = plain(&path).ok_or_else(elsewhere)?;
        tally.entry(&path)?;
        let mode = entry.header().mode()? & MODE;
        match kind {
            EntryType::Directory if path.as_os_str().is_empty() => {}
            EntryType::Directory => to.folder(&path, mode)?,
            EntryType::Regular | EntryType::Continuous => {
                let size = entry.size();
                tally.file(size)?;
                to.file(&path, mode, size, &mut entry)?;
            }
            EntryType::XGlobalHeader => drop(head(&mut entry)?),
            _ => tally.left_out(),
        }
    }
    // The rest pads the last block: a writer without a reader would wait forever.
    io::copy(&mut archive.into_inner().take(LARGEST_REST), &mut io::sink())?;
    Ok(tally.copied())
}

/// Reads the content of an extended header.
fn head(entry: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut told = Vec::new();
    entry.take(LONGEST_HEAD).read_to_end(&mut told)?;
    if told.len() as u64 == LONGEST_HEAD { Err(io::Error::other("a name in it is too long")) } else { Ok(told) }
}

fn path_of(told: &[u8]) -> Option<&[u8]> {
    PaxExtensions::new(told).flatten().find(|record| record.key_bytes() == b"path").map(|record| record.value_bytes())
}

/// Blocking writer to an async reader.
struct Pipe(mpsc::Sender<Bytes>);

impl Write for Pipe {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let sent = self.0.blocking_send(Bytes::copy_from_slice(bytes));
        sent.map(|()| bytes.len()).map_err(|_| io::ErrorKind::BrokenPipe.into())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Blocking reader of an async writer.
struct Gathered {
    pieces: mpsc::Receiver<Bytes>,
    piece: Bytes,
}

impl Read for Gathered {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        while self.piece.is_empty() {
            match self.pieces.blocking_recv() {
                Some(piece) => self.piece = piece,
                None => return Ok(0),
            }
        }
        let count = self.piece.len().min(into.len());
        self.piece.copy_to_slice(&mut into[..count]);
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Builds an archive of one entry, with this exact name and kind.
    fn archive(name: &str, kind: EntryType, content: &[u8]) -> Vec<u8> {
        let mut header = header(kind, 0o6755, content.len() as u64);
        header.as_old_mut().name[..name.len()].copy_from_slice(name.as_bytes());
        header.set_cksum();
        let mut builder = Builder::new(Vec::new());
        builder.append(&header, content).expect("is written");
        builder.into_inner().expect("is written")
    }

    fn unpacked(archive: &[u8]) -> (tempfile::TempDir, io::Result<Copied>) {
        let dir = tempfile::tempdir().expect("a directory");
        let mut folder = Folder::new(open(&dir.path().join("to"), true).expect("opens"));
        let copied = unpack(&mut &*archive, &mut folder).and_then(|copied| folder.finish().map(|()| copied));
        (dir, copied)
    }

    #[test]
    fn what_comes_out_of_a_sandbox_stays_in_its_folder_and_has_no_rights() {
        for name in ["../out", "/out", "a/../../out"] {
            let (dir, copied) = unpacked(&archive(name, EntryType::Regular, b"x"));
            assert!(copied.expect_err(name).to_string().contains("would lie elsewhere"));
            assert!(
                !dir.path().join("out").exists()
                    && std::fs::read_dir(dir.path().join("to")).expect("is there").count() == 0
            );
        }
        let (dir, copied) = unpacked(&archive("run", EntryType::Regular, b"x"));
        assert_eq!(copied.expect("is copied"), Copied { files: 1, bytes: 1, left_out: 0 });
        let mode = std::os::unix::fs::MetadataExt::mode(&dir.path().join("to/run").metadata().expect("is there"));
        assert_eq!(mode & 0o7777, 0o755);
        for kind in [EntryType::Symlink, EntryType::Link, EntryType::Char, EntryType::Fifo] {
            let (dir, copied) = unpacked(&archive("x", kind, b""));
            assert_eq!(copied.expect("is passed over").left_out, 1, "{kind:?}");
            assert!(dir.path().join("to/x").symlink_metadata().is_err());
        }
    }

    #[test]
    fn long_names_come_through_and_endless_ones_are_refused() {
        let from = tempfile::tempdir().expect("a directory");
        let deep = ["n".repeat(100), "o".repeat(100), "p".repeat(100)].iter().collect::<PathBuf>();
        std::fs::create_dir_all(from.path().join(&deep)).expect("creates");
        std::fs::write(from.path().join(&deep).join("file"), "1").expect("writes");
        let mut packed = Vec::new();
        pack(&open(from.path(), false).expect("opens"), &mut packed).expect("is packed");
        let (dir, copied) = unpacked(&packed);
        assert_eq!(copied.expect("is copied").files, 1);
        assert_eq!(std::fs::read_to_string(dir.path().join("to").join(&deep).join("file")).expect("is there"), "1");
        let endless = archive("x", EntryType::GNULongName, &[b'a'; 1 << 20]);
        assert!(unpacked(&endless).1.expect_err("is refused").to_string().contains("too long"));
    }

    #[test]
    fn an_archive_that_is_cut_or_none_is_an_error() {
        let whole = archive("file", EntryType::Regular, &[b'a'; 10_000]);
        assert!(unpacked(&whole[..5_000]).1.is_err());
        assert!(unpacked(&[b'x'; 1_024]).1.is_err());
    }
}
