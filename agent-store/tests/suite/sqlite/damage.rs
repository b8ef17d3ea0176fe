//! State after a crash, a full disk or a clock jump: all acknowledged entries, or a clear error.

use std::{fs, path::PathBuf, time::Duration};

use agent_core::{
    ErrorKind, ExitReason, Journal,
    journal::{Entry, EntryBody, RunStatus},
};
use agent_store::{Durability, SqliteJournal};

use super::{FakeClock, Place, append, heard, texts};

/// Deterministic pseudo-random numbers.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).expect("31 bits") % limit.max(1)
    }
}

impl Place {
    fn file(&self, end: &str) -> PathBuf {
        self.0.path().join(format!("agent.db{end}"))
    }

    /// Returns the files as a dead process would leave them.
    fn files(&self) -> [Vec<u8>; 2] {
        ["", "-wal"].map(|end| fs::read(self.file(end)).expect("reads"))
    }

    fn holding(files: &[Vec<u8>; 2]) -> Self {
        let place = Self::new();
        for (end, bytes) in ["", "-wal"].into_iter().zip(files) {
            fs::write(place.file(end), bytes).expect("writes");
        }
        place
    }
}

#[tokio::test]
async fn a_torn_log_keeps_what_was_acknowledged_and_no_half_of_what_was_not() {
    let place = Place::new();
    let journal = place.open();
    let writer = journal.open("s", "a").await.expect("is free");
    let mut dice = Dice(7);
    let mut count = 0;
    for round in 0..60 {
        let before = place.files();
        let batch: Vec<_> =
            (count..count + 1 + dice.below(4)).map(|n| format!("{n} {}", "x".repeat(n * 37 % 3000))).collect();
        append(&*writer, &batch.iter().map(String::as_str).collect::<Vec<_>>()).await;
        // The power failed while the batch was written: its part of the log is truncated or
        // corrupt.
        let mut torn = place.files();
        if torn[1].len() > before[1].len() {
            let from = before[1].len() + dice.below(torn[1].len() - before[1].len());
            match round % 2 {
                0 => torn[1].truncate(from),
                _ => torn[1][from..].fill_with(|| u8::try_from(dice.below(256)).expect("a byte")),
            }
            torn[0].clone_from(&before[0]);
            let kept = texts(&Place::holding(&torn).open(), "s").await;
            assert!(kept.len() == count || kept.len() == count + batch.len(), "{} of {count}", kept.len());
            assert!(kept.iter().enumerate().all(|(at, text)| text.starts_with(&format!("{at} "))));
        }
        count += batch.len();
    }
}

#[tokio::test]
async fn a_torn_database_has_everything_or_says_that_it_is_damaged() {
    let place = Place::new();
    {
        let journal = place.open();
        let writer = journal.open("s", "a").await.expect("is free");
        for n in 0..200 {
            append(&*writer, &[&format!("{n} {}", "x".repeat(n * 37 % 3000))]).await;
        }
    }
    let (whole, mut dice, mut errors) = (fs::read(place.path()).expect("reads"), Dice(3), 0);
    for round in 0..60 {
        let mut torn = whole.clone();
        let page = dice.below(torn.len() / 4096) * 4096;
        match round % 2 {
            0 => torn.truncate(page + dice.below(4096)),
            _ => torn[page..page + 4096].fill(0xa5),
        }
        let place = Place::new();
        fs::write(place.path(), &torn).expect("writes");
        let read = match SqliteJournal::open(place.path()) {
            Ok(journal) => journal.read("s", 0, usize::MAX).await,
            Err(e) => Err(e),
        };
        match read {
            Ok(entries) if torn.is_empty() => assert!(entries.is_empty(), "an empty file is a new journal"),
            Ok(entries) => assert_eq!(entries.len(), 200, "round {round}"),
            Err(e) => {
                errors += 1;
                assert_eq!(e.kind(), ErrorKind::Store, "{e}");
                assert!(e.message().contains("damaged") || e.message().contains("not an SQLite database"), "{e}");
            }
        }
    }
    assert!(errors > 20, "{errors}");
}

