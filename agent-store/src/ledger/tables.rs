//! Tables of the ledger.

use std::{
    collections::{BTreeMap, HashMap},
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use agent_core::{
    Caps, Error, ErrorKind, Result,
    budget::{Amounts, Balance, Reserved},
    run::new_id,
};
use rusqlite::{Connection, OptionalExtension, Row, Transaction, TransactionBehavior, params};

use crate::{
    amounts::{columns, from_columns},
    sqlite::store_error,
};

/// SQLite application id of a ledger: "aldg".
const APPLICATION_ID: i32 = 0x616c_6467;

const SCHEMA: &str = "
    CREATE TABLE IF NOT EXISTS account (
        name TEXT PRIMARY KEY, tokens INTEGER NOT NULL, cost INTEGER NOT NULL,
        model_calls INTEGER NOT NULL, tool_calls INTEGER NOT NULL
    ) WITHOUT ROWID;
    CREATE TABLE IF NOT EXISTS reservation (
        id INTEGER PRIMARY KEY AUTOINCREMENT, account TEXT NOT NULL, owner TEXT NOT NULL, tokens INTEGER NOT NULL,
        cost INTEGER NOT NULL, model_calls INTEGER NOT NULL, tool_calls INTEGER NOT NULL
    );
    CREATE INDEX IF NOT EXISTS reservation_of_account ON reservation (account);
    CREATE TABLE IF NOT EXISTS owner (name TEXT PRIMARY KEY, dead_at INTEGER NOT NULL) WITHOUT ROWID;
";

const COLUMNS: &str = "tokens, cost, model_calls, tool_calls";

/// Connection and the owner name of its reservations.
pub(super) struct Tables {
    connection: Connection,
    path: PathBuf,
    owner: String,
    dead_after: Duration,
    suspects: Suspects,
}

/// Other owners whose time is over by the wall clock, with that time and when this process first
/// saw it. The wall clock may have jumped, which a monotonic clock does not: only an owner that
/// renews nothing meanwhile is dead.
type Suspects = HashMap<String, (i64, Instant)>;

impl Tables {
    pub(super) fn open(path: &Path, dead_after: Duration) -> Result<Self> {
        let open = || {
            let mut connection = Connection::open(path)?;
            connection.busy_timeout(Duration::from_secs(10))?;
            let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let id: i32 = transaction.pragma_query_value(None, "application_id", |row| row.get(0))?;
            let tables: i64 = transaction.query_row("SELECT count(*) FROM sqlite_schema", (), |row| row.get(0))?;
            if id != APPLICATION_ID && (id, tables) != (0, 0) {
                return Ok(None);
            }
            transaction.execute_batch(SCHEMA)?;
            transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
            transaction.commit()?;
            Ok(Some(connection))
        };
        let connection = open().map_err(|e| store_error(path, &e))?.ok_or_else(|| {
            Error::new(ErrorKind::Store, "the file is another program's database: use another path for the ledger")
                .with_context("ledger", path.display().to_string())
        })?;
        Ok(Self { connection, path: path.to_owned(), owner: new_id(), dead_after, suspects: Suspects::new() })
    }

    /// Renews the reservations of this process, if it has any.
    pub(super) fn renew(&mut self) -> Result<()> {
        let dead_at = now().saturating_add(millis(self.dead_after));
        let sql = "UPDATE owner SET dead_at = ?2 WHERE name = ?1";
        let renewed = self.connection.execute(sql, params![self.owner, dead_at]);
        renewed.map(drop).map_err(|e| store_error(&self.path, &e))
    }

    pub(super) fn balance(&mut self, account: &str) -> Result<Balance> {
        self.change(|transaction, _, _| balance(transaction, account))
    }

    pub(super) fn reserve(&mut self, accounts: &[(Arc<str>, Caps)], wanted: Amounts) -> Result<Reserved> {
        self.change(|transaction, owner, dead_at| {
            for (at, (account, caps)) in accounts.iter().enumerate() {
                let held = balance(transaction, account)?;
                if caps.refusal(held.settled.plus(held.reserved), wanted).is_some() {
                    return Ok(Reserved::RefusedBy(at));
                }
            }
            let sql = "INSERT INTO owner VALUES (?1, ?2) ON CONFLICT (name) DO UPDATE SET dead_at = excluded.dead_at";
            transaction.execute(sql, params![owner, dead_at])?;
            let sql = format!("INSERT INTO reservation (account, owner, {COLUMNS}) VALUES (?1, ?2, ?3, ?4, ?5, ?6)");
            let mut insert = transaction.prepare_cached(&sql)?;
            let [tokens, cost, model_calls, tool_calls] = columns(wanted);
            let mut receipts = Vec::with_capacity(accounts.len());
            for (account, _) in accounts {
                let id = insert.insert(params![account, owner, tokens, cost, model_calls, tool_calls])?;
                receipts.push(id.cast_unsigned());
            }
            Ok(Reserved::All(receipts))
        })
    }

    pub(super) fn settle(&mut self, reservations: &[(Arc<str>, u64)], used: Amounts) -> Result<()> {
        self.change(|transaction, _, _| {
            for (account, receipt) in reservations {
                let receipt = i64::try_from(*receipt).unwrap_or(i64::MAX);
                let sql = "DELETE FROM reservation WHERE id = ?1 AND account = ?2";
                // One that is gone was settled by a process that considered this one dead.
                if transaction.execute(sql, params![receipt, account])? > 0 {
                    book(transaction, account, used)?;
                }
            }
            Ok(())
        })
    }

    pub(super) fn forget(&mut self, prefix: &str, oldest: &str) -> Result<()> {
        self.change(|transaction, _, _| {
            let sql = "DELETE FROM account WHERE name >= ?1 AND name < ?2 AND instr(name, ?1) = 1
                       AND NOT EXISTS (SELECT 1 FROM reservation WHERE account = name)";
            transaction.execute(sql, params![prefix, oldest]).map(drop)
        })
    }

    /// Runs work in one transaction, after settling the reservations of dead processes.
    fn change<T>(&mut self, work: impl FnOnce(&Transaction<'_>, &str, i64) -> rusqlite::Result<T>) -> Result<T> {
        let dead_at = now().saturating_add(millis(self.dead_after));
        let (owner, path, suspects) = (&self.owner, &self.path, &mut self.suspects);
        // A living process renews its reservations more often.
        let patience = self.dead_after / 2;
        let change = |connection: &mut Connection| {
            let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            bury(&transaction, owner, suspects, patience)?;
            let done = work(&transaction, owner, dead_at)?;
            transaction.commit()?;
            Ok(done)
        };
        change(&mut self.connection).map_err(|e| store_error(path, &e))
    }
}

/// Settles the reservations of processes that did not renew them in time, nor for `patience` after
/// that was noticed.
fn bury(transaction: &Transaction<'_>, own: &str, suspects: &mut Suspects, patience: Duration) -> rusqlite::Result<()> {
    let sql = "SELECT name, dead_at FROM owner WHERE dead_at < ?1 AND name <> ?2";
    let mut late = transaction.prepare_cached(sql)?;
    let late = late.query_map(params![now(), own], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let late = late.collect::<rusqlite::Result<BTreeMap<String, i64>>>()?;
    suspects.retain(|owner, (dead_at, _)| late.get(owner) == Some(dead_at));
    for (owner, dead_at) in late {
        let (_, since) = *suspects.entry(owner.clone()).or_insert((dead_at, Instant::now()));
        if since.elapsed() < patience {
            continue;
        }
        let sql = format!("SELECT {COLUMNS}, account FROM reservation WHERE owner = ?1");
        let mut left = transaction.prepare(&sql)?;
        let left = left.query_map([&owner], |row| Ok((row.get::<_, String>(4)?, amounts(row)?)))?;
        for (account, amounts) in left.collect::<rusqlite::Result<Vec<_>>>()? {
            book(transaction, &account, amounts)?;
        }
        transaction.execute("DELETE FROM reservation WHERE owner = ?1", [&owner])?;
        transaction.execute("DELETE FROM owner WHERE name = ?1", [&owner])?;
    }
    Ok(())
}

fn balance(transaction: &Transaction<'_>, account: &str) -> rusqlite::Result<Balance> {
    let sql = format!("SELECT {COLUMNS} FROM account WHERE name = ?1");
    let settled = transaction.prepare_cached(&sql)?.query_row([account], amounts).optional()?;
    let sql = "SELECT coalesce(sum(tokens), 0), coalesce(sum(cost), 0), coalesce(sum(model_calls), 0),
               coalesce(sum(tool_calls), 0) FROM reservation WHERE account = ?1";
    let reserved = transaction.prepare_cached(sql)?.query_row([account], amounts)?;
    Ok(Balance::new(settled.unwrap_or_default(), reserved))
}

fn book(transaction: &Transaction<'_>, account: &str, used: Amounts) -> rusqlite::Result<()> {
    let sql = format!(
        "INSERT INTO account (name, {COLUMNS}) VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT (name) DO UPDATE SET
         tokens = tokens + excluded.tokens, cost = cost + excluded.cost,
         model_calls = model_calls + excluded.model_calls, tool_calls = tool_calls + excluded.tool_calls"
    );
    let [tokens, cost, model_calls, tool_calls] = columns(used);
    transaction.prepare_cached(&sql)?.execute(params![account, tokens, cost, model_calls, tool_calls]).map(drop)
}

fn amounts(row: &Row<'_>) -> rusqlite::Result<Amounts> {
    from_columns(|at| row.get(at))
}

/// Returns the current time in milliseconds since 1970.
fn now() -> i64 {
    millis(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default())
}

fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}
