//! A team whose process dies at any entry ends as one that did not, over every store.

use std::time::Duration;

use agent_core::{Journal, MemoryJournal};
use agent_store::SqliteJournal;
use agent_team::{Team, TeamEnd, TeamEndReason, TeamRequest};

use crate::common::{
    mortal::Mortal,
    release::{Course, Effects, SESSION, course, entries, team},
};

fn request() -> TeamRequest {
    TeamRequest::user("Build the release.").session(SESSION).run_id("r1")
}

/// Runs the team in processes of which the first dies, and returns its course.
async fn interrupted<J: Journal + Clone>(journal: J, dies_at: u64, is_written: bool) -> Course {
    let effects = Effects::default();
    let process = Mortal::new(journal.clone(), dies_at, is_written);
    let mortal = team(process.clone(), &effects);
    let run = mortal.start(request());
    tokio::select! {
        biased;
        () = process.died() => {}
        end = run => panic!("it lived to the end at {dies_at}, after {} entries: {end:?}", process.written()),
    }
    drop(mortal);
    tokio::time::sleep(Duration::from_millis(1)).await; // lets aborted tasks end
    let again = team(journal, &effects);
    let end = finish(&again).await;
    course(&again, &end, &effects).await
}

/// Sends the request again, as a client does that never heard of the run's end.
async fn finish(team: &Team) -> TeamEnd {
    team.start(request()).await.expect("runs")
}

#[tokio::test(start_paused = true)]
async fn a_team_that_died_at_any_entry_ends_as_one_that_did_not() {
    let (journal, effects) = (MemoryJournal::default(), Effects::default());
    let whole = team(journal.clone(), &effects);
    let end = finish(&whole).await;
    assert_eq!((&end.reason, end.text.as_str()), (&TeamEndReason::Finished, "All is built."));
    let expected = course(&whole, &end, &effects).await;
    assert!(format!("{expected:?}").contains("T-002 is done"), "{expected:?}");
    let entries = entries(&journal).await;
    assert!(entries > 80, "{entries}");
    for dies_at in 1..=entries {
        for is_written in [false, true] {
            let found = interrupted(MemoryJournal::default(), dies_at, is_written).await;
            assert_eq!(found, expected, "died at {dies_at} of {entries}, written: {is_written}");
        }
    }
}

#[tokio::test]
async fn a_team_on_sqlite_that_died_at_any_fifth_entry_ends_as_one_that_did_not() {
    let place = tempfile::tempdir().expect("a folder");
    let open = |name: String| SqliteJournal::open(place.path().join(name)).expect("opens");
    let (journal, effects) = (open("whole.db".into()), Effects::default());
    let whole = team(journal.clone(), &effects);
    let end = finish(&whole).await;
    let expected = course(&whole, &end, &effects).await;
    let counted = Mortal::new(open("counted.db".into()), u64::MAX, false);
    finish(&team(counted.clone(), &Effects::default())).await;
    let entries = counted.written();
    for dies_at in (1..=entries).step_by(5) {
        let is_written = dies_at % 2 == 0;
        let found = interrupted(open(format!("{dies_at}.db")), dies_at, is_written).await;
        assert_eq!(found, expected, "died at {dies_at} of {entries}, written: {is_written}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_that_is_sent_again_after_the_end_starts_nothing() {
    let (journal, effects) = (MemoryJournal::default(), Effects::default());
    let team = team(journal.clone(), &effects);
    let first = finish(&team).await;
    let before = entries(&journal).await;
    let second = finish(&team).await;
    assert_eq!(first, second);
    assert_eq!(entries(&journal).await, before, "nothing was written");
}
