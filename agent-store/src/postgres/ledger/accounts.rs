//! Operations on the ledger's tables.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use agent_core::{
    Result,
    budget::{Amounts, Balance, Reserved},
};
use futures::{future::join_all, join};
use tokio::{
    sync::{mpsc, oneshot},
    time::{Instant, timeout},
};
use tokio_postgres::{Client, Error, Row, types::Type};

use super::change::Change;
use crate::{
    amounts::from_columns,
    error::not_forgotten,
    postgres::{
        connect::Location,
        error::{is_conflict, is_fatal, lost_connection, store_error},
        query::{Parameter, Query},
    },
};

/// Migrations from an empty schema to format 1, and so on; see the journal's.
const MIGRATIONS: &[&str] = &[include_str!("schema.sql")];

/// A settlement is on disk when it is acknowledged. Lock waits are short enough that reservations
/// can still be renewed, and the server ends the transaction of a silent client before others
/// waiting for its account time out.
const SETTINGS: &str = "SET LOCAL synchronous_commit TO on; SET LOCAL lock_timeout = {patience};
SET LOCAL idle_in_transaction_session_timeout = {silence}";

/// Maximum lock wait.
const LONGEST: Duration = Duration::from_secs(10);

/// Serialises reservations of accounts across processes. Locks them in a fixed order, so that two processes do not deadlock.
const LOCK: &str = "
SELECT pg_advisory_xact_lock(hashtextextended(account, {lock_space}))
FROM (SELECT DISTINCT account FROM unnest($1::text[]) AS a (account) ORDER BY account) AS sorted";

/// Settles the expired reservations of dead processes in full.
const BURY: &str = "
WITH dead AS (
    DELETE FROM {schema}.reservation WHERE account = ANY($1) AND dead_at < clock_timestamp()
    RETURNING account, tokens, cost, model_calls, tool_calls
)
INSERT INTO {schema}.account (name, tokens, cost, model_calls, tool_calls)
SELECT account, sum(tokens)::int8, sum(cost)::int8, sum(model_calls)::int8, sum(tool_calls)::int8
FROM dead GROUP BY account ORDER BY account
ON CONFLICT (name) DO UPDATE SET
    tokens = account.tokens + excluded.tokens, cost = account.cost + excluded.cost,
    model_calls = account.model_calls + excluded.model_calls, tool_calls = account.tool_calls + excluded.tool_calls";

/// Settled and reserved amounts; the expired reservations of dead processes count as settled.
const LOOK: &str = "
SELECT coalesce(sum(tokens), 0)::int8, coalesce(sum(cost), 0)::int8, coalesce(sum(model_calls), 0)::int8,
       coalesce(sum(tool_calls), 0)::int8
FROM (
    SELECT tokens, cost, model_calls, tool_calls FROM {schema}.account WHERE name = $1
    UNION ALL
    SELECT tokens, cost, model_calls, tool_calls FROM {schema}.reservation
    WHERE account = $1 AND dead_at < clock_timestamp()
) AS settled
UNION ALL
SELECT coalesce(sum(tokens), 0)::int8, coalesce(sum(cost), 0)::int8, coalesce(sum(model_calls), 0)::int8,
       coalesce(sum(tool_calls), 0)::int8
FROM {schema}.reservation WHERE account = $1 AND dead_at >= clock_timestamp()";

/// Reserves in all accounts `$1`, or in none: returns the position of the first that refuses, or the
/// ids of the reservations. The arrays are the caps, with nulls for unlimited amounts.
const RESERVE: &str = "
WITH wanted AS (
    SELECT * FROM unnest($1::text[], $7::int8[], $8::int8[], $9::int8[], $10::int8[])
        WITH ORDINALITY AS w (account, tokens, cost, model_calls, tool_calls, n)
), refused AS (
    SELECT min(w.n) AS n FROM wanted AS w LEFT JOIN {schema}.account AS a ON a.name = w.account
    CROSS JOIN LATERAL (
        SELECT coalesce(sum(tokens), 0) AS tokens, coalesce(sum(cost), 0) AS cost,
               coalesce(sum(model_calls), 0) AS model_calls, coalesce(sum(tool_calls), 0) AS tool_calls
        FROM {schema}.reservation WHERE reservation.account = w.account
    ) AS r
    WHERE $2::int8 > 0 AND coalesce(a.tokens, 0) + r.tokens + $2 > w.tokens
       OR $3::int8 > 0 AND coalesce(a.cost, 0) + r.cost + $3 > w.cost
       OR $4::int8 > 0 AND coalesce(a.model_calls, 0) + r.model_calls + $4 > w.model_calls
       OR $5::int8 > 0 AND coalesce(a.tool_calls, 0) + r.tool_calls + $5 > w.tool_calls
), reserved AS (
    INSERT INTO {schema}.reservation (account, tokens, cost, model_calls, tool_calls, dead_at)
    SELECT account, $2, $3, $4, $5, clock_timestamp() + $6::float8 * interval '1 second'
    FROM wanted WHERE (SELECT n FROM refused) IS NULL ORDER BY n
    RETURNING id
)
SELECT n, id FROM refused LEFT JOIN reserved ON true ORDER BY id";

