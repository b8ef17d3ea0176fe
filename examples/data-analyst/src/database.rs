//! The database: read only, with limits on the rows and the time of a query.

use std::{path::Path, path::PathBuf, time::Duration};

use agent::prelude::*;
use rusqlite::{Connection, InterruptHandle, OpenFlags, types::ValueRef};
use serde::Serialize;
use serde_json::{Value, json};
use tempfile::NamedTempFile;

/// Maximum number of rows of a result.
pub(crate) const MOST_ROWS: usize = 200;
/// Maximum time of a query.
const LONGEST: Duration = Duration::from_secs(10);

/// A SQLite file, opened anew and read only for each query.
#[derive(Clone, Debug)]
pub(crate) struct Database(PathBuf);

/// Result of a query.
#[derive(Debug, PartialEq, Serialize)]
pub(crate) struct Table {
    pub(crate) columns: Vec<String>,
    pub(crate) rows: Vec<Vec<Value>>,
    /// True if the query has more rows.
    pub(crate) is_truncated: bool,
}

/// Interrupts a running query when it is dropped: after the timeout, or if the call is cancelled.
struct Interrupt(InterruptHandle);

impl Drop for Interrupt {
    fn drop(&mut self) {
        self.0.interrupt();
    }
}

impl Database {
    /// Opens an existing file.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let database = Self(path.to_owned());
        database.schema().map_err(|e| {
            let message = format!("{} is not a readable SQLite database", path.display());
            Error::config(message + "; name another file with --database").with_source(e)
        })?;
        Ok(database)
    }

    /// Returns the statements that created the tables and views.
    pub(crate) fn schema(&self) -> Result<String> {
        let read = || -> rusqlite::Result<Vec<String>> {
            let connection = self.connect()?;
            let mut statement =
                connection.prepare("select sql from sqlite_schema where sql is not null order by name")?;
            statement.query_map([], |row| row.get(0))?.collect()
        };
        Ok(read().map_err(failed)?.join(";\n"))
    }

    /// Runs one `SELECT`.
    pub(crate) async fn query(&self, sql: &str) -> Result<Table> {
        let connection = self.connect().map_err(failed)?;
        let _interrupt = Interrupt(connection.get_interrupt_handle());
        let sql = sql.to_owned();
        let work = tokio::task::spawn_blocking(move || select(&connection, &sql));
        match tokio::time::timeout(LONGEST, work).await {
            Ok(table) => table.map_err(|e| Error::tool("the query ended in a panic").with_source(e))?,
            Err(_) => Err(Error::tool(format!("the query takes longer than {LONGEST:?}: ask for less"))),
        }
    }

    fn connect(&self) -> rusqlite::Result<Connection> {
        Connection::open_with_flags(&self.0, OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX)
    }
}

fn select(connection: &Connection, sql: &str) -> Result<Table> {
    let mut statement = connection.prepare(sql).map_err(failed)?;
    if statement.column_count() == 0 {
        return Err(Error::tool("the statement returns no rows: write one SELECT"));
    }
    let columns: Vec<String> = statement.column_names().into_iter().map(str::to_owned).collect();
    let mut table = Table { columns, rows: Vec::new(), is_truncated: false };
    let mut rows = statement.query([]).map_err(failed)?;
    while let Some(row) = rows.next().map_err(failed)? {
        if table.rows.len() == MOST_ROWS {
            table.is_truncated = true;
            break;
        }
        let values = (0..table.columns.len()).map(|column| row.get_ref(column).map(to_json));
        table.rows.push(values.collect::<rusqlite::Result<_>>().map_err(failed)?);
    }
    Ok(table)
}

fn to_json(value: ValueRef<'_>) -> Value {
    match value {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(number) => json!(number),
        ValueRef::Real(number) => json!(number),
        ValueRef::Text(text) => json!(String::from_utf8_lossy(text)),
        ValueRef::Blob(bytes) => json!(format!("{} bytes", bytes.len())),
    }
}

/// The model reads the message, and corrects its query.
#[expect(clippy::needless_pass_by_value, reason = "an argument of map_err")]
fn failed(e: rusqlite::Error) -> Error {
    Error::tool(format!("the query failed: {e}"))
}

/// Creates the sample database in a temporary file, which is removed with the returned handle.
pub(crate) fn sample() -> Result<NamedTempFile> {
    let file = NamedTempFile::new().map_err(|e| Error::config("no temporary file can be created").with_source(e))?;
    let written = Connection::open(file.path()).and_then(|database| database.execute_batch(include_str!("shop.sql")));
    written.map_err(|e| Error::config("the sample database cannot be created").with_source(e))?;
    Ok(file)
}
