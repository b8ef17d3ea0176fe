//! Connecting: where the database is, and what a connection is given.

use std::{pin::pin, time::Duration};

use agent_core::{Error, Result};
use futures::{StreamExt, stream};
use tokio::time::timeout;
use tokio_postgres::{AsyncMessage, CancelToken, Client, Config};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::{
    error::{cannot_connect, connecting_takes_too_long, lost_connection, store_error},
    statements::Statements,
    tls, url,
};

/// How long a connection is waited for, unless somebody said so.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// After how long a silence a peer is asked whether it is still there, and again and again.
const KEEPALIVE: Duration = Duration::from_secs(30);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(10);
const KEEPALIVE_RETRIES: u32 = 3;
/// How long what was sent may stay without a receipt.
const UNACKNOWLEDGED: Duration = Duration::from_secs(30);
/// What the client takes where a URL has no `keepalives_idle`.
const UNSET_KEEPALIVE: Duration = Duration::from_secs(2 * 60 * 60);

/// Where the database is and how its connections are set up. No connection keeps a setting of its own: a pooler may give each
/// transaction another one.
#[derive(Clone)]
pub(super) struct Location {
    config: Config,
    tls: MakeRustlsConnect,
    /// As it stands in SQL.
    schema: String,
    /// How long one connection is waited for.
    connect_timeout: Duration,
    /// How long a lost connection is tried again.
    patience: Duration,
    /// True if a pooler gives each transaction another connection.
    is_pooled: bool,
}

/// A connection with its statements.
pub(super) struct Db {
    pub(super) client: Client,
    pub(super) statements: Statements,
}

impl Location {
    pub(super) fn new(url: &str, schema: &str, patience: Duration) -> Result<Self> {
        let (rest, asked) = url::split(url);
        // The parser's message does not repeat the URL, which may hold a password.
        let mut config = rest.parse::<Config>().map_err(|e| {
            let message = "the database's URL cannot be read: write postgres://user:password@host/database";
            Error::config(message).with_context("postgres", e.to_string())
        })?;
        let tls = tls::configure(&mut config, &asked)?;
        let is_pooled = match asked.pooled.as_deref() {
            Some("true") => true,
            None | Some("false") => false,
            Some(_) => return Err(Error::config("pooled is neither true nor false in the database's URL")),
        };
        if schema.is_empty() || schema.contains('\0') {
            return Err(Error::config("the schema needs a name"));
        }
        config.application_name(format!("agent-journal {schema}"));
        if config.get_keepalives_idle() == UNSET_KEEPALIVE {
            config.keepalives_idle(KEEPALIVE);
        }
        config.keepalives_interval(config.get_keepalives_interval().unwrap_or(KEEPALIVE_INTERVAL));
        config.keepalives_retries(config.get_keepalives_retries().unwrap_or(KEEPALIVE_RETRIES));
        config.tcp_user_timeout(config.get_tcp_user_timeout().copied().unwrap_or(UNACKNOWLEDGED));
        let connect_timeout = config.get_connect_timeout().copied().unwrap_or(CONNECT_TIMEOUT);
        Ok(Self { config, tls, schema: quoted(schema), connect_timeout, patience, is_pooled })
    }

    /// Sets how long one connection is waited for, if somebody said so.
    pub(super) fn connect_timeout(mut self, timeout: Option<Duration>) -> Self {
        self.connect_timeout = timeout.unwrap_or(self.connect_timeout);
        self
    }

    /// True if a pooler gives each transaction another connection.
    pub(super) fn is_pooled(&self) -> bool {
        self.is_pooled
    }

    /// The schema's name as it stands in SQL.
    pub(super) fn schema(&self) -> &str {
        &self.schema
    }

    /// SQL that names its tables as `{schema}.table`, with the schema's name; and its advisory locks in `{lock_space}`, with a
    /// number of the schema's own: the server has one space of such locks for all schemas of a database.
    pub(super) fn sql(&self, text: &str) -> String {
        let lock_space = format!("hashtextextended({}, 0)", literal(&self.schema));
        text.replace("{schema}", &self.schema).replace("{lock_space}", &lock_space)
    }

    /// A connection with its statements; on the runtime that is to drive the connection. To prepare one takes its tables' locks,
    /// so a connection that only reads does without: it would wait for tables that its own reads do not need.
    pub(super) async fn connect(&self) -> Result<Db> {
        Ok(Db { client: self.attach().await?, statements: Statements::new(self) })
    }

    /// As [`connect`](Self::connect), with the statements prepared that write.
    pub(super) async fn connect_writer(&self) -> Result<Db> {
        let mut db = self.connect().await?;
        if !self.is_pooled {
            let preparing = timeout(self.connect_timeout, db.statements.prepare(&db.client)).await;
            let prepared = preparing.map_err(|_| connecting_takes_too_long(self.connect_timeout))?;
            prepared.map_err(|e| store_error(&e))?;
        }
        Ok(db)
    }

    /// As [`connect_writer`](Self::connect_writer) or [`attach`](Self::attach), tried again and again while there is patience.
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

    /// A connection; on the runtime that is to drive it.
    pub(super) async fn attach(&self) -> Result<Client> {
        let connecting = timeout(self.connect_timeout, self.config.connect(self.tls.clone())).await;
        let connected = connecting.map_err(|_| connecting_takes_too_long(self.connect_timeout))?;
        let (client, connection) = connected.map_err(|e| cannot_connect(&e))?;
        // Its end is seen by whoever uses the client next.
        drop(tokio::spawn(connection));
        Ok(client)
    }

    /// Listens on a channel until the connection is lost, and says so whenever something was heard, and once at the beginning.
    pub(super) async fn listen(&self, channel: &str, heard: impl Fn()) -> Result<()> {
        let connecting = timeout(self.connect_timeout, self.config.connect(self.tls.clone())).await;
        let connected = connecting.map_err(|_| connecting_takes_too_long(self.connect_timeout))?;
        let (client, mut connection) = connected.map_err(|e| cannot_connect(&e))?;
        let mut messages = stream::poll_fn(move |cx| connection.poll_message(cx));
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

    /// Asks the server to end what a connection waits for, if the server can be asked.
    pub(super) async fn cancel(&self, waiting: CancelToken) {
        let _ = timeout(self.connect_timeout, waiting.cancel_query(self.tls.clone())).await;
    }
}

/// A name within SQL.
fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// A text as it stands in SQL, whatever the server is set to take a backslash for.
fn literal(text: &str) -> String {
    format!("E'{}'", text.replace('\\', "\\\\").replace('\'', "''"))
}
