//! What is done to the tables.

use std::{collections::BTreeSet, time::Duration};

use agent_core::{Amounts, Balance, Caps, Result};
use tokio::{
    sync::{mpsc, oneshot},
    time::{Instant, timeout},
};
use tokio_postgres::{Client, Error, Row, Transaction};

use crate::postgres::{
    connect::Location,
    error::{is_conflict, is_fatal, lost_connection, store_error},
};

/// From nothing to format 1, and so on; see the journal's.
const MIGRATIONS: &[&str] = &[include_str!("schema.sql")];

/// One reservation of an account at a time, whoever makes it.
const LOCK: &str = "SELECT pg_advisory_xact_lock(hashtextextended($1, 0))";

/// Books as used what was set aside by those who did not say for too long that they live.
const BURY: &str = "
WITH dead AS (
    DELETE FROM reservation WHERE account = $1 AND dead_at < clock_timestamp()
    RETURNING tokens, cost, model_calls, tool_calls
)
INSERT INTO account (name, tokens, cost, model_calls, tool_calls)
SELECT $1, sum(tokens)::int8, sum(cost)::int8, sum(model_calls)::int8, sum(tool_calls)::int8
FROM dead HAVING count(*) > 0
ON CONFLICT (name) DO UPDATE SET
    tokens = account.tokens + excluded.tokens, cost = account.cost + excluded.cost,
    model_calls = account.model_calls + excluded.model_calls, tool_calls = account.tool_calls + excluded.tool_calls";

/// What is settled, and what is reserved.
const BALANCE: &str = "
SELECT coalesce(sum(tokens), 0)::int8, coalesce(sum(cost), 0)::int8, coalesce(sum(model_calls), 0)::int8,
       coalesce(sum(tool_calls), 0)::int8
FROM account WHERE name = $1
UNION ALL
SELECT coalesce(sum(tokens), 0)::int8, coalesce(sum(cost), 0)::int8, coalesce(sum(model_calls), 0)::int8,
       coalesce(sum(tool_calls), 0)::int8
FROM reservation WHERE account = $1";

const RESERVE: &str = "
INSERT INTO reservation (account, tokens, cost, model_calls, tool_calls, dead_at)
VALUES ($1, $2, $3, $4, $5, clock_timestamp() + $6::float8 * interval '1 second')
RETURNING id";

/// Ends a reservation, if it is there, and books what was used.
const SETTLE: &str = "
WITH ended AS (
    DELETE FROM reservation WHERE id = $6 AND account = $1 RETURNING id
)
INSERT INTO account (name, tokens, cost, model_calls, tool_calls)
SELECT $1, $2::int8, $3::int8, $4::int8, $5::int8 FROM ended
ON CONFLICT (name) DO UPDATE SET
    tokens = account.tokens + excluded.tokens, cost = account.cost + excluded.cost,
    model_calls = account.model_calls + excluded.model_calls, tool_calls = account.tool_calls + excluded.tool_calls";

const RENEW: &str =
    "UPDATE reservation SET dead_at = clock_timestamp() + $2::float8 * interval '1 second' WHERE id = ANY($1)";

/// What is asked of the books.
pub(super) enum Work {
    Balance { account: String, reply: oneshot::Sender<Result<Balance>> },
    Reserve { account: String, caps: Caps, wanted: Amounts, reply: oneshot::Sender<Result<Option<u64>>> },
    Settle { account: String, receipt: u64, used: Amounts, reply: oneshot::Sender<Result<()>> },
}

/// A connection, and what this process has set aside over it.
pub(super) struct Books {
    location: Location,
    /// None after the connection failed, until there is another.
    client: Option<Client>,
    /// The reservations to renew. One that nobody knows was made, or that could not be settled, expires.
    held: BTreeSet<i64>,
    dead_after: Duration,
    renewed: Instant,
}

impl Books {
    pub(super) async fn open(location: Location, dead_after: Duration) -> Result<Self> {
        location.migrate(MIGRATIONS).await?;
        let client = Some(location.attach().await?);
        Ok(Self { location, client, held: BTreeSet::new(), dead_after, renewed: Instant::now() })
    }

    pub(super) async fn run(mut self, mut work: mpsc::UnboundedReceiver<Work>) {
        // A third of the time: two renewals can fail before it has run out.
        let heartbeat = self.dead_after / 3;
        loop {
            let came = timeout(heartbeat, work.recv()).await;
            if self.renewed.elapsed() >= heartbeat {
                self.renew().await;
            }
            match came {
                Ok(Some(work)) => self.work(work).await,
                Ok(None) => return,
                Err(_) => {}
            }
        }
    }