/// Ends reservations, those that exist, and books the usage in each account.
const SETTLE: &str = "
WITH ended AS (
    DELETE FROM {schema}.reservation USING unnest($1::text[], $6::int8[]) AS s (account, id)
    WHERE reservation.id = s.id AND reservation.account = s.account RETURNING reservation.account
)
INSERT INTO {schema}.account (name, tokens, cost, model_calls, tool_calls)
SELECT account, $2::int8 * count(*), $3::int8 * count(*), $4::int8 * count(*), $5::int8 * count(*)
FROM ended GROUP BY account ORDER BY account
ON CONFLICT (name) DO UPDATE SET
    tokens = account.tokens + excluded.tokens, cost = account.cost + excluded.cost,
    model_calls = account.model_calls + excluded.model_calls, tool_calls = account.tool_calls + excluded.tool_calls";

const RENEW: &str =
    "UPDATE {schema}.reservation SET dead_at = clock_timestamp() + $2::float8 * interval '1 second' WHERE id = ANY($1)";

/// Deletes past accounts, except those with reservations of live processes; reservations of dead
/// processes are deleted with them. Names sort here as they do in Rust.
const FORGET: &str = r#"
WITH dead AS (
    DELETE FROM {schema}.reservation
    WHERE starts_with(account, $1) AND account < $2 COLLATE "C" AND dead_at < clock_timestamp()
)
DELETE FROM {schema}.account
WHERE starts_with(name, $1) AND name < $2 COLLATE "C" AND NOT EXISTS (
    SELECT FROM {schema}.reservation WHERE reservation.account = name AND dead_at >= clock_timestamp()
)"#;

/// Maximum number of requests that are taken at once, and of changes in one transaction.
const TOGETHER: usize = 30;

/// Requests to the thread.
pub(super) enum Work {
    Balance { account: String, reply: oneshot::Sender<Result<Balance>> },
    Change(Change),
    Forget { prefix: String, oldest: String },
}

/// Connection, and the reservations made over it.
pub(super) struct Accounts {
    location: Location,
    /// None after the connection failed, until it is reconnected.
    client: Option<Client>,
    /// Reservations to renew. One whose creation was not acknowledged, or that could not be
    /// settled, expires.
    held: BTreeSet<i64>,
    dead_after: Duration,
    renewed: Instant,
    statements: Arc<Statements>,
}

/// SQL statements.
pub(super) struct Statements {
    settings: String,
    lock: Query,
    bury: Query,
    balance: Query,
    pub(super) reserve: Query,
    pub(super) settle: Query,
    renew: Query,
    forget: Query,
}

impl Statements {
    fn new(location: &Location, dead_after: Duration) -> Self {
        let patience = (dead_after / 3).min(LONGEST);
        let millis = |time: Duration| time.as_millis().to_string();
        let settings = SETTINGS.replace("{patience}", &millis(patience));
        let query = |text: &str, types: &'static [Type]| Query::new(location.sql(text), types);
        const I: Type = Type::INT8;
        const A: Type = Type::INT8_ARRAY;
        let accounts = const { &[Type::TEXT_ARRAY] };
        Self {
            settings: settings.replace("{silence}", &millis(patience * 3 / 4)),
            lock: query(LOCK, accounts),
            bury: query(BURY, accounts),
            balance: query(LOOK, const { &[Type::TEXT] }),
            reserve: query(RESERVE, const { &[Type::TEXT_ARRAY, I, I, I, I, Type::FLOAT8, A, A, A, A] }),
            settle: query(SETTLE, const { &[Type::TEXT_ARRAY, I, I, I, I, A] }),
            renew: query(RENEW, const { &[Type::INT8_ARRAY, Type::FLOAT8] }),
            forget: query(FORGET, const { &[Type::TEXT, Type::TEXT] }),
        }
    }
}

