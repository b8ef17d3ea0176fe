//! Network connections: encryption and trust in servers. The certificates here are valid until
//! 2120; the server's is for `localhost` and signed by the authority.

use std::path::Path;

use agent_core::{Error, ErrorKind, Journal, Retry, budget::Ledger};
use agent_store::{PostgresJournal, PostgresLedger};

use super::{
    append,
    server::{Place, Server},
};

fn file(name: &str) -> String {
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/suite/postgres/tls").join(name);
    here.to_str().expect("is UTF-8").to_owned()
}

async fn connect(host: &str, settings: &str, schema: &str) -> Result<PostgresJournal, Error> {
    let server = Server::get().expect("was there before");
    PostgresJournal::builder(&server.network_url(host, settings)).schema(schema).connect().await
}

/// Returns the number of encrypted connections of the journal in this schema, and the number of
/// all.
async fn encrypted(place: &Place, schema: &str) -> (i64, i64) {
    let of =
        format!("FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE application_name = 'agent-journal {schema}'");
    (place.count(&format!("SELECT count(*) {of} AND ssl")).await, place.count(&format!("SELECT count(*) {of}")).await)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_is_encrypted_as_its_url_says() {
    let Some(place) = Place::new() else { return };
    let authority = file("authority.pem");
    let (required, verified) =
        (format!("sslmode=require&sslrootcert={authority}"), format!("sslrootcert={authority}&sslmode=verify-full"));
    for (host, settings, is_encrypted) in [
        ("localhost", "sslmode=disable", false),
        ("localhost", "", true), // the server offers it
        ("localhost", "sslmode=prefer", true),
        ("127.0.0.1", "sslmode=require", true),
        ("127.0.0.1", &*required, true),
        ("127.0.0.1", &*required.replace("require", "verify-ca"), true),
        ("localhost", &*verified, true),
        // The proof of the password is bound to this connection.
        ("localhost", &*format!("{verified}&channel_binding=require"), true),
    ] {
        let schema = Server::schema();
        let journal = connect(host, settings, &schema).await.unwrap_or_else(|e| panic!("{settings}: {e}"));
        append(&*journal.open("s", "a").await.expect("is free"), &["1"]).await;
        assert_eq!(journal.read("s", 0, 9).await.expect("reads").len(), 1);
        let expected = if is_encrypted { (2, 2) } else { (0, 2) };
        assert_eq!(encrypted(&place, &schema).await, expected, "{settings}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_not_the_one_is_refused_and_told_nothing() {
    let Some(place) = Place::new() else { return };
    let stranger = file("stranger.pem");
    for (host, settings) in [
        ("localhost", format!("sslmode=verify-full&sslrootcert={stranger}")),
        ("localhost", format!("sslmode=verify-ca&sslrootcert={stranger}")),
        ("localhost", format!("sslmode=require&sslrootcert={stranger}")),
        ("localhost", "sslmode=verify-full".to_owned()), // not signed by a public authority
        ("localhost", "sslmode=verify-full&sslrootcert=system".to_owned()),
        ("127.0.0.1", format!("sslmode=verify-full&sslrootcert={}", file("authority.pem"))), // another name
    ] {
        let e = connect(host, &settings, &place.schema).await.expect_err("refused");
        assert!(e.kind() == ErrorKind::Store && e.message().contains("is not trusted"), "{settings}: {e}");
        assert!(
            e.retry() == Retry::Permanent && e.context("postgres").is_some_and(|said| said.contains("certificate"))
        );
        assert!(!format!("{e} {e:?}").contains("secret"), "{e:?}");
    }
    // A Unix socket is never encrypted, and rejects modes that require encryption.
    let e = PostgresJournal::builder(&format!("{} sslmode=require", place.url)).connect().await.expect_err("refused");
    assert!(e.message().contains("cannot be reached"), "{e}");
    assert!(e.context("postgres").is_some_and(|said| said.contains("does not support TLS")), "{e}");
}

#[tokio::test]
async fn settings_that_cannot_work_say_so_before_anybody_is_asked() {
    for (settings, said) in [
        ("sslmode=allow", "invalid sslmode"),
        ("pooled=perhaps", "expected true or false"),
        ("sslrootcert=/no/such/file", "add sslmode=verify-full"),
        ("sslmode=prefer&sslrootcert=/no/such/file", "add sslmode=verify-full"),
        ("sslmode=verify-full&sslrootcert=/no/such/file", "'/no/such/file' cannot be read"),
        (&*format!("sslmode=verify-ca&sslrootcert={}", file("mod.rs")), "contains no certificate"),
    ] {
        let e = PostgresJournal::connect(&format!("postgres://u:secret@localhost:1/d?{settings}")).await;
        let e = e.expect_err("refused");
        assert!(e.kind() == ErrorKind::Config && e.message().contains(said), "{settings}: {e}");
        assert!(!format!("{e} {e:?}").contains("secret"), "{e:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_ledger_is_encrypted_as_its_url_says() {
    let Some(_place) = Place::new() else { return };
    let server = Server::get().expect("was there before");
    let open = async |settings: &str| {
        let url = server.network_url("localhost", settings);
        PostgresLedger::connect_with(&url, &Server::schema(), std::time::Duration::from_secs(30)).await
    };
    let authority = file("authority.pem");
    let ledger = open(&format!("sslmode=verify-full&sslrootcert={authority}")).await.expect("connects");
    assert!(ledger.balance("x").await.is_ok());
    let e = open(&format!("sslmode=verify-full&sslrootcert={}", file("stranger.pem"))).await.expect_err("refused");
    assert!(e.message().contains("is not trusted"), "{e}");
}
