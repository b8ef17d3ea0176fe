//! Conformance tests of journals ([`journal_conformance!`](crate::journal_conformance)), of
//! [`ChatMessageStore`](agent_retrieval::memory::ChatMessageStore) and
//! [`MemoryStore`](agent_retrieval::memory::MemoryStore)
//! ([`message_store_conformance!`](crate::message_store_conformance),
//! [`memory_store_conformance!`](crate::memory_store_conformance)), of
//! [`VectorStore`](agent_retrieval::retrieval::VectorStore)
//! ([`vector_store_conformance!`](crate::vector_store_conformance)), and (feature `queue`) of
//! queues (`queue_conformance!`).
//!
//! [`journal_conformance!`](crate::journal_conformance) generates one test per claim. It takes a
//! closure that returns a fresh journal and a guard that must outlive it.
//!
//! ```
//! mod memory {
//!     agent_store::journal_conformance!(|| (agent_core::MemoryJournal::default(), ()));
//! }
//! # #[cfg(feature = "sqlite")]
//! mod sqlite {
//!     agent_store::journal_conformance!(|| {
//!         let dir = tempfile::tempdir().expect("a directory");
//!         let journal = agent_store::SqliteJournal::open(dir.path().join("agent.db")).expect("opens");
//!         (journal, dir)
//!     });
//! }
//! ```

mod content;
mod failures;
mod ledgers;
mod memories;
mod messages;
mod order;
#[cfg(feature = "queue")]
mod queues;
mod sample;
mod summaries;
mod upkeep;
mod vectors;
mod writers;

use std::{sync::Arc, time::Duration};

use agent_core::{
    Journal,
    journal::{Entry, JournalWriter},
};

#[cfg(feature = "queue")]
pub use self::queues::*;
pub use self::{
    content::*, failures::*, ledgers::*, memories::*, messages::*, order::*, sample::every_kind, summaries::*,
    upkeep::*, vectors::*, writers::*,
};

/// Generates one test per claim of the [suite](crate::conformance).
#[macro_export]
macro_rules! journal_conformance {
    ($make:expr) => {
        $crate::claims! { by_value, $make;
            sequence_numbers_begin_at_1_and_have_no_gaps
            batches_of_many_writers_are_kept_whole
            entries_stand_in_the_order_of_the_calls
            entries_are_handed_over_when_append_is_called
            what_is_acknowledged_can_be_read
            pages_of_any_size_read_the_same
            an_unknown_session_is_empty
            sessions_are_numbered_apart
            a_session_and_agent_have_one_writer
            agents_of_one_session_share_its_numbers
            a_writer_proves_that_the_session_is_its_own
            a_writer_that_is_dropped_frees_its_place
            a_session_in_use_is_not_deleted
            a_deleted_session_is_gone_and_can_begin_again
            the_newest_entry_is_found
            who_waits_for_entries_hears_of_them_whoever_writes
            the_index_of_a_session_is_what_its_entries_mean
            a_session_is_read_from_its_anchor_and_from_its_beginning_when_it_must
            a_run_is_found_by_its_id_before_and_after_an_anchor
            what_is_known_of_a_session_is_what_its_entries_say
            sessions_are_listed_in_order
            sessions_are_listed_by_how_they_begin_and_in_pages
            names_may_be_any_text
            every_kind_of_entry_survives_unchanged
            bytes_of_a_provider_survive_unchanged
            an_entry_of_a_megabyte_survives
            large_payloads_are_the_same_wherever_they_are_read
            numbers_survive_to_the_last_bit
            the_fold_is_the_same_as_in_memory
            a_journal_moves_to_another_and_back_and_is_whole
            sessions_that_are_too_old_go_and_one_in_use_stays
            a_run_is_summarised_through_its_life
            summaries_follow_forks_rewinds_and_sub_agents
            sessions_are_listed_by_activity_and_found_by_metadata
            summaries_are_consistent_under_concurrent_writers
        }
    };
}

