//! Connecting: what the database must be, and how its tables change from release to release.

use std::time::Duration;

use agent_core::{Error, ErrorKind, Result};
use tokio::time::timeout;
use tokio_postgres::{Client, Config};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::{
    error::{cannot_connect, lost_connection, store_error},
    statements::Statements,
    tls,
};
use crate::Durability;

/// Keeps two processes from migrating at once: "AGJL".
const MIGRATION_LOCK: i64 = 0x4147_4a4c;

/// Where the database is and how its connections are set up.
#[derive(Clone)]
pub(super) struct Location {
    config: Config,
    tls: MakeRustlsConnect,
    schema: String,
    durability: Durability,
    /// How long to wait for a connection.
    patience: Duration,
}

/// A connection with its prepared statements.
pub(super) struct Db {
    pub(super) client: Client,
    pub(super) statements: Statements,
}

impl Location {
    pub(super) fn new(url: &str, schema: &str, durability: Durability, patience: Duration) -> Result<Self> {
        let (mut config, tls) = tls::configure(url)?;
        if schema.is_empty() || schema.contains('\0') {
            return Err(Error::config("the schema needs a name"));
        }
        config.application_name(format!("agent-journal {schema}")).connect_timeout(patience);
        Ok(Self { config, tls, schema: schema.to_owned(), durability, patience })
    }

    pub(super) fn durability(&self) -> Durability {
        self.durability
    }

    /// Connects and prepares; runs on the runtime that is to drive the connection.
    pub(super) async fn connect(&self) -> Result<Db> {
        let client = self.attach().await?;
        let statements = Statements::prepare(&client).await.map_err(|e| store_error(&e))?;
        Ok(Db { client, statements })
    }

    /// As [`connect`](Self::connect) or [`attach`](Self::attach), tried again and again while there is patience.
    pub(super) async fn reconnect<T>(&self, connect: impl AsyncFn(&Self) -> Result<T>) -> Result<T> {
        const PAUSE: Duration = Duration::from_millis(100);
        let trying = async {
            loop {
                match connect(self).await {
                    Ok(connected) => return connected,
                    Err(e) => tracing::warn!(error = %e, "no connection to the database; trying again"),
                }
                tokio::time::sleep(PAUSE).await;
            }
        };
        timeout(self.patience, trying).await.map_err(|_| lost_connection())
    }

    /// Connects; runs on the runtime that is to drive the connection.
    pub(super) async fn attach(&self) -> Result<Client> {
        let (client, connection) = self.config.connect(self.tls.clone()).await.map_err(|e| cannot_connect(&e))?;
        // Its end is seen by whoever uses the client next.
        drop(tokio::spawn(connection));
        let commit = match self.durability {
            Durability::Sync => "on",
            Durability::Async => "off",
        };
        let schema = quoted(&self.schema);
        let set_up = format!("SET search_path TO {schema}; SET synchronous_commit TO {commit}");
        client.batch_execute(&set_up).await.map_err(|e| store_error(&e))?;
        Ok(client)
    }

    /// Creates the tables, or brings older ones up to date. The migrations lead from nothing to format 1, from 1 to 2, and so
    /// on; the schema's `format` says how many of them it has seen. What was released is never edited.
    pub(super) async fn migrate(&self, migrations: &[&str]) -> Result<()> {
        let format = i32::try_from(migrations.len()).unwrap_or(i32::MAX);
        let mut client = self.attach().await?;
        let encoding = client.query_one("SHOW server_encoding", &[]).await.map_err(|e| store_error(&e))?;
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

    /// Gives the format that was found, or made.
    async fn set_up(&self, client: &mut Client, migrations: &[&str]) -> Result<i32, tokio_postgres::Error> {
        let transaction = client.transaction().await?;
        transaction.execute("SELECT pg_advisory_xact_lock($1)", &[&MIGRATION_LOCK]).await?;
        let schema = quoted(&self.schema);
        let found = transaction.query_one("SELECT to_regclass($1)::text", &[&format!("{schema}.format")]).await?;
        let version = match found.get::<_, Option<&str>>(0) {
            Some(_) => transaction.query_one("SELECT version FROM format", &[]).await?.get(0),
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
        // A database that is up to date may be read-only.
        if reached > version {
            transaction.execute("UPDATE format SET version = $1", &[&reached]).await?;
            transaction.commit().await?;
        }
        Ok(reached)
    }
}

/// A name within SQL.
fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}
