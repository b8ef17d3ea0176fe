//! Schema migrations.

use agent_core::{Error, ErrorKind, Result};
use tokio_postgres::{Client, types::Type};

use super::{connect::Location, error::store_error};

/// Advisory lock that serialises the migrations of processes: "AGJL".
const MIGRATION_LOCK: i64 = 0x4147_4a4c;

impl Location {
    /// Creates or migrates the tables. The migrations lead from an empty schema to format 1, from 1
    /// to 2, and so on; the schema's `format` is the number of migrations applied. Released
    /// migrations are never edited.
    pub(super) async fn migrate(&self, migrations: &[&str]) -> Result<()> {
        let format = i32::try_from(migrations.len()).unwrap_or(i32::MAX);
        let mut client = self.attach().await?;
        let encoding = client.query_typed_one("SHOW server_encoding", &[]).await.map_err(|e| store_error(&e))?;
        if encoding.get::<_, &str>(0) != "UTF8" {
            let message = "the database must have the encoding UTF8: create it with ENCODING 'UTF8'";
            return Err(Error::new(ErrorKind::Store, message));
        }
        let version = self.set_up(&mut client, migrations).await.map_err(|e| store_error(&e))?;
        if version > format {
            let message = format!(
                "the tables have format {version} and this release knows formats up to {format}: use the newer release"
            );
            return Err(Error::new(ErrorKind::Store, message));
        }
        Ok(())
    }

    /// Returns the format that was found or reached.
    async fn set_up(&self, client: &mut Client, migrations: &[&str]) -> Result<i32, tokio_postgres::Error> {
        let schema = self.schema();
        let transaction = client.transaction().await?;
        // The migrations use unqualified table names.
        let begin = format!("SET LOCAL search_path TO {schema}; SELECT pg_advisory_xact_lock({MIGRATION_LOCK})");
        transaction.batch_execute(&begin).await?;
        let find = "SELECT to_regclass($1)::text";
        let found = transaction.query_typed(find, &[(&format!("{schema}.format"), Type::TEXT)]).await?;
        let version = match found.first().and_then(|row| row.get::<_, Option<&str>>(0)) {
            Some(_) => {
                let versions = transaction.query_typed("SELECT version FROM format", &[]).await?;
                versions.first().map_or(0, |row| row.get(0))
            }
            None => {
                let first = format!(
                    "CREATE SCHEMA IF NOT EXISTS {schema}; CREATE TABLE format (version INTEGER NOT NULL);
                     INSERT INTO format VALUES (0)"
                );
                transaction.batch_execute(&first).await?;
                0
            }
        };
        let mut reached = version;
        for (from, migration) in (0..).zip(migrations).filter(|(from, _)| *from >= version) {
            transaction.batch_execute(migration).await?;
            reached = from + 1;
        }
        // An up-to-date database may be read-only.
        if reached > version {
            transaction.batch_execute(&format!("UPDATE format SET version = {reached}")).await?;
            transaction.commit().await?;
        }
        Ok(reached)
    }
}
