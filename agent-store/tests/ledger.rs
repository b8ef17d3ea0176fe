//! The ledger that processes share.

use std::{sync::Arc, time::Duration};

use agent_core::{Amounts, Balance, Budget, Caps, ErrorKind, Ledger};
use agent_store::SqliteLedger;

fn tokens(n: u64) -> Amounts {
    Amounts::none().tokens(n)
}

fn dir() -> tempfile::TempDir {
    tempfile::tempdir().expect("a directory")
}

#[tokio::test]
async fn what_is_settled_and_set_aside_is_seen_by_all_who_open_the_file_and_is_there_again() {
    let dir = dir();
    let open = || SqliteLedger::open(dir.path().join("budget.db")).expect("opens");
    let (a, b, caps) = (open(), open(), Caps::default().tokens(100));
    let first = a.reserve("x", &caps, tokens(60)).await.expect("works").expect("fits");
    assert_eq!(b.reserve("x", &caps, tokens(60)).await.expect("works"), None);
    assert!(b.reserve("y", &caps, tokens(60)).await.expect("works").is_some(), "another account");
    a.settle("x", first, tokens(50).cost(7)).await.expect("settles");
    a.settle("x", first, tokens(50)).await.expect("a second time changes nothing");
    assert_eq!(b.balance("x").await.expect("reads"), Balance::new(tokens(50).cost(7), Amounts::none()));
    drop((a, b));
    assert_eq!(open().balance("x").await.expect("reads").settled, tokens(50).cost(7));
}

#[tokio::test]
async fn a_settling_that_nobody_waits_for_is_done_all_the_same() {
    let dir = dir();
    let path = dir.path().join("budget.db");
    let ledger = SqliteLedger::open(&path).expect("opens");
    let receipt = ledger.reserve("x", &Caps::default(), tokens(9)).await.expect("works").expect("fits");
    drop(ledger.settle("x", receipt, tokens(5)));
    drop(ledger); // waits for its thread
    let again = SqliteLedger::open(&path).expect("opens");
    assert_eq!(again.balance("x").await.expect("reads"), Balance::new(tokens(5), Amounts::none()));
}

#[tokio::test]
async fn what_the_dead_had_set_aside_counts_as_used_and_the_living_keep_theirs() {
    let (dir, soon) = (dir(), Duration::from_millis(600));
    let open = || SqliteLedger::open_with(dir.path().join("budget.db"), soon).expect("opens");
    let (dead, alive) = (open(), open());
    for ledger in [&dead, &alive] {
        ledger.reserve("x", &Caps::default(), tokens(10)).await.expect("works").expect("fits");
    }
    drop(dead); // without settling: its thread says no more that it lives
    let buried = Balance::new(tokens(10), tokens(10));
    let watcher = open();
    let began = std::time::Instant::now();
    while watcher.balance("x").await.expect("reads") != buried {
        assert!(began.elapsed() < Duration::from_secs(20), "{:?}", watcher.balance("x").await);
        tokio::time::sleep(Duration::from_millis(50)).await; // another process's clock cannot be paused
    }
    drop(alive);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn budgets_over_one_file_never_pass_the_cap_together() {
    let dir = dir();
    let path = Arc::new(dir.path().join("budget.db"));
    let workers = (0..4).map(|worker| {
        let path = path.clone();
        tokio::spawn(async move {
            let ledger = SqliteLedger::open(&*path).expect("opens");
            let budget = Budget::builder().caps(Caps::default().tokens(100)).ledger(ledger).build().expect("builds");
            for i in 0..20 {
                if let Ok(held) = budget.reserve(tokens(7)).await {
                    held.settle(tokens((i + worker) % 8)).await.expect("settles");
                }
            }
        })
    });
    for worker in futures::future::join_all(workers).await {
        worker.expect("no panic");
    }
    let ledger = SqliteLedger::open(&*path).expect("opens");
    let Balance { settled, reserved, .. } = ledger.balance("budget/all").await.expect("reads");
    assert!(settled.tokens <= 100 && settled.tokens > 70 && reserved == Amounts::none(), "{settled:?}");
}

#[tokio::test]
async fn another_programs_database_is_left_alone() {
    let dir = dir();
    let path = dir.path().join("other.db");
    rusqlite::Connection::open(&path).and_then(|c| c.execute_batch("CREATE TABLE t (x)")).expect("a database");
    let e = SqliteLedger::open(&path).expect_err("refused");
    assert!(e.kind() == ErrorKind::Store && e.message().contains("name another path"), "{e}");
}
