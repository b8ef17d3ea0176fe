//! Mapping of PostgreSQL's failures to error messages.

use std::time::Duration;

use agent_core::{Error, ErrorKind, Retry};
use tokio_postgres::error::{Severity, SqlState};

use super::tls;

/// Converts a failure of the journal. Never contains the URL, which may contain a password.
pub(super) fn store_error(e: &tokio_postgres::Error) -> Error {
    let Some(code) = e.code() else {
        let cause = std::error::Error::source(e).map(ToString::to_string);
        return lost_connection().with_context("postgres", cause.unwrap_or_else(|| e.to_string()));
    };
    let message = match *code {
        SqlState::DISK_FULL => "the database's disk is full: make room and run it again",
        SqlState::READ_ONLY_SQL_TRANSACTION => "the database is read-only: connect to the primary",
        SqlState::INSUFFICIENT_PRIVILEGE => {
            "the user lacks privileges: grant it USAGE and CREATE on the journal's schema"
        }
        SqlState::INVALID_PASSWORD | SqlState::INVALID_AUTHORIZATION_SPECIFICATION => {
            "authentication failed: check the user and the password of the URL"
        }
        SqlState::INVALID_CATALOG_NAME => "unknown database: create it, or name another one in the URL",
        SqlState::TOO_MANY_CONNECTIONS => "the database has too many connections: raise its limit",
        SqlState::DATA_CORRUPTED | SqlState::INDEX_CORRUPTED => "the journal is damaged: restore a copy",
        SqlState::ADMIN_SHUTDOWN | SqlState::CRASH_SHUTDOWN | SqlState::CANNOT_CONNECT_NOW => {
            "the database is shutting down or starting: try again when it is up"
        }
        SqlState::INVALID_SQL_STATEMENT_NAME | SqlState::DUPLICATE_PSTATEMENT => {
            "a pooler in transaction mode requires pooled=true in the URL"
        }
        SqlState::LOCK_NOT_AVAILABLE => "a lock could not be acquired in time: try again",
        SqlState::IDLE_IN_TRANSACTION_SESSION_TIMEOUT => {
            "this process was idle in a transaction for too long, and the server rolled it back: try again"
        }
        SqlState::PROGRAM_LIMIT_EXCEEDED => "an entry is larger than the journal can hold",
        _ => "the journal failed",
    };
    let temporary = matches!(
        *code,
        SqlState::TOO_MANY_CONNECTIONS
            | SqlState::ADMIN_SHUTDOWN
            | SqlState::CRASH_SHUTDOWN
            | SqlState::CANNOT_CONNECT_NOW
            | SqlState::LOCK_NOT_AVAILABLE
            | SqlState::IDLE_IN_TRANSACTION_SESSION_TIMEOUT
    ) || is_conflict(e);
    let retry = if temporary { Retry::Temporary(None) } else { Retry::Unknown };
    Error::new(ErrorKind::Store, message).with_retry(retry).with_context("postgres", describe(e))
}

/// Converts a failure to connect: nothing was sent.
pub(super) fn cannot_connect(e: &tokio_postgres::Error) -> Error {
    if e.code().is_some() {
        return store_error(e);
    }
    let (message, retry) = match tls::is_refused(e) {
        true => (
            "the database's certificate is not trusted: check it, and sslmode and sslrootcert of the URL",
            Retry::Permanent,
        ),
        false => (
            "the database cannot be reached: check that it is up, and host, port and sslmode of the URL",
            Retry::Temporary(None),
        ),
    };
    Error::new(ErrorKind::Store, message).with_retry(retry).with_context("postgres", with_causes(e))
}

fn with_causes(e: &tokio_postgres::Error) -> String {
    let causes = std::iter::successors(std::error::Error::source(e), |cause| cause.source());
    causes.fold(e.to_string(), |said, cause| {
        let cause = cause.to_string();
        if said.ends_with(&cause) { said } else { format!("{said}: {cause}") }
    })
}

/// True if the transaction was rolled back because of a conflict with another one, and can be
/// retried.
pub(super) fn is_conflict(e: &tokio_postgres::Error) -> bool {
    let conflicts = [
        SqlState::T_R_DEADLOCK_DETECTED,
        SqlState::T_R_SERIALIZATION_FAILURE,
        // A large string was deleted with its last entry just as another entry was about to refer
        // to it.
        SqlState::FOREIGN_KEY_VIOLATION,
    ];
    e.code().is_some_and(|code| conflicts.contains(code))
}

/// True if the connection is unusable: it broke, or the server or a pooler closed it.
pub(super) fn is_fatal(e: &tokio_postgres::Error) -> bool {
    e.as_db_error().is_none_or(|said| matches!(said.parsed_severity(), Some(Severity::Fatal | Severity::Panic)))
}

/// True if a statement failed only because an earlier one of the transaction did.
pub(super) fn is_consequence(e: &tokio_postgres::Error) -> bool {
    e.code() == Some(&SqlState::IN_FAILED_SQL_TRANSACTION)
}

/// The connection was lost, so that the outcome of the last request is unknown.
pub(super) fn lost_connection() -> Error {
    let message = "the connection to the database failed: what was not acknowledged may or may not be kept; \
                   check that it is up, and open the session again";
    Error::new(ErrorKind::Store, message).with_retry(Retry::Temporary(None))
}

/// Opening a connection timed out.
pub(super) fn connecting_takes_too_long(waited: Duration) -> Error {
    let message =
        format!("the database did not answer within {waited:?}: check that it is up, and host and port of the URL");
    Error::new(ErrorKind::Store, message).with_retry(Retry::Temporary(None))
}

/// A read timed out.
pub(super) fn read_takes_too_long(waited: Duration) -> Error {
    let message =
        format!("the database did not answer a read within {waited:?}: check that it is up, or raise read_timeout");
    Error::new(ErrorKind::Store, message).with_retry(Retry::Temporary(None))
}

/// All read connections are in use.
pub(super) fn all_busy(connections: usize) -> Error {
    let message = format!("all {connections} read connections are busy: raise read_connections");
    Error::new(ErrorKind::Store, message).with_retry(Retry::Temporary(None))
}

fn describe(e: &tokio_postgres::Error) -> String {
    e.as_db_error().map_or_else(|| e.to_string(), ToString::to_string)
}
