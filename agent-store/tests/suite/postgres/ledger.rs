//! Tests of the PostgreSQL ledger, beside the conformance tests.

use std::time::{Duration, Instant};

use agent_core::{
    Caps, ErrorKind,
    budget::{Amounts, Balance, Ledger},
};
use agent_store::PostgresLedger;
use futures::future::join_all;

use super::{Place, stalling::Stalling};

pub(crate) async fn open(place: &Place) -> PostgresLedger {
    open_with(place, Duration::from_secs(30)).await
}

async fn open_with(place: &Place, dead_after: Duration) -> PostgresLedger {
    PostgresLedger::connect_with(&place.url, &place.schema, dead_after).await.expect("connects")
}

fn tokens(n: u64) -> Amounts {
    Amounts::none().tokens(n)
}

/// Number of the advisory lock of an account, in SQL.
fn lock_key(place: &Place, account: &str) -> String {
    let schema = place.schema.replace('"', "\"\"");
    format!("hashtextextended('{account}', hashtextextended('\"{schema}\"', 0))")
}

async fn reserved(ledger: &PostgresLedger) -> u64 {
    ledger.reserve("x", &Caps::default(), tokens(10)).await.expect("works").expect("fits")
}

#[tokio::test]
async fn what_the_dead_had_set_aside_counts_as_used_and_the_living_keep_theirs() {
    let Some(place) = Place::new() else { return };
    let soon = Duration::from_secs(3);
    let (dead, alive) = (open_with(&place, soon).await, open_with(&place, soon).await);
    reserved(&dead).await;
    reserved(&alive).await;
    drop(dead); // without settling: its thread no longer renews
    let watcher = open(&place).await;
    let began = Instant::now();
    while watcher.balance("x").await.expect("reads") != Balance::new(tokens(10), tokens(10)) {
        assert!(began.elapsed() < Duration::from_secs(60), "{:?}", watcher.balance("x").await);
        tokio::time::sleep(Duration::from_millis(100)).await; // the server's clock cannot be paused
    }
    drop(alive);
}