impl Accounts {
    pub(super) async fn open(location: Location, dead_after: Duration) -> Result<Self> {
        location.migrate(MIGRATIONS).await?;
        let client = Some(location.attach().await?);
        let statements = Arc::new(Statements::new(&location, dead_after));
        Ok(Self { location, client, held: BTreeSet::new(), dead_after, renewed: Instant::now(), statements })
    }

    pub(super) async fn run(mut self, mut work: mpsc::UnboundedReceiver<Work>) {
        let (mut asked, mut changes) = (Vec::new(), Vec::new());
        loop {
            let came = timeout(self.heartbeat(), work.recv_many(&mut asked, TOGETHER)).await;
            self.renew_if_due().await;
            if came == Ok(0) {
                return;
            }
            for asked in asked.drain(..) {
                self.work(asked, &mut changes).await;
            }
            self.make(std::mem::take(&mut changes)).await;
        }
    }

    /// Returns the time between renewals: a third of the time after which a reservation expires, so
    /// that two renewals can fail.
    fn heartbeat(&self) -> Duration {
        self.dead_after / 3
    }

    async fn renew_if_due(&mut self) {
        if self.renewed.elapsed() >= self.heartbeat() {
            self.renew().await;
        }
    }

    /// Does the work at once, except changes, which are collected.
    async fn work(&mut self, work: Work, changes: &mut Vec<Change>) {
        match work {
            Work::Balance { account, reply } => drop(reply.send(self.balance(&account).await)),
            Work::Change(change) => changes.push(change),
            Work::Forget { prefix, oldest } => not_forgotten(self.forget(&prefix, &oldest).await),
        }
    }

    /// Makes changes in one transaction, or one by one if that fails.
    async fn make(&mut self, changes: Vec<Change>) {
        for receipt in changes.iter().flat_map(Change::settled) {
            self.held.remove(&receipt);
        }
        match self.together(&changes).await {
            Ok(done) => {
                for (change, rows) in changes.into_iter().zip(done) {
                    self.finish(change, Ok(rows)).await;
                }
            }
            Err(e) => {
                // If the connection was lost, the server may have committed: a reservation ends only
                // once, but is not made twice. One that was made expires.
                let (is_lost, is_alone) = (self.client.is_none(), changes.len() == 1);
                for change in changes {
                    let is_repeated = match change.is_reservation() {
                        true => !is_lost && !is_alone,
                        false => !is_alone || e.is_retryable(),
                    };
                    self.renew_if_due().await; // each may wait for a lock
                    let done = match is_repeated {
                        true => self.together(std::slice::from_ref(&change)).await.map(|mut done| done.remove(0)),
                        false => Err(copy(&e)),
                    };
                    self.finish(change, done).await;
                }
            }
        }
    }

