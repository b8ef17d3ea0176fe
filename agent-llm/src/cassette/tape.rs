//! Tape files.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use agent_core::{Error, ErrorKind, Result, Retry};
use serde::{Deserialize, Serialize};

use super::{exchange::Exchange, layout::indented};

/// Version of the file format.
const VERSION: u32 = 1;

#[derive(Serialize, Deserialize)]
struct Tape<E> {
    version: u32,
    exchanges: Vec<E>,
}

/// Reads a tape.
///
/// # Errors
/// [`ErrorKind::Store`] if the file does not exist or does not have this format.
pub(super) fn load(path: &Path) -> Result<Vec<Exchange>> {
    let text = fs::read_to_string(path).map_err(|e| failed(path, e))?;
    let tape: Tape<Exchange> = serde_json::from_str(&text).map_err(|e| failed(path, e.into()))?;
    if tape.version != VERSION {
        let found = format!("it has format {}, this release reads {VERSION}: record it anew", tape.version);
        return Err(failed(path, io::Error::other(found)));
    }
    Ok(tape.exchanges)
}

/// Replaces the tape file atomically.
///
/// # Errors
/// [`ErrorKind::Store`] if that fails; the old file is then unchanged.
pub(super) fn save(path: &Path, exchanges: &[&Exchange]) -> Result<()> {
    let tape = Tape { version: VERSION, exchanges: exchanges.to_vec() };
    let text = serde_json::to_string(&tape).map_err(|e| failed(path, e.into()))?;
    let write = || {
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        let unfinished = PathBuf::from(format!("{}.unfinished", path.display()));
        fs::write(&unfinished, indented(&text) + "\n")?;
        fs::rename(&unfinished, path)
    };
    write().map_err(|e| failed(path, e))
}

pub(super) fn failed(path: &Path, e: io::Error) -> Error {
    let hint = if e.kind() == io::ErrorKind::NotFound { " (record it first)" } else { "" };
    let message = format!("the cassette '{}' cannot be used: {e}{hint}", path.display());
    Error::new(ErrorKind::Store, message).with_retry(Retry::Permanent).with_source(e)
}