#[tokio::test]
async fn a_lost_connection_is_made_again_and_a_settling_arrives() {
    let Some(place) = Place::new() else { return };
    let ledger = open(&place).await;
    let receipt = reserved(&ledger).await;
    place.cut().await;
    ledger.settle("x", receipt, tokens(4)).await.expect("on another connection");
    assert_eq!(ledger.balance("x").await.expect("reads"), Balance::new(tokens(4), Amounts::none()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_processes_never_pass_a_cap_together_whatever_isolation_is_the_databases_default() {
    let Some(place) = Place::new() else { return };
    let url = format!(r"{} options='-c default_transaction_isolation=repeatable\\ read'", place.url);
    let open = async || PostgresLedger::connect_with(&url, &place.schema, Duration::from_secs(30)).await;
    let (one, two) = (open().await.expect("connects"), open().await.expect("connects"));
    // Both transactions have begun before either can read the account.
    let account = "of the isolated";
    let lock = place.client().await;
    let key = lock_key(&place, account);
    lock.batch_execute(&format!("SELECT pg_advisory_lock({key})")).await.expect("locks");
    let caps = Caps::default().tokens(10);
    let reserving = [one, two]
        .map(|ledger| tokio::spawn(async move { ledger.reserve(account, &caps, tokens(10)).await.expect("works") }));
    let waiting = format!(
        "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted
         AND objid::int8 = {key} & 4294967295 AND classid::int8 = ({key} >> 32) & 4294967295"
    );
    while lock.query_one(&waiting, &[]).await.expect("counts").get::<_, i64>(0) < 2 {}
    lock.batch_execute(&format!("SELECT pg_advisory_unlock({key})")).await.expect("unlocks");
    let reserved = futures::future::join_all(reserving).await;
    assert_eq!(reserved.into_iter().filter(|receipt| matches!(receipt, Ok(Some(_)))).count(), 1);
}

#[tokio::test]
async fn a_time_too_short_to_say_that_one_lives_is_refused() {
    let e = PostgresLedger::connect_with("host=/nowhere", "s", Duration::from_millis(9)).await.expect_err("too short");
    assert!(e.kind() == ErrorKind::Config && e.message().contains("set 1s or more"), "{e}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_machine_that_is_lost_in_the_middle_of_a_reservation_holds_up_the_others_for_a_part_of_their_time() {
    let Some(place) = Place::new() else { return };
    let (lost, dead_after) = (Stalling::new().await, Duration::from_secs(16));
    let (theirs, ours) = (open_with(&lost.place(&place), dead_after).await, open_with(&place, dead_after).await);
    // The account is locked: its statement does not finish before the test lets it, and the caller
    // has disconnected by then.
    let slow = "CREATE TABLE opened ();
                CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$ BEGIN
                    IF NEW.tokens = 7 THEN
                        PERFORM pg_try_advisory_xact_lock(7002);
                        WHILE NOT EXISTS (SELECT FROM opened) LOOP PERFORM pg_sleep(0.01); END LOOP;
                    END IF;
                    RETURN NEW;
                END $$;
                CREATE TRIGGER slow BEFORE INSERT ON reservation FOR EACH ROW EXECUTE FUNCTION slow()";
    place.execute(slow).await;
    let reserving = tokio::spawn(async move { theirs.reserve("x", &Caps::default(), tokens(7)).await });
    let holds = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objid = 7002";
    while place.count(holds).await == 0 {
        assert!(!reserving.is_finished(), "it never came so far");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    lost.stall();
    place.execute("INSERT INTO opened DEFAULT VALUES").await;
    let began = Instant::now();
    reserved(&ours).await;
    assert!(began.elapsed() < dead_after / 2, "{:?}", began.elapsed());
    assert_eq!(
        ours.balance("x").await.expect("reads"),
        Balance::new(Amounts::none(), tokens(17)),
        "theirs counts until it expires"
    );
    reserving.abort();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_balance_is_read_while_others_hold_the_account() {
    let Some(place) = Place::new() else { return };
    let ledger = open(&place).await;
    reserved(&ledger).await;
    let other = place.client().await;
    let locks = "BEGIN; LOCK TABLE account, reservation IN SHARE ROW EXCLUSIVE MODE";
    other.batch_execute(locks).await.expect("locks");
    let reading = tokio::time::timeout(std::time::Duration::from_secs(8), ledger.balance("x"));
    assert_eq!(reading.await.expect("does not wait").expect("reads").reserved.tokens, 10);
}

#[tokio::test]
async fn many_runs_reserve_and_settle_in_a_few_transactions() {
    let Some(place) = Place::new() else { return };
    let ledger = open(&place).await;
    let names: Vec<String> = (0..300).map(|n| format!("run {n}")).collect();
    let caps = Caps::default().tokens(15);
    let reserve = || join_all(names.iter().map(|name| ledger.reserve(name, &caps, tokens(10))));
    let receipts: Vec<_> = reserve().await.into_iter().map(|made| made.expect("works").expect("fits")).collect();
    let transactions = place.count("SELECT count(DISTINCT xmin::text) FROM reservation").await;
    assert!(transactions <= 30, "{transactions} transactions for 300 reservations");
    assert!(reserve().await.into_iter().all(|made| made.expect("works").is_none()), "each of them passes its cap");

    let settle = names.iter().zip(receipts).map(|(name, receipt)| ledger.settle(name, receipt, tokens(7)));
    assert!(join_all(settle).await.iter().all(Result::is_ok));
    let transactions = place.count("SELECT count(DISTINCT xmin::text) FROM account").await;
    assert!(transactions <= 30, "{transactions} transactions for 300 settlements");
    assert_eq!(place.count("SELECT count(*) FROM account WHERE tokens = 7").await, 300);
    assert_eq!(place.count("SELECT count(*) FROM reservation").await, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_account_that_another_process_holds_fails_its_own_reservations_only() {
    let Some(place) = Place::new() else { return };
    let ledger = open_with(&place, Duration::from_secs(3)).await;
    let (reader, other) = (open(&place).await, place.client().await);
    let key = lock_key(&place, "held");
    other.batch_execute(&format!("SELECT pg_advisory_lock({key})")).await.expect("locks");
    // Together the locks are waited for longer than a reservation lives.
    let names = ["free", "held", "held", "held", "held"];
    let caps = Caps::default();
    let made = join_all(names.iter().map(|name| ledger.reserve(name, &caps, tokens(10)))).await;
    let made: Vec<_> = made.iter().map(|made| matches!(made, Ok(Some(_)))).collect();
    assert_eq!(made, [true, false, false, false, false]);
    assert_eq!(reader.balance("free").await.expect("reads").reserved.tokens, 10, "it was renewed meanwhile");
    other.batch_execute(&format!("SELECT pg_advisory_unlock({key})")).await.expect("unlocks");
    let freed = ledger.reserve("held", &Caps::default(), tokens(10)).await;
    assert!(freed.expect("works").is_some());
}