    /// Makes changes in one round trip and one commit, and returns the rows of each.
    async fn together(&mut self, changes: &[Change]) -> Result<Vec<Vec<Row>>> {
        if changes.is_empty() {
            return Ok(Vec::new());
        }
        let seconds = self.dead_after.as_secs_f64();
        let names: Vec<_> = changes.iter().flat_map(Change::accounts).collect();
        let make = async |statements: &Statements, client: &Client| {
            // A statement sees what was committed before it began: the balances are read after the
            // locks are held.
            let named: [Parameter<'_>; 1] = [&names];
            let (locked, buried, changed) = join!(
                statements.lock.rows(client, &named),
                statements.bury.rows(client, &named),
                join_all(changes.iter().map(|change| change.send(statements, client, seconds))),
            );
            locked.and(buried)?;
            changed.into_iter().collect()
        };
        self.change(make).await
    }

    /// Sends the result of a change.
    async fn finish(&mut self, change: Change, rows: Result<Vec<Row>>) {
        match change {
            Change::Settle { reply, .. } => drop(reply.send(rows.map(drop))),
            Change::Reserve { accounts, reply, .. } => {
                let reserved = rows.map(|rows| reserved(&rows));
                if let Ok(Reserved::All(receipts)) = &reserved {
                    self.held.extend(receipts.iter().map(|receipt| receipt.cast_signed()));
                }
                if let Err(Ok(Reserved::All(receipts))) = reply.send(reserved) {
                    // The caller was cancelled and has begun nothing.
                    let reservations: Vec<_> = accounts.into_iter().map(|(account, _)| account).zip(receipts).collect();
                    let (settle, _) = Change::settle(reservations, Amounts::none());
                    settle.settled().for_each(|receipt| _ = self.held.remove(&receipt));
                    drop(self.together(&[settle]).await);
                }
            }
        }
    }

    /// Reads a balance, in one round trip that waits for nobody and writes nothing.
    async fn balance(&mut self, account: &str) -> Result<Balance> {
        let (patience, statements) = (self.dead_after, self.statements.clone());
        for is_last in [false, true] {
            let client = self.client().await?;
            let read = async { of_rows(&statements.balance.rows(client, &[&account]).await?) };
            match timeout(patience, read).await {
                Ok(Ok(balance)) => return Ok(balance),
                Ok(Err(e)) if is_last || !is_fatal(&e) => return Err(store_error(&e)),
                // The connection was lost before: a read can be repeated.
                Ok(Err(_)) => self.client = None,
                Err(_) => break,
            }
        }
        self.client = None;
        Err(lost_connection())
    }

    async fn forget(&mut self, prefix: &str, oldest: &str) -> Result<()> {
        let forget =
            async |statements: &Statements, client: &Client| statements.forget.rows(client, &[&prefix, &oldest]).await;
        self.change(forget).await.map(drop)
    }

    async fn renew(&mut self) {
        let (held, seconds) = (self.held.iter().copied().collect::<Vec<_>>(), self.dead_after.as_secs_f64());
        let renew =
            async |statements: &Statements, client: &Client| statements.renew.rows(client, &[&held, &seconds]).await;
        match self.change(renew).await {
            Ok(_) => self.renewed = Instant::now(),
            Err(e) => tracing::warn!(error = %e, "a ledger's reservations could not be renewed; they may expire"),
        }
    }

    /// Runs work in one transaction at isolation level READ COMMITTED, whatever the database's
    /// default: a snapshot of the account from before the lock would allow double spending. The work
    /// sends all its statements when it is first polled, so that everything is one round trip.
    async fn change<T>(&mut self, work: impl AsyncFn(&Statements, &Client) -> Result<T, Error>) -> Result<T> {
        const TRIES: u32 = 5;
        let (patience, statements) = (self.dead_after, self.statements.clone());
        let begin = format!("BEGIN ISOLATION LEVEL READ COMMITTED; {}", statements.settings);
        for attempt in 1.. {
            let client: &Client = self.client().await?;
            let done = timeout(patience, async {
                let (begun, done, committed) =
                    join!(client.batch_execute(&begin), work(&statements, client), client.batch_execute("COMMIT"));
                begun?;
                let done = done?;
                committed.map(|()| done)
            });
            match done.await {
                Ok(Ok(done)) => return Ok(done),
                Ok(Err(e)) if is_conflict(&e) && attempt < TRIES => {}
                Ok(Err(e)) => {
                    if is_fatal(&e) {
                        self.client = None;
                    }
                    return Err(store_error(&e));
                }
                Err(_) => break,
            }
        }
        self.client = None;
        Err(lost_connection())
    }

    /// Returns the connection, reopened if it is closed.
    async fn client(&mut self) -> Result<&mut Client> {
        let client = match self.client.take().filter(|client| !client.is_closed()) {
            Some(client) => client,
            None => self.location.reconnect(Location::attach).await?,
        };
        Ok(self.client.insert(client))
    }
}

/// Returns the outcome of a reservation.
fn reserved(rows: &[Row]) -> Reserved {
    match rows.first().and_then(|row| row.get::<_, Option<i64>>(0)) {
        Some(position) => Reserved::RefusedBy(usize::try_from(position - 1).unwrap_or_default()),
        None => {
            Reserved::All(rows.iter().filter_map(|row| row.get::<_, Option<i64>>(1)).map(i64::cast_unsigned).collect())
        }
    }
}

/// Copies the error of a transaction for each of its changes.
fn copy(e: &agent_core::Error) -> agent_core::Error {
    agent_core::Error::new(e.kind(), e.message().to_owned()).with_retry(e.retry())
}

/// Decodes the settled and the reserved amounts.
fn of_rows(rows: &[Row]) -> Result<Balance, Error> {
    let amounts = |at| rows.get(at).map_or(Ok(Amounts::none()), amounts);
    Ok(Balance::new(amounts(0)?, amounts(1)?))
}

fn amounts(row: &Row) -> Result<Amounts, Error> {
    from_columns(|at| row.try_get(at))
}