/// Generates one test per claim about a failing journal. Takes a closure that returns a fresh
/// journal that fails to store any entry with the text [`UNKEPT`], and a guard that must outlive
/// it. A journal that cannot fail does not need these tests.
///
/// ```
/// # #[cfg(feature = "sqlite")]
/// mod sqlite {
///     use agent_store::conformance::UNKEPT;
///
///     agent_store::journal_failure_conformance!(|| {
///         let dir = tempfile::tempdir().expect("a directory");
///         let path = dir.path().join("agent.db");
///         let journal = agent_store::SqliteJournal::open(&path).expect("opens");
///         let refuse = format!(
///             "CREATE TRIGGER refuse BEFORE INSERT ON entry WHEN NEW.body LIKE '%{UNKEPT}%'
///              BEGIN SELECT RAISE(ABORT, 'refused'); END"
///         );
///         rusqlite::Connection::open(&path).and_then(|file| file.execute_batch(&refuse)).expect("a trigger");
///         (journal, dir)
///     });
/// }
/// ```
#[macro_export]
macro_rules! journal_failure_conformance {
    ($make:expr) => {
        $crate::claims! { by_value, $make;
            a_writer_whose_append_failed_refuses_what_follows
            a_failed_append_concerns_no_other_writer
        }
    };
}

/// Generates the tests of a list of claims, each about a journal by value or a store by reference.
#[doc(hidden)]
#[macro_export]
macro_rules! claims {
    (@run by_value, $make:expr, $claim:ident) => {
        $crate::conformance::run($make, $crate::conformance::$claim)
    };
    (@run by_reference, $make:expr, $claim:ident) => {
        $crate::conformance::run_with($make, async |store| $crate::conformance::$claim(&store).await)
    };
    ($how:ident, $make:expr; $($claim:ident)*) => {$(
        #[test]
        fn $claim() {
            $crate::claims!(@run $how, $make, $claim);
        }
    )*};
}

/// Runs one claim on a fresh journal, in its own runtime.
///
/// # Panics
/// If the claim does not hold, or is not decided within two minutes.
pub fn run<J: Journal, G>(make: impl FnOnce() -> (J, G), claim: impl AsyncFnOnce(Arc<dyn Journal>)) {
    run_with(make, async |journal| claim(Arc::new(journal)).await);
}

/// Runs one claim on a fresh store, in its own runtime.
///
/// # Panics
/// If the claim does not hold, or is not decided within two minutes.
pub fn run_with<S, G>(make: impl FnOnce() -> (S, G), claim: impl AsyncFnOnce(S)) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.expect("a runtime").block_on(async {
        let (store, _guard) = make();
        let claim = claim(store);
        tokio::time::timeout(Duration::from_secs(120), claim).await.expect("the claim hangs");
    });
}

/// Appends a batch and waits; returns the first sequence number.
async fn append(writer: &dyn JournalWriter, entries: Vec<Entry>) -> u64 {
    writer.append(entries).await.expect("appends")
}

async fn open(journal: &dyn Journal, session: &str, agent: &str) -> Arc<dyn JournalWriter> {
    journal.open(session, agent).await.expect("is free")
}

/// Reads a whole session in pages.
async fn read_by(journal: &dyn Journal, session: &str, page: usize) -> Vec<Arc<Entry>> {
    let mut entries: Vec<Arc<Entry>> = Vec::new();
    loop {
        let after = entries.last().map_or(0, |entry| entry.seq);
        let more = journal.read(session, after, page).await.expect("reads");
        assert!(more.len() <= page, "{} entries in a page of {page}", more.len());
        if more.is_empty() {
            return entries;
        }
        entries.extend(more);
    }
}

async fn read_all(journal: &dyn Journal, session: &str) -> Vec<Arc<Entry>> {
    read_by(journal, session, 1000).await
}
