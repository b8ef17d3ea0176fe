//! Tests of the file-based ledger, beside the conformance tests.

use std::time::Duration;

use agent_core::{
    Caps, ErrorKind,
    budget::{Amounts, Balance, Ledger},
};
use agent_store::SqliteLedger;

fn tokens(n: u64) -> Amounts {
    Amounts::none().tokens(n)
}

fn dir() -> tempfile::TempDir {
    tempfile::tempdir().expect("a directory")
}

#[tokio::test]
async fn what_the_dead_had_set_aside_counts_as_used_and_the_living_keep_theirs() {
    let (dir, soon) = (dir(), Duration::from_secs(3));
    let open = || SqliteLedger::open_with(dir.path().join("budget.db"), soon).expect("opens");
    let (dead, alive) = (open(), open());
    for ledger in [&dead, &alive] {
        ledger.reserve("x", &Caps::default(), tokens(10)).await.expect("works").expect("fits");
    }
    drop(dead); // without settling: its thread no longer renews
    let buried = Balance::new(tokens(10), tokens(10));
    let watcher = open();
    let began = std::time::Instant::now();
    while watcher.balance("x").await.expect("reads") != buried {
        assert!(began.elapsed() < Duration::from_secs(60), "{:?}", watcher.balance("x").await);
        tokio::time::sleep(Duration::from_millis(50)).await; // another process's clock cannot be paused
    }
    drop(alive);
}

#[tokio::test]
async fn a_jump_of_the_wall_clock_takes_nothing_from_the_living() {
    let dir = dir();
    let path = dir.path().join("budget.db");
    let open = || SqliteLedger::open_with(&path, Duration::from_secs(9)).expect("opens");
    let (alive, watcher) = (open(), open());
    alive.reserve("x", &Caps::default(), tokens(10)).await.expect("works").expect("fits");
    // As if the clock had jumped forward past the time until which the reservation is valid.
    let raw = rusqlite::Connection::open(&path).expect("opens");
    raw.busy_timeout(Duration::from_secs(10)).expect("sets");
    raw.execute("UPDATE owner SET dead_at = 1", ()).expect("updates");
    let held = Balance::new(tokens(0), tokens(10));
    assert_eq!(watcher.balance("x").await.expect("reads"), held);
    let renewed = || raw.query_row("SELECT min(dead_at) > 1 FROM owner", (), |row| row.get::<_, bool>(0));
    while !renewed().expect("reads") {
        tokio::time::sleep(Duration::from_millis(50)).await; // another process's clock cannot be paused
    }
    assert_eq!(watcher.balance("x").await.expect("reads"), held);
}

#[tokio::test]
async fn another_programs_database_is_left_alone() {
    let dir = dir();
    let path = dir.path().join("other.db");
    rusqlite::Connection::open(&path).and_then(|c| c.execute_batch("CREATE TABLE t (x)")).expect("a database");
    let e = SqliteLedger::open(&path).expect_err("refused");
    assert!(e.kind() == ErrorKind::Store && e.message().contains("use another path"), "{e}");
}
