//! Backups of a database during writes.

use std::{
    io::Write,
    process::{Command, Output, Stdio},
};

use agent_core::{Journal, journal::Entry};
use agent_store::PostgresJournal;

use super::{Place, append, common::write_everything, server::Server};

/// Returns the output of one of PostgreSQL's programs for this input.
fn run(program: &str, arguments: &[&str], input: &[u8]) -> Output {
    let server = Server::get().expect("was there");
    let mut command = Command::new(server.program(program));
    command.args(server.arguments()).args(arguments);
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    child.stdin.take().expect("is piped").write_all(input).expect("it reads");
    let output = child.wait_with_output().expect("it ends");
    assert!(output.status.success(), "{program}: {}", String::from_utf8_lossy(&output.stderr));
    output
}

async fn entries(journal: &dyn Journal, session: &str) -> Vec<Entry> {
    let read = journal.read(session, 0, usize::MAX).await.expect("reads");
    read.iter().map(|entry| (**entry).clone()).collect()
}

#[tokio::test]
async fn a_dump_that_is_restored_elsewhere_has_every_session_and_its_runs_go_on_there() {
    let Some(place) = Place::new() else { return };
    let journal = place.open().await;
    write_everything(&journal).await;
    let writer = journal.open("busy", "a").await.expect("is free");
    append(&*writer, &["1", &"large ".repeat(2_000)]).await;

    let pattern = format!("\"{}\"", place.schema.replace('"', "\"\""));
    let dump = run("pg_dump", &["--schema", &pattern, "--dbname", "postgres"], b"").stdout;
    append(&*writer, &["after the dump"]).await;
    run("createdb", &["restored"], b"");
    run("psql", &["--set", "ON_ERROR_STOP=1", "--quiet", "--dbname", "restored"], &dump);

    let url = place.url.replace("dbname=postgres", "dbname=restored");
    let restored = PostgresJournal::builder(&url).schema(&place.schema).connect().await.expect("connects");
    assert_eq!(restored.check().await.expect("checks"), [], "nothing is missing");
    assert_eq!(entries(&restored, "s").await, entries(&journal, "s").await);
    let busy = entries(&journal, "busy").await;
    assert_eq!(entries(&restored, "busy").await, busy[..2], "what was there when the dump began");

    // The process with the session does not use the restored database: its lease expires there.
    assert!(restored.open("busy", "a").await.is_err(), "the lease is as old as the dump");
    let elsewhere = Place { url, schema: place.schema.clone() };
    elsewhere.execute("UPDATE lease SET expires = now() - interval '1 second'").await;
    let heir = restored.open("busy", "a").await.expect("is free");
    assert_eq!(append(&*heir, &["goes on"]).await, 3);
}
