//! Address of the database and setup of connections.

use std::{pin::pin, time::Duration};

use agent_core::{Error, Result};
use futures::{Stream, StreamExt, stream};
use tokio::time::timeout;
use tokio_postgres::{AsyncMessage, CancelToken, Client, Config};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::{
    error::{cannot_connect, connecting_takes_too_long, lost_connection, store_error},
    statements::Statements,
    tls, url,
};

/// Default timeout for opening a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Idle time before the first TCP keepalive probe, and the interval and number of probes.
const KEEPALIVE: Duration = Duration::from_secs(30);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(10);
const KEEPALIVE_RETRIES: u32 = 3;
/// Maximum time for sent data to be acknowledged (TCP user timeout).
const UNACKNOWLEDGED: Duration = Duration::from_secs(30);
/// The client's default where the URL has no `keepalives_idle`.
const UNSET_KEEPALIVE: Duration = Duration::from_secs(2 * 60 * 60);

/// Address of the database and settings of its connections. No connection has session settings: a
/// pooler may assign another connection to each transaction.
#[derive(Clone)]
pub(super) struct Location {
    config: Config,
    tls: MakeRustlsConnect,
    /// Schema name, quoted for SQL.
    schema: String,
    /// Timeout for opening one connection.
    connect_timeout: Duration,
    /// Time during which a lost connection is retried.
    patience: Duration,
    /// True if a pooler assigns another connection to each transaction.
    is_pooled: bool,
    /// False if tables of an older format are rejected instead of migrated.
    migrates: bool,
}

/// Connection with its statements.
pub(super) struct Db {
    pub(super) client: Client,
    pub(super) statements: Statements,
}

impl Location {
    pub(super) fn new(url: &str, schema: &str, patience: Duration) -> Result<Self> {
        let (rest, asked) = url::split(url);
        // The parser's message does not repeat the URL, which may contain a password.
        let mut config = rest.parse::<Config>().map_err(|e| {
            let message = "invalid database URL: expected postgres://user:password@host/database";
            Error::config(message).with_context("postgres", e.to_string())
        })?;
        let tls = tls::configure(&mut config, &asked)?;
        let is_pooled = match asked.pooled.as_deref() {
            Some("true") => true,
            None | Some("false") => false,
            Some(_) => {
                return Err(Error::config("invalid value of 'pooled' in the database URL: expected true or false"));
            }
        };
        let migrates = match asked.migrate.as_deref() {
            Some("false") => false,
            None | Some("true") => true,
            Some(_) => {
                return Err(Error::config("invalid value of 'migrate' in the database URL: expected true or false"));
            }
        };
        if schema.is_empty() || schema.contains('\0') {
            return Err(Error::config("the schema name must not be empty"));
        }
        config.application_name(format!("agent-journal {schema}"));
        if config.get_keepalives_idle() == UNSET_KEEPALIVE {
            config.keepalives_idle(KEEPALIVE);
        }
        config.keepalives_interval(config.get_keepalives_interval().unwrap_or(KEEPALIVE_INTERVAL));
        config.keepalives_retries(config.get_keepalives_retries().unwrap_or(KEEPALIVE_RETRIES));
        config.tcp_user_timeout(config.get_tcp_user_timeout().copied().unwrap_or(UNACKNOWLEDGED));
        let connect_timeout = config.get_connect_timeout().copied().unwrap_or(CONNECT_TIMEOUT);
        Ok(Self { config, tls, schema: quoted(schema), connect_timeout, patience, is_pooled, migrates })
    }

    /// Sets the timeout for opening a connection, if given.
    pub(super) fn connect_timeout(mut self, timeout: Option<Duration>) -> Self {
        self.connect_timeout = timeout.unwrap_or(self.connect_timeout);
        self
    }

    /// False if tables of an older format are rejected instead of migrated.
    pub(super) fn migrates(&self) -> bool {
        self.migrates
    }

    /// True if a pooler assigns another connection to each transaction.
    pub(super) fn is_pooled(&self) -> bool {
        self.is_pooled
    }

