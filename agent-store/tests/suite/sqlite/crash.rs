//! Kill test with a real process.

use std::{
    env,
    io::{BufRead, BufReader, Write},
    process::{Command, Stdio},
};

use agent_core::Journal;
use agent_store::SqliteJournal;
use futures::future::join_all;

use super::{Place, append, texts};

const PATH: &str = "AGENT_STORE_CRASH_PATH";
const WRITERS: usize = 8;

/// Appends until it is killed, and prints the acknowledged entries. Run by the test below, in its
/// own process.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "runs until it is killed"]
async fn child() {
    let path = env::var_os(PATH).expect("the parent says where");
    let journal = SqliteJournal::open(path).expect("opens");
    let tasks = (0..WRITERS).map(|w| {
        let journal = journal.clone();
        tokio::spawn(async move {
            let writer = journal.open(&format!("s{w}"), "a").await.expect("is free");
            let mut next = journal.read(&format!("s{w}"), 0, usize::MAX).await.expect("reads").len();
            loop {
                append(&*writer, &[&format!("{next}"), &format!("{}", next + 1)]).await;
                next += 2;
                writeln!(std::io::stdout(), "acked {w} {next}").expect("the parent listens");
            }
        })
    });
    join_all(tasks).await;
}

#[tokio::test]
async fn a_killed_process_loses_nothing_that_was_acknowledged() {
    let mut acked = [0_usize; WRITERS];
    let place = Place::new();
    for round in 1..=5 {
        let mut child = Command::new(env::current_exe().expect("this test"))
            .args(["--exact", "sqlite::crash::child", "--ignored", "--nocapture", "--test-threads=1"])
            .env(PATH, place.path())
            .stdout(Stdio::piped())
            .spawn()
            .expect("starts");
        let mut lines = BufReader::new(child.stdout.take().expect("is piped")).lines();
        let mut note = |line: &str| {
            let Some(rest) = line.split("acked ").nth(1) else { return false };
            let (w, count) = rest.split_once(' ').expect("two numbers");
            acked[w.parse::<usize>().expect("a number")] = count.parse().expect("a number");
            true
        };
        let mut seen = 0;
        while seen < 40 * round {
            seen += usize::from(note(&lines.next().expect("it still runs").expect("reads")));
        }
        child.kill().expect("kills");
        child.wait().expect("is dead");
        // Lines printed before the kill were acknowledged as well; the last one may be truncated.
        let rest: Vec<_> = lines.map_while(Result::ok).collect();
        for line in rest.split_last().map_or(&[][..], |(_, whole)| whole) {
            note(line);
        }

        let journal = place.open();
        for (w, acked) in acked.iter().enumerate() {
            let texts = texts(&journal, &format!("s{w}")).await;
            assert!(texts.len() >= *acked, "session {w} has {} of {acked} acknowledged entries", texts.len());
            assert!(texts.len() % 2 == 0, "a batch is there or not");
            assert!(texts.iter().enumerate().all(|(at, text)| *text == at.to_string()));
        }
        // The dead process held leases; the next one must not have to wait for them here.
        drop(journal);
        place.sqlite().execute("DELETE FROM lease", ()).expect("deletes");
    }
    assert!(acked.iter().all(|acked| *acked > 0), "{acked:?}");
}
