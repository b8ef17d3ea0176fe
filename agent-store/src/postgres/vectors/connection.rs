//! Connection setup: creates the extension and the tables if missing.

use agent_core::{Error, ErrorKind, Result, Retry};
use tokio_postgres::Client;

use super::statements::Statements;
use crate::postgres::{
    connect::Location,
    connections::{Connections, PATIENCE},
    error::store_error,
};

/// Advisory lock that serialises the creation of the extension: "AGVX".
const EXTENSION_LOCK: i64 = 0x4147_5658;
/// Migration from an empty schema to format 1; see the journal's.
const MIGRATION: &str = include_str!("schema.sql");

pub(super) async fn connect(url: &str, schema: &str, most: usize) -> Result<Connections<Statements>> {
    let location = Location::new(url, schema, PATIENCE)?;
    let set_up = |location: Location| async move {
        let extension = set_up(&location).await?;
        Ok(Statements::new(&location, extension))
    };
    Connections::open(location, "agent-vectors", most, set_up).await
}

/// Creates the extension and the tables if missing; returns the extension's schema, quoted for SQL.
async fn set_up(location: &Location) -> Result<String> {
    let mut client = location.attach().await?;
    let extension = extension(&mut client).await.map_err(|e| store_error(&e))?.ok_or_else(|| {
        let message = "pgvector is not installed: install it on the server (Debian: postgresql-17-pgvector or similar)";
        Error::new(ErrorKind::Store, message).with_retry(Retry::Permanent)
    })?;
    location.migrate(&[&MIGRATION.replace("{extension}", &extension)]).await?;
    Ok(extension)
}

async fn extension(client: &mut Client) -> Result<Option<String>, tokio_postgres::Error> {
    let transaction = client.transaction().await?;
    transaction.batch_execute(&format!("SELECT pg_advisory_xact_lock({EXTENSION_LOCK})")).await?;
    let find = "SELECT quote_ident(nspname) FROM pg_extension JOIN pg_namespace ON pg_namespace.oid = extnamespace
                WHERE extname = 'vector'";
    if let Some(row) = transaction.query_typed(find, &[]).await?.first() {
        return row.try_get(0);
    }
    let installed = "SELECT 1 FROM pg_available_extensions WHERE name = 'vector'";
    if transaction.query_typed(installed, &[]).await?.is_empty() {
        return Ok(None);
    }
    transaction.batch_execute("CREATE EXTENSION vector").await?;
    let created = transaction.query_typed(find, &[]).await?;
    transaction.commit().await?;
    created.first().map(|row| row.try_get(0)).transpose()
}
