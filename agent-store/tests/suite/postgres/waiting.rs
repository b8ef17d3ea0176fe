//! Lock waits and their limits.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use agent_core::{ErrorKind, Journal, journal::JournalWriter};
use agent_store::PostgresJournal;
use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
    sync::watch,
    time::timeout,
};
use tokio_postgres::Client;

use super::{
    append,
    server::{Place, Server},
    texts,
};

/// Upper limit for operations that must not be blocked.
const SOON: Duration = Duration::from_secs(20);

async fn within<T>(work: impl Future<Output = T>) -> T {
    timeout(SOON, work).await.expect("it is held up")
}

/// Waits until the server reports a waiter for a lock on the tables of `place`.
async fn until_somebody_waits(place: &Place, client: &Client) {
    let waiting = format!(
        "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND application_name LIKE '%{}'",
        place.schema
    );
    within(async { while client.query_one(&waiting, &[]).await.expect("counts").get::<_, i64>(0) == 0 {} }).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_that_is_deleted_holds_up_no_writer_of_another() {
    let Some(place) = Place::new() else { return };
    let (ours, theirs) = (place.open().await, place.open().await);
    append(&*ours.open("old", "a").await.expect("is free"), &["1"]).await;
    let before: Arc<dyn JournalWriter> = ours.open("s", "a").await.expect("is free");
    let lock = place.client().await;
    lock.batch_execute("BEGIN; SELECT FROM entry FOR KEY SHARE").await.expect("locks");
    let deleting = tokio::spawn({
        let ours = ours.clone();
        async move { ours.delete("old").await }
    });
    until_somebody_waits(&place, &place.client().await).await;

    within(append(&*before, &["1"])).await;
    for journal in [&ours, &theirs] {
        let writer = within(journal.open("t", "a")).await.expect("is free");
        within(append(&*writer, &["1"])).await;
        drop(writer);
        within(journal.open("turn", "of the thread")).await.expect("is free");
    }
    let busy = within(theirs.open("old", "a")).await.err().expect("it is being deleted");
    assert_eq!(busy.kind(), ErrorKind::Busy);
    let elsewhere = Place::new().expect("was there before").open().await;
    within(elsewhere.open("old", "a")).await.expect("the same name in another schema is free");
    lock.batch_execute("COMMIT").await.expect("commits");
    assert!(within(deleting).await.expect("no panic").expect("deletes"));
    assert_eq!(append(&*ours.open("old", "a").await.expect("is free"), &["anew"]).await, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_read_that_waits_holds_up_no_other() {
    let Some(place) = Place::new() else { return };
    let journal = place.open().await;
    append(&*journal.open("s", "a").await.expect("is free"), &["1"]).await;
    let lock = place.client().await;
    lock.batch_execute("BEGIN; LOCK TABLE part IN ACCESS EXCLUSIVE MODE").await.expect("locks");
    let reading = tokio::spawn({
        let journal = journal.clone();
        async move { texts(&journal, "s").await }
    });
    until_somebody_waits(&place, &place.client().await).await;
    assert_eq!(within(journal.sessions()).await.expect("lists"), ["s"]);
    lock.batch_execute("COMMIT").await.expect("commits");
    assert_eq!(within(reading).await.expect("no panic"), ["1"]);
}

/// Firewall in front of the server that silently drops its connections on request.
struct Firewall {
    port: u16,
    forgets: watch::Sender<()>,
}

impl Firewall {
    async fn new() -> Self {
        let listener = TcpListener::bind(("localhost", 0)).await.expect("a free port");
        let port = listener.local_addr().expect("an address").port();
        let (forgets, forgotten) = watch::channel(());
        let server = Server::get().expect("was there before").address();
        drop(tokio::spawn(async move {
            while let Ok((mut client, _)) = listener.accept().await {
                let mut forgotten = forgotten.clone();
                forgotten.mark_unchanged();
                drop(tokio::spawn(async move {
                    let mut server = TcpStream::connect(server).await.expect("connects");
                    tokio::select! {
                        _ = copy_bidirectional(&mut client, &mut server) => {}
                        Ok(()) = forgotten.changed() => std::future::pending().await, // both sides stay open
                    }
                }));
            }
        }));
        Self { port, forgets }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_that_a_firewall_forgot_is_replaced_and_the_read_done_again() {
    let Some(place) = Place::new() else { return };
    let firewall = Firewall::new().await;
    let url = format!("postgres://tests:secret@localhost:{}/postgres?sslmode=disable", firewall.port);
    let patience = Duration::from_secs(4);
    let journal = PostgresJournal::builder(&url).schema(&place.schema).read_timeout(patience);
    let journal = journal.connect().await.expect("connects");
    append(&*journal.open("s", "a").await.expect("is free"), &["1"]).await;
    assert_eq!(texts(&journal, "s").await, ["1"]);
    journal.open("turn", "of the thread").await.expect("is free");
    firewall.forgets.send(()).expect("somebody is connected");
    let began = Instant::now();
    assert_eq!(within(async { texts(&journal, "s").await }).await, ["1"]);
    assert!(began.elapsed() >= patience, "the connection was of use: {:?}", began.elapsed());
    let began = Instant::now();
    assert_eq!(texts(&journal, "s").await, ["1"]);
    assert!(began.elapsed() < patience, "it was not replaced: {:?}", began.elapsed());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_read_that_is_never_answered_ends_and_says_so() {
    let Some(place) = Place::new() else { return };
    let journal = place.builder().read_timeout(Duration::from_millis(200)).connect().await.expect("connects");
    let lock = place.client().await;
    lock.batch_execute("BEGIN; LOCK TABLE session IN ACCESS EXCLUSIVE MODE").await.expect("locks");
    let e = within(journal.sessions()).await.expect_err("nobody answers");
    assert!(e.is_retryable() && e.message().contains("raise read_timeout"), "{e}");
    lock.batch_execute("COMMIT").await.expect("commits");
    assert!(within(journal.sessions()).await.is_ok());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_that_nobody_reads_over_is_closed() {
    let Some(place) = Place::new() else { return };
    let journal = place.builder().idle_timeout(Duration::from_millis(200)).connect().await.expect("connects");
    journal.sessions().await.expect("lists");
    let count = format!("SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE '%{}'", place.schema);
    let client = place.client().await;
    let connections = async || client.query_one(&count, &[]).await.expect("counts").get::<_, i64>(0);
    within(async { while connections().await > 1 {} }).await;
    assert!(journal.sessions().await.is_ok());
}
