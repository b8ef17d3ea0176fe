//! One SQLite file for what is kept beside the journal.

use std::{
    fs,
    path::Path,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use agent_core::{Error, ErrorKind, Result};
use rusqlite::{Connection, Transaction, TransactionBehavior};

/// Marks the file as ours: "AGST".
const APPLICATION_ID: i32 = 0x4147_5354;
/// The version of the tables. What is in `schema.sql` was released: a later version adds to it.
const FORMAT: i32 = 1;
/// How long another process's transaction is waited for.
const PATIENCE: Duration = Duration::from_secs(10);

/// A connection, used by one of tokio's blocking threads at a time. Clones share it.
#[derive(Clone)]
pub(crate) struct Database {
    path: Arc<Path>,
    connection: Arc<Mutex<Connection>>,
}

impl Database {
    /// Opens the file; it and its directory are created if missing.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        if let Some(directory) = path.parent().filter(|directory| !directory.as_os_str().is_empty()) {
            fs::create_dir_all(directory).map_err(|e| {
                let message = "the store's directory cannot be created: check the path and its permissions";
                Error::new(ErrorKind::Store, message).with_context("path", path.display().to_string()).with_source(e)
            })?;
        }
        let connection = Self::connect(path).map_err(|e| failed(path, e))??;
        Ok(Self { path: path.into(), connection: Arc::new(Mutex::new(connection)) })
    }

    fn connect(path: &Path) -> rusqlite::Result<Result<Connection>> {
        let mut connection = Connection::open(path)?;
        connection.busy_timeout(PATIENCE)?;
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let pragma = |name| transaction.pragma_query_value(None, name, |row| row.get::<_, i32>(0));
        let (id, version) = (pragma("application_id")?, pragma("user_version")?);
        let tables: i64 = transaction.query_row("SELECT count(*) FROM sqlite_schema", (), |row| row.get(0))?;
        let refused = match (id, version, tables) {
            (0, 0, 0) => None,
            (APPLICATION_ID, FORMAT, _) => None,
            (APPLICATION_ID, ..) => Some("another release wrote the store in another format: use that release"),
            _ => Some("the file is another program's database, or a journal: name another path"),
        };
        if let Some(message) = refused {
            return Ok(Err(Error::new(ErrorKind::Store, message).with_context("path", path.display().to_string())));
        }
        if tables == 0 {
            transaction.execute_batch(include_str!("schema.sql"))?;
            transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
            transaction.pragma_update(None, "user_version", FORMAT)?;
        }
        transaction.commit()?;
        connection.pragma_update(None, "journal_mode", "WAL")?;
        Ok(Ok(connection))
    }

    /// Does `work` in a transaction, which is undone if it fails.
    pub(crate) async fn run<T, F>(&self, work: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnOnce(&Transaction<'_>) -> rusqlite::Result<T> + Send + 'static,
    {
        let database = self.clone();
        let done = tokio::task::spawn_blocking(move || {
            let mut connection = database.connection.lock().unwrap_or_else(PoisonError::into_inner);
            let attempt = || {
                let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
                let done = work(&transaction)?;
                transaction.commit()?;
                Ok(done)
            };
            attempt().map_err(|e| failed(&database.path, e))
        });
        done.await.map_err(|e| Error::new(ErrorKind::Store, "using the store was cut short").with_source(e))?
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

fn failed(path: &Path, e: rusqlite::Error) -> Error {
    let message = "the store's database failed: see the cause";
    Error::new(ErrorKind::Store, message).with_context("path", path.display().to_string()).with_source(e)
}

/// What SQLite keeps as text, as a value.
pub(crate) fn from_json<T: serde::de::DeserializeOwned>(text: &str) -> rusqlite::Result<T> {
    let wrong = |e| rusqlite::Error::FromSqlConversionFailure(0, rusqlite::types::Type::Text, Box::new(e));
    serde_json::from_str(text).map_err(wrong)
}

/// A value as the text that SQLite keeps.
pub(crate) fn to_json(value: &impl serde::Serialize) -> rusqlite::Result<String> {
    serde_json::to_string(value).map_err(|e| rusqlite::Error::ToSqlConversionFailure(Box::new(e)))
}
