//! Schema migrations.

use agent_core::{Error, ErrorKind, Result};
use tokio_postgres::{Client, types::Type};

use super::{connect::Location, error::store_error};

/// Advisory lock that serialises the migrations of processes: "AGJL".
const MIGRATION_LOCK: i64 = 0x4147_4a4c;

/// Longest wait of a migration for a lock, in milliseconds: statements of running processes queue up
/// behind it.
const PATIENCE: u32 = 5_000;

impl Location {
    /// Creates or migrates the tables, unless the URL forbids it. The migrations lead from an empty schema to format
    /// 1, from 1 to 2, and so on; the schema's `format` is the number of migrations applied.
    /// Released migrations are never edited.
    pub(super) async fn migrate(&self, migrations: &[&str]) -> Result<()> {
        let format = i32::try_from(migrations.len()).unwrap_or(i32::MAX);
        let mut client = self.attach().await?;
        let mut found = self.format(&client).await?;
        if found < format && !self.migrates() {
            let message = format!(
                "the tables have format {found} and this release needs format {format}: run 'agent store migrate' with a user that may change tables"
            );
            let error = Error::new(ErrorKind::Store, message);
            return Err(error.with_context("needs_format", format.to_string()));
        }
        if found < format {
            let encoding = client.query_typed_one("SHOW server_encoding", &[]).await.map_err(|e| store_error(&e))?;
            if encoding.get::<_, &str>(0) != "UTF8" {
                let message = "the database must have the encoding UTF8: create it with ENCODING 'UTF8'";
                return Err(Error::new(ErrorKind::Store, message));
            }
        }
        while found < format {
            found = self.step(&mut client, migrations).await.map_err(|e| store_error(&e))?;
        }
        if found > format {
            let message = format!(
                "the tables have format {found} and this release knows formats up to {format}: use the newer release"
            );
            return Err(Error::new(ErrorKind::Store, message));
        }
        Ok(())
    }

    /// Returns the format of the tables; 0 before they are created.
    pub(super) async fn format(&self, client: &Client) -> Result<i32> {
        let read = async {
            let find = "SELECT to_regclass($1)::text";
            let table = format!("{}.format", self.schema());
            let found = client.query_typed(find, &[(&table, Type::TEXT)]).await?;
            if found.first().is_none_or(|row| row.get::<_, Option<&str>>(0).is_none()) {
                return Ok(0);
            }
            let versions = client.query_typed(&self.sql("SELECT version FROM {schema}.format"), &[]).await?;
            Ok(versions.first().map_or(0, |row| row.get(0)))
        };
        read.await.map_err(|e| store_error(&e))
    }

    /// Applies the next migration in a transaction of its own, unless another process was faster.
    /// Returns the format that was reached.
    async fn step(&self, client: &mut Client, migrations: &[&str]) -> Result<i32, tokio_postgres::Error> {
        let schema = self.schema();
        let transaction = client.transaction().await?;
        // The migrations use unqualified table names.
        let begin = format!(
            "SET LOCAL search_path TO {schema}; SELECT pg_advisory_xact_lock({MIGRATION_LOCK}); SET LOCAL lock_timeout = {PATIENCE}"
        );
        transaction.batch_execute(&begin).await?;
        let find = "SELECT to_regclass($1) IS NULL";
        let missing = transaction.query_typed(find, &[(&format!("{schema}.format"), Type::TEXT)]).await?;
        if missing.first().is_some_and(|row| row.get(0)) {
            let first = format!(
                "CREATE SCHEMA IF NOT EXISTS {schema}; CREATE TABLE format (version INTEGER NOT NULL);
                 INSERT INTO format VALUES (0)"
            );
            transaction.batch_execute(&first).await?;
        }
        let versions = transaction.query_typed("SELECT version FROM format", &[]).await?;
        let version: i32 = versions.first().map_or(0, |row| row.get(0));
        let next = usize::try_from(version).ok().and_then(|version| migrations.get(version));
        let Some(migration) = next else { return Ok(version) };
        transaction.batch_execute(migration).await?;
        transaction.batch_execute(&format!("UPDATE format SET version = {}", version + 1)).await?;
        transaction.commit().await?;
        Ok(version + 1)
    }
}
