//! `agent store`.

use std::time::{Duration, SystemTime};

use agent::{
    Error, PostgresJournal, Result, SqliteJournal,
    config::StoreAddress,
    core::Journal,
    dispatch::QueueAdmin,
    store::{Erasure, Owner, PostgresLedger, PostgresQueue, Problem, Retention},
};
use serde_json::json;

use crate::{
    cli::{Erased, Global, Store, StoreAct},
    output::{End, print, print_json},
    store,
};

/// Opened store.
enum Opened {
    Sqlite(SqliteJournal),
    Postgres(PostgresJournal),
}

impl Opened {
    async fn of(address: &StoreAddress) -> Result<Self> {
        match address {
            StoreAddress::Sqlite(path) if !path.exists() => {
                Err(Error::config(format!("there is no store '{}': name one with --store", path.display())))
            }
            StoreAddress::Sqlite(path) => Ok(Self::Sqlite(SqliteJournal::open(path)?)),
            StoreAddress::Postgres(url) => Ok(Self::Postgres(PostgresJournal::connect(url).await?)),
            _ => Err(Error::config("a store in memory needs no maintenance: name one with --store")),
        }
    }

    fn journal(&self) -> &dyn Journal {
        match self {
            Self::Sqlite(journal) => journal,
            Self::Postgres(journal) => journal,
        }
    }
}

/// Calls a method of the store.
macro_rules! on {
    ($opened:expr, $method:ident) => {
        match $opened {
            Opened::Sqlite(journal) => journal.$method().await,
            Opened::Postgres(journal) => journal.$method().await,
        }
    };
}

/// Maintains the store.
pub(crate) async fn maintain(wanted: Store, global: &Global) -> Result<End> {
    let address = store::address(global, None)?;
    if let StoreAct::Migrate { check } = wanted.act {
        return migrate(&address, check, global).await;
    }
    let opened = Opened::of(&address).await?;
    match wanted.act {
        StoreAct::Migrate { .. } => {}
        StoreAct::Check => {
            let problems = on!(&opened, check)?;
            report(&problems, global)?;
            return Ok(if problems.is_empty() { End::Finished } else { End::Failed });
        }
        StoreAct::Repair => report(&on!(&opened, repair)?, global)?,
        StoreAct::Vacuum => on!(&opened, vacuum)?,
        StoreAct::Rebuild => on!(&opened, rebuild)?,
        StoreAct::Retain { older_than, prefix } => {
            let age = Duration::from_secs(u64::from(older_than) * 86_400);
            let retention = Retention::default().prefix(prefix).older_than(age);
            let deleted = retention.apply(opened.journal(), SystemTime::now()).await?;
            let purged = match queue(&address).await? {
                Some(queue) => queue.purge(age).await?,
                None => 0,
            };
            match global.json {
                true => print_json(&json!({"deleted": deleted, "purged_jobs": purged}))?,
                false => print(&format!("{} sessions and {purged} jobs deleted\n", deleted.len()))?,
            }
        }
        StoreAct::Erase(owner) => erase(&address, &opened, owner, global).await?,
    }
    Ok(End::Finished)
}

/// Creates or migrates all tables, or checks whether that is needed.
async fn migrate(address: &StoreAddress, check: bool, global: &Global) -> Result<End> {
    let migrated = match address {
        StoreAddress::Sqlite(path) if check && !path.exists() => {
            Err(Error::config("there is no store yet").with_context("needs_format", "any"))
        }
        StoreAddress::Sqlite(path) => SqliteJournal::builder(path).migrate(!check).open().map(drop),
        StoreAddress::Postgres(url) => {
            let url = with_migrate(url, !check);
            async {
                drop(PostgresJournal::connect(&url).await?);
                drop(PostgresQueue::builder(&url).listen(false).connections(1).connect().await?);
                PostgresLedger::connect(&url).await.map(drop)
            }
            .await
        }
        _ => Ok(()),
    };
    let is_current = match (migrated, check) {
        (Ok(()), _) => true,
        (Err(error), true) if error.context("needs_format").is_some() => {
            if !global.json {
                print(&format!("{}\n", error.message()))?;
            }
            false
        }
        (Err(error), _) => return Err(error),
    };
    if global.json {
        print_json(&json!({"current": is_current}))?;
    }
    Ok(if is_current { End::Finished } else { End::Failed })
}

/// Returns the URL with this setting.
fn with_migrate(url: &str, yes: bool) -> String {
    let sign = match (url.contains("://"), url.contains('?')) {
        (true, true) => '&',
        (true, false) => '?',
        (false, _) => ' ',
    };
    format!("{url}{sign}migrate={yes}")
}

/// Connects to the queue of the store, if it can have one.
async fn queue(address: &StoreAddress) -> Result<Option<PostgresQueue>> {
    let StoreAddress::Postgres(url) = address else { return Ok(None) };
    PostgresQueue::builder(url).listen(false).connections(1).connect().await.map(Some)
}

async fn erase(address: &StoreAddress, opened: &Opened, owner: Erased, global: &Global) -> Result<()> {
    let owner = match owner {
        Erased { session: Some(name), .. } => Owner::Session(name),
        Erased { user: Some(name), .. } => Owner::User(name),
        Erased { tenant, .. } => Owner::Tenant(tenant.unwrap_or_default()),
    };
    let (queue, ledger) = (queue(address).await?, address.open_ledger().await?);
    let mut erasure = Erasure::of(owner).ledger(&*ledger);
    if let Some(queue) = &queue {
        erasure = erasure.queue(queue);
    }
    let erased = erasure.apply(opened.journal()).await?;
    match global.json {
        true => print_json(&json!({"erased": erased})),
        false => print(&format!("{} sessions erased\n", erased.len())),
    }
}

/// Lists problems.
fn report(problems: &[Problem], global: &Global) -> Result<()> {
    for problem in problems {
        match global.json {
            true => print_json(&json!({"problem": problem.to_string(), "repairable": problem.is_repairable()}))?,
            false => print(&format!("{problem}\n"))?,
        }
    }
    Ok(())
}
