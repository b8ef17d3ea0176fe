//! Opening of the journal's file, its identity and its migrations.

use std::{
    fs,
    path::Path,
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use agent_core::{Error, ErrorKind, Result};
use rusqlite::{Connection, ErrorCode, OpenFlags, TransactionBehavior};

use super::error::store_error;
use crate::Durability;

/// SQLite application id of a journal: "AGJL".
const APPLICATION_ID: i32 = 0x4147_4a4c;

/// Migrations from an empty file to format 1, from 1 to 2, and so on. A file's `user_version` is
/// the number of migrations applied to it. Released migrations are never edited.
const MIGRATIONS: &[&str] = &[
    include_str!("schema.sql"),
    include_str!("blobs.sql"),
    include_str!("info.sql"),
    include_str!("anchor.sql"),
    include_str!("projection.sql"),
];
const FORMAT: i32 = MIGRATIONS.len() as i32;

/// Path of the file and the settings of its connections.
#[derive(Clone, Debug)]
pub(super) struct Location {
    path: Arc<Path>,
    durability: Durability,
    /// Time to wait for a transaction of another process.
    patience: Duration,
    /// Maximum size of the file in bytes.
    max_bytes: u64,
}

impl Location {
    pub(super) fn new(path: &Path, durability: Durability, patience: Duration, max_bytes: u64) -> Result<Self> {
        // Absolute, since readers connect later, and so that SQLite's special names (":memory:")
        // are names of files.
        let path =
            std::path::absolute(path).map_err(|e| Error::config("invalid path of the journal").with_source(e))?;
        Ok(Self { path: path.into(), durability, patience, max_bytes })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Opens the writing connection: creates the file and its directory if missing, and migrates an
    /// older format, or rejects it.
    pub(super) fn open_writer(&self, migrates: bool) -> Result<Connection> {
        if let Some(directory) = self.path.parent() {
            fs::create_dir_all(directory).map_err(|e| {
                let message = "the journal's directory cannot be created: check the path and its permissions";
                Error::new(ErrorKind::Store, message).with_context("directory", display(directory)).with_source(e)
            })?;
        }
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let mut connection = self.connect(flags)?;
        self.patiently(|| self.refuse_foreign(&mut connection, migrates))??;
        self.patiently(|| self.set_up(&mut connection))?;
        Ok(connection)
    }

    /// Retries operations that SQLite refuses immediately, ignoring the busy timeout, while another
    /// process opens or closes the file: the switch to the write-ahead log is one of them.
    fn patiently<T>(&self, mut attempt: impl FnMut() -> rusqlite::Result<T>) -> Result<T> {
        const PAUSE: Duration = Duration::from_millis(5);
        let started = Instant::now();
        loop {
            match attempt() {
                Err(e)
                    if e.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) && started.elapsed() < self.patience =>
                {
                    thread::sleep(PAUSE);
                }
                done => return done.map_err(|e| store_error(&self.path, &e)),
            }
        }
    }

    /// Opens a read-only connection.
    pub(super) fn open_reader(&self) -> Result<Connection> {
        self.connect(OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX)
    }

    fn connect(&self, flags: OpenFlags) -> Result<Connection> {
        let connect = || {
            let connection = Connection::open_with_flags(&self.path, flags)?;
            connection.busy_timeout(self.patience)?;
            Ok(connection)
        };
        connect().map_err(|e| store_error(&self.path, &e))
    }

    /// Rejects a file of another program or of a newer release.
    fn refuse_foreign(&self, connection: &mut Connection, migrates: bool) -> rusqlite::Result<Result<()>> {
        let refuse = |message: String| {
            Ok(Err(Error::new(ErrorKind::Store, message).with_context("journal", display(&self.path))))
        };
        // One transaction: another process may be writing these three values.
        let transaction = connection.transaction()?;
        let (id, version, tables) = identity(&transaction)?;
        if id != APPLICATION_ID && (id, version, tables) != (0, 0, 0) {
            return refuse("the file is another program's database: use another path".into());
        }
        if version > FORMAT {
            return refuse(format!(
                "the journal has format {version} and this release knows formats up to {FORMAT}: use the newer release"
            ));
        }
        if version < FORMAT && !migrates {
            let older = refuse(format!(
                "the journal has format {version} and this release needs format {FORMAT}: run 'agent store migrate'"
            ));
            return older.map(|refused| refused.map_err(|e| e.with_context("needs_format", FORMAT.to_string())));
        }
        Ok(Ok(()))
    }

    fn set_up(&self, connection: &mut Connection) -> rusqlite::Result<()> {
        let synchronous = match self.durability {
            Durability::Sync => "FULL",
            Durability::Async => "NORMAL",
        };
        connection.pragma_update(None, "journal_mode", "WAL")?;
        connection.pragma_update(None, "synchronous", synchronous)?;
        connection.pragma_update(None, "wal_autocheckpoint", 1000)?; // pages; more makes the slowest commits slower
        connection.pragma_update(None, "journal_size_limit", 16 << 20)?;
        let page = connection.pragma_query_value(None, "page_size", |row| row.get::<_, u32>(0))?;
        let pages = u32::try_from(self.max_bytes / u64::from(page)).unwrap_or(u32::MAX - 1);
        connection.query_row(&format!("PRAGMA max_page_count = {pages}"), (), |_| Ok(()))?;
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let (_, version, _) = identity(&transaction)?; // checked again: another process may have been faster
        for (_, migration) in (0..).zip(MIGRATIONS).filter(|(from, _)| *from >= version) {
            transaction.execute_batch(migration)?;
        }
        if version < FORMAT {
            transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
            transaction.pragma_update(None, "user_version", FORMAT)?;
        }
        transaction.commit()
    }
}

/// Returns the application id, the format version and the number of tables.
fn identity(connection: &Connection) -> rusqlite::Result<(i32, i32, i64)> {
    let pragma = |name| connection.pragma_query_value(None, name, |row| row.get(0));
    let tables = connection.query_row("SELECT count(*) FROM sqlite_schema", (), |row| row.get(0))?;
    Ok((pragma("application_id")?, pragma("user_version")?, tables))
}

fn display(path: &Path) -> String {
    path.display().to_string()
}