    async fn work(&mut self, work: Work) {
        match work {
            Work::Balance { account, reply } => drop(reply.send(self.balance(&account).await)),
            Work::Reserve { account, caps, wanted, reply } => {
                let reserved = self.reserve(&account, &caps, wanted).await;
                if let Err(Ok(Some(receipt))) = reply.send(reserved) {
                    // Whoever asked has gone away, and began nothing.
                    drop(self.settle(&account, receipt, Amounts::none()).await);
                }
            }
            Work::Settle { account, receipt, used, reply } => {
                drop(reply.send(self.settle(&account, receipt, used).await));
            }
        }
    }

    async fn balance(&mut self, account: &str) -> Result<Balance> {
        self.change(async |transaction| balance(transaction, account).await).await
    }

    async fn reserve(&mut self, account: &str, caps: &Caps, wanted: Amounts) -> Result<Option<u64>> {
        let seconds = self.dead_after.as_secs_f64();
        let id = self.change(async |transaction| {
            let Balance { settled, reserved, .. } = balance(transaction, account).await?;
            if caps.refusal(settled.plus(reserved), wanted).is_some() {
                return Ok(None);
            }
            let [tokens, cost, model_calls, tool_calls] = columns(wanted);
            let row = transaction
                .query_one(RESERVE, &[&account, &tokens, &cost, &model_calls, &tool_calls, &seconds])
                .await?;
            Ok(Some(row.get::<_, i64>(0)))
        });
        let id = id.await?;
        self.held.extend(id);
        Ok(id.map(i64::cast_unsigned))
    }

    /// Done again if the connection is lost on the way: a reservation ends once.
    async fn settle(&mut self, account: &str, receipt: u64, used: Amounts) -> Result<()> {
        let receipt = receipt.cast_signed();
        self.held.remove(&receipt);
        let [tokens, cost, model_calls, tool_calls] = columns(used);
        let settle = async |transaction: &Transaction<'_>| {
            transaction
                .execute(SETTLE, &[&account, &tokens, &cost, &model_calls, &tool_calls, &receipt])
                .await
                .map(drop)
        };
        match self.change(settle).await {
            Err(e) if e.is_retryable() => self.change(settle).await,
            settled => settled,
        }
    }

    async fn renew(&mut self) {
        let (held, seconds) = (self.held.iter().copied().collect::<Vec<_>>(), self.dead_after.as_secs_f64());
        let renewed = self.change(async |transaction| transaction.execute(RENEW, &[&held, &seconds]).await).await;
        match renewed {
            Ok(_) => self.renewed = Instant::now(),
            Err(e) => tracing::warn!(error = %e, "a ledger's reservations could not be renewed; they may expire"),
        }
    }

    /// Does it in one transaction.
    async fn change<T>(&mut self, work: impl AsyncFn(&Transaction<'_>) -> Result<T, Error>) -> Result<T> {
        const TRIES: u32 = 5;
        let patience = self.dead_after;
        for attempt in 1.. {
            let client = self.client().await?;
            let done = timeout(patience, async {
                let transaction = client.transaction().await?;
                let done = work(&transaction).await?;
                transaction.commit().await.map(|()| done)
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

    /// The connection, made anew if it is gone.
    async fn client(&mut self) -> Result<&mut Client> {
        let client = match self.client.take().filter(|client| !client.is_closed()) {
            Some(client) => client,
            None => self.location.reconnect(Location::attach).await?,
        };
        Ok(self.client.insert(client))
    }
}

/// What the account holds, after what the dead left was booked. Until the transaction ends, nobody else changes it.
async fn balance(transaction: &Transaction<'_>, account: &str) -> Result<Balance, Error> {
    transaction.execute(LOCK, &[&account]).await?;
    transaction.execute(BURY, &[&account]).await?;
    let rows = transaction.query(BALANCE, &[&account]).await?;
    Ok(Balance::new(rows.first().map(amounts).unwrap_or_default(), rows.get(1).map(amounts).unwrap_or_default()))
}

fn amounts(row: &Row) -> Amounts {
    let column = |at| u64::try_from(row.get::<_, i64>(at)).unwrap_or(0);
    Amounts::none().tokens(column(0)).cost(column(1)).model_calls(column(2)).tool_calls(column(3))
}

fn columns(amounts: Amounts) -> [i64; 4] {
    let Amounts { tokens, cost, model_calls, tool_calls, .. } = amounts;
    [tokens, cost, model_calls, tool_calls].map(|n| i64::try_from(n).unwrap_or(i64::MAX))
}
