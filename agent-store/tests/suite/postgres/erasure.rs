//! Erasure, searched for in a dump of the database.

use std::{process::Command, time::Duration};

use agent_core::{
    Caps, Journal, RunIds, RunRequest,
    budget::{Amounts, Ledger},
    journal::{Entry, EntryBody, METADATA, RunStatus},
};
use agent_dispatch::{Claim, Dispatch, Job, Outcome, Queue, QueueAdmin, Schedule};
use agent_store::{Erasure, Owner, QueueLimits};
use serde_json::json;

use super::{Place, ledger, queue, server::Server};

/// Text that occurs only in the data of the tenant.
const SECRET: &str = "marmalade";

/// Writes to a session of a tenant whatever a store keeps: entries, large texts, a title, metadata,
/// a question, names.
async fn write_session(journal: &dyn Journal, name: &str, user: &str, secret: &str) {
    let writer = journal.open(name, secret).await.expect("is free");
    let mut ids = RunIds::root(secret, name);
    ids.user = Some(user.into());
    let run = ids.run_id.clone();
    let question = agent_core::Question::new(secret, "approval", json!({"why": secret}));
    let metadata = [(METADATA.to_owned(), Some(json!({secret: secret})))].into();
    let bodies = [
        EntryBody::RunStarted { ids: ids.into(), fingerprint: secret.into() },
        EntryBody::MessageAppended { message: agent_core::Message::user(secret) },
        EntryBody::MessageAppended { message: agent_core::Message::user(format!("{secret} ").repeat(5_000)) },
        EntryBody::Asked { question: question.into() },
        EntryBody::StateChanged { state: [(secret.to_owned(), json!(secret))].into(), globals: metadata },
        EntryBody::Titled { title: secret.into() },
        EntryBody::RunEnded {
            status: RunStatus::Failed,
            usage: Default::default(),
            error: Some(secret.into()),
            answer: None,
        },
    ];
    writer.append(bodies.into_iter().map(|body| Entry::new(run.clone(), 1, body)).collect()).await.expect("appends");
}

/// Returns a dump of all tables of the place.
fn dump(place: &Place) -> String {
    let server = Server::get().expect("was there");
    let pattern = format!("\"{}\"", place.schema.replace('"', "\"\""));
    let mut command = Command::new(server.program("pg_dump"));
    let output =
        command.args(server.arguments()).args(["--data-only", "--schema", &pattern, "--dbname", "postgres"]).output();
    let output = output.expect("it runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// True if a dump contains a text, or the hexadecimal digits of its bytes.
fn contains(dump: &str, text: &str) -> bool {
    let digits: String = text.bytes().map(|byte| format!("{byte:02x}")).collect();
    dump.contains(text) || dump.contains(&digits)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_erased_is_not_in_a_dump_of_the_database_any_more() {
    let (Some(journals), Some(queues), Some(ledgers)) = (Place::new(), Place::new(), Place::new()) else { return };
    let journal = journals.open().await;
    let jobs = queue::open(&queues, QueueLimits::default(), false).await;
    let accounts = ledger::open(&ledgers).await;
    let tenant = format!("{SECRET}/ltd");
    let (of_tenant, of_user) = (format!("{SECRET}%2Fltd/{SECRET}"), format!("{SECRET}%2Fltd/ada"));
    for (session, user, text) in [(&*of_tenant, &*of_user, SECRET), ("kettles/s", "kettles/bob", "other")] {
        write_session(&journal, session, user, text).await;
    }
    let message = RunRequest::user(SECRET).session(of_tenant.as_str());
    let done = Job::new("a", &message.clone().run_id(format!("{SECRET}-1"))).expect("a job").tenant(tenant.as_str());
    jobs.dispatch(done).await.expect("takes it");
    let by = Claim::new("w", ["a".into()], Duration::from_secs(60));
    let claimed = jobs.claim(&by).await.expect("works").expect("there is one");
    jobs.release(claimed.receipt, Outcome::Done, &[], true).await.expect("works");
    let queued = Job::new("a", &RunRequest::user(SECRET).run_id("r2")).expect("a job").tenant(tenant.as_str());
    jobs.dispatch(queued.clone()).await.expect("takes it");
    jobs.set_schedule(&Schedule::new(SECRET, "0 6 * * *", queued)).await.expect("sets it");
    for account in [format!("tenant/{tenant}/day/2026"), format!("key/{of_user}/day/2026")] {
        let receipt = accounts.reserve(&account, &Caps::default(), Amounts::none().tokens(1)).await.expect("works");
        accounts.settle(&account, receipt.expect("fits"), Amounts::none().tokens(1)).await.expect("settles");
    }
    for place in [&journals, &queues, &ledgers] {
        assert!(contains(&dump(place), SECRET), "the search finds it before");
    }

    let erasure = Erasure::of(Owner::Tenant(tenant.clone())).queue(&jobs).ledger(&accounts);
    assert_eq!(erasure.apply(&journal).await.expect("erases"), [&*of_tenant]);
    accounts.balance("any").await.expect("a turn of the thread");
    for place in [&journals, &queues, &ledgers] {
        let left = dump(place);
        assert!(!contains(&left, SECRET), "{left}");
    }
    assert!(contains(&dump(&journals), "other"), "that of others is left");
    assert!(erasure.apply(&journal).await.expect("erases again").is_empty());
}

#[tokio::test]
async fn the_sessions_of_a_user_are_erased_and_one_in_use_is_named() {
    let Some(place) = Place::new() else { return };
    let journal = place.open().await;
    for (session, user) in [("t/one", "t/ada"), ("t/two", "t/ada"), ("t/three", "t/bob")] {
        write_session(&journal, session, user, "x").await;
    }
    let held = journal.open("t/two", "a").await.expect("is free");
    let erasure = Erasure::of(Owner::User("t/ada".into()));
    let busy = erasure.apply(&journal).await.expect_err("one is in use");
    assert!(busy.message().contains("session 't/two' in use"), "{busy}");
    drop(held);
    assert_eq!(erasure.apply(&journal).await.expect("erases"), ["t/two"]);
    assert_eq!(journal.sessions().await.expect("lists"), ["t/three"]);
}