#[tokio::test]
async fn a_full_disk_is_a_clear_error_and_loses_nothing() {
    let place = Place::new();
    let journal = SqliteJournal::builder(place.path()).max_bytes(300 << 10).open().expect("opens");
    append(&*journal.open("old", "a").await.expect("is free"), &[&"x".repeat(100_000)]).await;
    let writer = journal.open("s", "a").await.expect("is free");
    let mut acked = 0;
    let e = loop {
        match writer.append(vec![heard(&format!("{acked} {}", "y".repeat(3000)))]).await {
            Ok(_) => acked += 1,
            Err(e) => break e,
        }
    };
    assert_eq!(e.kind(), ErrorKind::Store);
    assert!(e.message().contains("the disk is full: make room"), "{e}");
    assert!(acked > 10, "{acked}");
    assert_eq!(texts(&journal, "s").await.len(), acked);

    // Freed space is reused.
    assert!(journal.delete("old").await.expect("deletes"));
    drop(writer);
    let writer = journal.open("s", "a").await.expect("is free");
    assert_eq!(append(&*writer, &["more"]).await, acked as u64 + 1);
}

#[tokio::test]
async fn a_clock_that_jumps_takes_no_lease_from_the_living_and_loses_nothing() {
    let (place, clock) = (Place::new(), FakeClock::new());
    clock.advance(FakeClock::TTL * 1000);
    let (ours, theirs) = (clock.open(&place), clock.open(&place));
    let writer = ours.open("s", "a").await.expect("is free");
    for (n, jump) in [1_i64, -1, 500, -900, 3, -3].into_iter().enumerate() {
        clock.jump(jump);
        assert_eq!(append(&*writer, &[&n.to_string()]).await, n as u64 + 1, "an append renews the lease first");
        let busy = theirs.open("s", "a").await.err().expect("is held");
        assert_eq!(busy.kind(), ErrorKind::Busy);
    }
    assert_eq!(texts(&ours, "s").await.len(), 6);

    // If another process notices the jump first, the lease has expired: the old holder fails and
    // writes nothing.
    clock.jump(2);
    let heir = theirs.open("s", "a").await.expect("has expired");
    let e = writer.append(vec![heard("too late")]).await.expect_err("lost");
    assert!(e.message().contains("was lost to another process"), "{e}");
    assert_eq!(append(&*heir, &["6"]).await, 7);
}

#[tokio::test]
async fn a_lazy_journal_waits_for_the_disk_at_the_end_of_a_run_and_once_a_second() {
    let (place, clock) = (Place::new(), FakeClock::new());
    let journal = clock.builder(&place).durability(Durability::Async).open().expect("opens");
    let writer = journal.open("s", "a").await.expect("is free");
    append(&*writer, &["1"]).await;
    assert_eq!(journal.stats().syncs, 0);
    let status = RunStatus::Finished(ExitReason::Text);
    let end = EntryBody::RunEnded { status, usage: Box::default(), error: None, answer: None };
    writer.append(vec![Entry::new("run-1".into(), 0, end)]).await.expect("appends");
    assert_eq!(journal.stats().syncs, 1);
    append(&*writer, &["2"]).await;
    assert_eq!(journal.stats().syncs, 1);
    clock.advance(Duration::from_secs(1));
    append(&*writer, &["3"]).await;
    assert_eq!(journal.stats().syncs, 2);
}

#[tokio::test]
async fn large_strings_are_kept_once_and_go_with_the_last_entry_that_has_them() {
    let place = Place::new();
    let journal = place.open();
    let large = "x".repeat(1_000_000);
    for session in ["s", "t", "u"] {
        let writer = journal.open(session, "a").await.expect("is free");
        for _ in 0..10 {
            append(&*writer, &[&large, "small"]).await;
        }
    }
    let count = |table: &str| -> i64 {
        place.sqlite().query_row(&format!("SELECT count(*) FROM {table}"), (), |row| row.get(0)).expect("counts")
    };
    assert_eq!((count("blob"), count("part")), (1, 30));
    let bytes = place.files().map(|file| file.len()).into_iter().sum::<usize>();
    assert!(bytes < 4_000_000, "30 megabytes of the same in {bytes} bytes");
    for session in ["s", "t"] {
        assert!(journal.delete(session).await.expect("deletes"));
    }
    assert_eq!(texts(&journal, "u").await[0], large);
    assert!(journal.delete("u").await.expect("deletes"));
    assert_eq!((count("blob"), count("part")), (0, 0));
}

#[tokio::test]
async fn a_large_string_that_is_missing_is_damage_and_not_an_empty_text() {
    let place = Place::new();
    let journal = place.open();
    append(&*journal.open("s", "a").await.expect("is free"), &[&"x".repeat(10_000)]).await;
    place.sqlite().execute("DELETE FROM blob", ()).expect("deletes");
    let e = journal.read("s", 0, 10).await.expect_err("damaged");
    assert!(e.message().contains("a large string of an entry is missing"), "{e}");
    assert_eq!(e.context("seq"), Some("1"));
}
