//! Appends of 2 KB from many concurrent runs, acknowledged when on disk, and the same rows through
//! plain rusqlite.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use agent::{
    Error, ErrorKind, Message, Result, SqliteJournal,
    core::{
        Journal,
        journal::{Entry, EntryBody},
    },
};
use futures::future::try_join_all;
use rusqlite::Connection;

use super::Row;

/// Minimum fraction of plain rusqlite's throughput.
const BAR: f64 = 0.6;

/// Approximate size of an entry in bytes.
const ENTRY: usize = 2048;

pub(crate) async fn measure(dir: &Path, runs: usize, appends: usize, rounds: usize) -> Result<Vec<Row>> {
    let (mut ours, mut theirs) = (Duration::MAX, Duration::MAX);
    for round in 1..=rounds {
        eprintln!("appends: round {round} of {rounds}");
        // Alternating, so that both have the same share of a busy machine.
        ours = ours.min(journal(&dir.join(format!("journal-{round}.db")), runs, appends).await?);
        theirs = theirs.min(alone(&dir.join(format!("alone-{round}.db")), runs, appends)?);
    }
    let rate = |took: Duration| (runs * appends) as f64 / took.as_secs_f64();
    let share = rate(ours) / rate(theirs);
    let judged = !cfg!(debug_assertions);
    let bar = if judged { "at least 60 %" } else { "not judged in a debug build" };
    Ok(vec![
        Row::plain(format!("appends per second, {runs} runs"), format!("{:.0}", rate(ours))),
        Row::plain("  rusqlite alone, in groups of 64", format!("{:.0}", rate(theirs))),
        Row::new("  share", format!("{:.0} %", share * 100.0), bar, !judged || share >= BAR),
    ])
}

/// Each run awaits one append before the next.
async fn journal(path: &Path, runs: usize, appends: usize) -> Result<Duration> {
    let journal = SqliteJournal::open(path)?;
    let mut writers = Vec::new();
    for run in 0..runs {
        writers.push(journal.open(&format!("session-{run}"), "bench").await?);
    }
    let text = "x".repeat(ENTRY - 64);
    let started = Instant::now();
    let tasks = writers.into_iter().map(|writer| {
        let text = text.clone();
        tokio::spawn(async move {
            for _ in 0..appends {
                let body = EntryBody::MessageAppended { message: Message::user(text.clone()) };
                writer.append(vec![Entry::new("run".into(), 1_700_000_000_000, body)]).await?;
            }
            Ok::<_, Error>(())
        })
    });
    let ends = try_join_all(tasks).await.map_err(|e| Error::new(ErrorKind::Store, "a run panicked").with_source(e))?;
    ends.into_iter().collect::<Result<()>>()?;
    let (took, stats) = (started.elapsed(), journal.stats());
    eprintln!("appends: {:.1} in a commit", stats.jobs as f64 / stats.commits as f64);
    Ok(took)
}

/// Inserts the same rows with the same pragmas, in transactions of as many rows as there are runs,
/// at most 64.
fn alone(path: &Path, runs: usize, appends: usize) -> Result<Duration> {
    let insert = || -> rusqlite::Result<Duration> {
        let connection = Connection::open(path)?;
        connection.execute_batch(
            "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 1000;
             PRAGMA journal_size_limit = 16777216;
             CREATE TABLE entry (
                 id INTEGER PRIMARY KEY, session INTEGER NOT NULL, seq INTEGER NOT NULL, run INTEGER NOT NULL,
                 time INTEGER NOT NULL, version INTEGER NOT NULL, body TEXT NOT NULL, UNIQUE (session, seq)
             ) STRICT",
        )?;
        let message = Message::user("x".repeat(ENTRY - 64));
        let body = EntryBody::MessageAppended { message }.to_json().unwrap_or_default();
        let group = runs.min(64);
        let mut rows = (1..=appends).flat_map(|seq| (0..runs).map(move |session| (session, seq))).peekable();
        let started = Instant::now();
        while rows.peek().is_some() {
            let transaction = connection.unchecked_transaction()?;
            let mut insert = connection.prepare_cached(
                "INSERT INTO entry (session, seq, run, time, version, body) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
            )?;
            for (session, seq) in rows.by_ref().take(group) {
                insert.execute((session as i64, seq as i64, session as i64, 1_700_000_000_000_i64, 1, &body))?;
            }
            transaction.commit()?;
        }
        Ok(started.elapsed())
    };
    insert().map_err(|e| Error::new(ErrorKind::Store, "rusqlite alone failed").with_source(e))
}