    /// Returns the schema name, quoted for SQL.
    pub(super) fn schema(&self) -> &str {
        &self.schema
    }

    /// Replaces `{schema}` in SQL by the schema's name, and `{lock_space}` by a number of the
    /// schema: the server has one space of advisory locks for all schemas of a database.
    pub(super) fn sql(&self, text: &str) -> String {
        let lock_space = format!("hashtextextended({}, 0)", literal(&self.schema));
        text.replace("{schema}", &self.schema).replace("{lock_space}", &lock_space)
    }

    /// Opens a connection with unprepared statements, on the runtime that is to drive it. Preparing
    /// a statement locks its tables, so read connections do without: they would wait for tables
    /// that their reads do not need.
    pub(super) async fn connect(&self) -> Result<Db> {
        Ok(Db { client: self.attach().await?, statements: Statements::new(self) })
    }

    /// Like [`connect`](Self::connect), with the write statements prepared.
    pub(super) async fn connect_writer(&self) -> Result<Db> {
        let mut db = self.connect().await?;
        if !self.is_pooled {
            let preparing = timeout(self.connect_timeout, db.statements.prepare(&db.client)).await;
            let prepared = preparing.map_err(|_| connecting_takes_too_long(self.connect_timeout))?;
            prepared.map_err(|e| store_error(&e))?;
        }
        Ok(db)
    }

    /// Retries [`connect_writer`](Self::connect_writer) or [`attach`](Self::attach) until the
    /// patience has run out.
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

    /// Opens a connection, on the runtime that is to drive it.
    pub(super) async fn attach(&self) -> Result<Client> {
        let connecting = timeout(self.connect_timeout, self.config.connect(self.tls.clone())).await;
        let connected = connecting.map_err(|_| connecting_takes_too_long(self.connect_timeout))?;
        let (client, connection) = connected.map_err(|e| cannot_connect(&e))?;
        // The next user of the client notices the end of the connection.
        drop(tokio::spawn(connection));
        Ok(client)
    }

    /// Opens a connection for `LISTEN`, and returns its messages, which drive it while they are
    /// polled.
    pub(super) async fn session(
        &self,
    ) -> Result<(Client, impl Stream<Item = Result<AsyncMessage, tokio_postgres::Error>> + Send + use<>)> {
        let connecting = timeout(self.connect_timeout, self.config.connect(self.tls.clone())).await;
        let connected = connecting.map_err(|_| connecting_takes_too_long(self.connect_timeout))?;
        let (client, mut connection) = connected.map_err(|e| cannot_connect(&e))?;
        Ok((client, stream::poll_fn(move |cx| connection.poll_message(cx))))
    }

    /// Listens on a channel until the connection is lost; calls `heard` once at the beginning and
    /// for each notification.
    pub(super) async fn listen(&self, channel: &str, heard: impl Fn()) -> Result<()> {
        let (client, messages) = self.session().await?;
        let mut messages = pin!(messages);
        let listen = format!("LISTEN {}", quoted(channel));
        let mut listening = pin!(client.batch_execute(&listen));
        let mut listens = false;
        loop {
            tokio::select! {
                done = &mut listening, if !listens => {
                    done.map_err(|e| store_error(&e))?;
                    listens = true;
                    heard();
                }
                message = messages.next() => match message {
                    Some(Ok(AsyncMessage::Notification(_))) => heard(),
                    Some(Ok(_)) => {}
                    Some(Err(e)) => return Err(store_error(&e)),
                    None => return Err(lost_connection()),
                },
            }
        }
    }

    /// Asks the server to cancel the current statement of a connection, if the server can be
    /// reached.
    pub(super) async fn cancel(&self, waiting: CancelToken) {
        let _ = timeout(self.connect_timeout, waiting.cancel_query(self.tls.clone())).await;
    }
}

/// Quotes a name for SQL.
fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// Quotes a text as a SQL literal, independently of the server's `standard_conforming_strings`.
fn literal(text: &str) -> String {
    format!("E'{}'", text.replace('\\', "\\\\").replace('\'', "''"))
}
