//! Mapping of SQLite's failures to error messages.

use std::path::Path;

use agent_core::{Error, ErrorKind, Retry};
use rusqlite::ErrorCode;

/// Converts a failure of the journal at `path`.
pub(crate) fn store_error(path: &Path, e: &rusqlite::Error) -> Error {
    let message = match e.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => "the disk is full: make room, or raise the journal's max_bytes, and run it again",
        Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => {
            "the journal is read-only: check the permissions of the file and its directory"
        }
        Some(ErrorCode::NotADatabase) => "the file is not an SQLite database: use another path",
        Some(ErrorCode::DatabaseCorrupt) => {
            "the journal is damaged: restore a copy, or rescue it with '.recover' of the sqlite3 shell"
        }
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            "another program locks the journal: end its transaction"
        }
        Some(ErrorCode::CannotOpen) => "the journal cannot be opened: check the path and its permissions",
        Some(ErrorCode::TooBig) => "an entry is larger than the journal can hold",
        Some(ErrorCode::SystemIoFailure) => "the disk failed: check it before the journal is used again",
        _ => "the journal failed",
    };
    let retry = match e.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Retry::Temporary(None),
        _ => Retry::Unknown,
    };
    Error::new(ErrorKind::Store, message)
        .with_retry(retry)
        .with_context("journal", path.display().to_string())
        .with_context("sqlite", e.to_string())
}

#[cfg(test)]
mod tests {
    use rusqlite::{Connection, OpenFlags};

    use super::*;

    fn explain(e: &rusqlite::Error) -> String {
        store_error(Path::new("agent.db"), e).to_string()
    }

    #[test]
    fn a_file_that_may_only_be_read_is_called_read_only() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("agent.db");
        Connection::open(&path).and_then(|c| c.execute_batch("CREATE TABLE t (x)")).expect("a database");
        let reader = Connection::open_with_flags(&path, OpenFlags::SQLITE_OPEN_READ_ONLY).expect("opens");
        let e = reader.execute("INSERT INTO t VALUES (1)", ()).expect_err("read-only");
        assert!(explain(&e).contains("read-only: check the permissions"), "{}", explain(&e));
        assert!(explain(&e).contains("agent.db"), "it names the file");
    }

    #[test]
    fn a_full_disk_is_called_that() {
        let connection = Connection::open_in_memory().expect("opens");
        connection.execute_batch("CREATE TABLE t (x); PRAGMA max_page_count = 2").expect("a table");
        let e = connection.execute("INSERT INTO t VALUES (zeroblob(100000))", ()).expect_err("full");
        assert!(explain(&e).contains("the disk is full: make room"), "{}", explain(&e));
    }
}
