//! The database file: identity, content, and errors.

use std::{fs, sync::Barrier, thread};

use agent_core::{
    AssistantMessage, Block, Effect, ErrorKind, Journal, ModelResponse, ToolOutput, Usage,
    journal::{Entry, EntryBody},
};
use agent_store::{SqliteJournal, conformance::every_kind};
use serde_json::json;

use super::{
    Place, append,
    common::{both_infos, summaries, write_two_sessions},
    heard, texts,
};

/// Returns the error of opening the place.
fn refusal(place: &Place) -> String {
    let e = SqliteJournal::open(place.path()).expect_err("refused");
    assert_eq!(e.kind(), ErrorKind::Store);
    assert!(e.context("journal").is_some_and(|path| path.ends_with("agent.db")), "it names the file: {e}");
    e.to_string()
}

#[tokio::test]
async fn a_journal_that_is_opened_again_has_everything() {
    let place = Place::new();
    {
        let journal = place.open();
        append(&*journal.open("s", "a").await.expect("is free"), &["1", "2"]).await;
        append(&*journal.open("t", "a").await.expect("is free"), &["1"]).await;
    }
    let journal = place.open();
    assert_eq!(journal.sessions().await.expect("lists"), ["s", "t"]);
    assert_eq!(texts(&journal, "s").await, ["1", "2"]);
    let writer = journal.open("s", "a").await.expect("nobody holds it after an orderly end");
    assert_eq!(append(&*writer, &["3"]).await, 3);
}

#[test]
fn missing_directories_are_created() {
    let place = Place::new();
    let path = place.0.path().join("a/b/c.db");
    drop(SqliteJournal::open(&path).expect("opens"));
    assert!(path.is_file());
}

#[test]
fn a_path_that_is_no_file_is_refused() {
    assert_eq!(SqliteJournal::open("").expect_err("no path").kind(), ErrorKind::Config);
    let place = Place::new();
    fs::create_dir(place.path()).expect("a directory");
    assert!(refusal(&place).contains("check the path and its permissions"));
    fs::write(place.0.path().join("file"), "").expect("a file");
    let e = SqliteJournal::open(place.0.path().join("file/agent.db")).expect_err("a file is no directory");
    assert!(e.message().contains("directory cannot be created"), "{e}");
}

#[test]
fn a_file_that_is_no_database_is_left_alone() {
    let place = Place::new();
    let notes = "my notes ".repeat(1000);
    fs::write(place.path(), &notes).expect("writes");
    assert!(refusal(&place).contains("the file is not an SQLite database: use another path"));
    assert_eq!(fs::read_to_string(place.path()).expect("reads"), notes);
}

#[test]
fn a_database_of_another_program_is_left_alone() {
    let place = Place::new();
    place.sqlite().execute_batch("CREATE TABLE theirs (x)").expect("a table");
    let before = fs::read(place.path()).expect("reads");
    assert!(refusal(&place).contains("another program's database: use another path"));
    assert_eq!(fs::read(place.path()).expect("reads"), before);
}

#[test]
fn a_journal_of_a_newer_release_is_refused() {
    let place = Place::new();
    drop(place.open());
    place.sqlite().execute_batch("PRAGMA user_version = 99").expect("sets");
    assert!(refusal(&place).contains("format 99 and this release knows formats up to 5: use the newer release"));
}

#[tokio::test]
async fn a_file_of_an_older_release_is_brought_up_to_date_with_what_is_known_of_its_sessions() {
    let place = Place::new();
    let journal = place.open();
    write_two_sessions(&journal).await;
    let (before, known) = (both_infos(&journal).await, summaries(&journal).await);
    drop(journal);
    let drop_columns = |table: &str, columns: &str| {
        let drop = |column| format!("ALTER TABLE {table} DROP COLUMN {column};");
        columns.split(' ').map(drop).collect::<String>()
    };
    let older = format!(
        "DROP TRIGGER session_gone; DROP TRIGGER session_summary_gone; DROP TABLE agent; DROP TABLE label;
         DROP TABLE question; DROP INDEX session_recent; DROP INDEX run_recent; DROP INDEX run_incomplete;
         DROP INDEX run_newest; {} {} PRAGMA user_version = 2",
        drop_columns("session", "created updated runs title anchor projected active space metadata"),
        drop_columns(
            "run",
            "seq space agent is_root user status outcome started ended error steps undone superseded is_edit calls input cached \
             cache_write cache_write_long output reasoning cost priced"
        ),
    );
    place.sqlite().execute_batch(&older).expect("is older now");
    let journal = place.open();
    assert_eq!(summaries(&journal).await, known, "rebuilt from the entries");
    assert_eq!(both_infos(&journal).await, before);
    // An earlier release that still runs writes no summaries.
    place.sqlite().execute_batch("UPDATE session SET projected = 0; UPDATE run SET seq = NULL").expect("changes");
    assert_eq!(summaries(&place.open()).await, known);
    place.sqlite().execute_batch("UPDATE run SET started = 0").expect("changes");
    journal.rebuild().await.expect("rebuilds");
    assert_eq!(summaries(&journal).await, known);
}

#[tokio::test]
async fn a_damaged_file_is_an_error_and_not_an_empty_session() {
    let place = Place::new();
    {
        let journal = place.open();
        let writer = journal.open("s", "a").await.expect("is free");
        append(&*writer, &[&"x".repeat(20_000)]).await;
    }
    let root = "SELECT rootpage FROM sqlite_schema WHERE name = 'entry'";
    let page: usize = place.sqlite().query_row(root, (), |row| row.get::<_, u32>(0)).expect("a table") as usize;
    let mut bytes = fs::read(place.path()).expect("reads");
    bytes[(page - 1) * 4096..page * 4096].fill(0xa5);
    fs::write(place.path(), bytes).expect("writes");
    let e = place.open().read("s", 0, 10).await.expect_err("damaged");
    assert_eq!(e.kind(), ErrorKind::Store);
    assert!(e.message().contains("the journal is damaged: restore a copy"), "{e}");
}

#[tokio::test]
async fn an_entry_that_cannot_be_read_names_its_place() {
    let place = Place::new();
    let journal = place.open();
    append(&*journal.open("s", "a").await.expect("is free"), &["1", "2"]).await;
    place.sqlite().execute("UPDATE entry SET body = '{\"undone\":{}}' WHERE seq = 2", ()).expect("updates");
    let e = journal.read("s", 0, 10).await.expect_err("unreadable");
    assert_eq!((e.context("session"), e.context("seq")), (Some("s"), Some("2")));
    assert_eq!(journal.read("s", 0, 1).await.expect("the first is whole").len(), 1);
}

#[cfg(unix)]
#[test]
fn a_file_without_write_permission_is_called_read_only() {
    use std::os::unix::fs::PermissionsExt;

    let place = Place::new();
    drop(place.open());
    fs::set_permissions(place.path(), fs::Permissions::from_mode(0o444)).expect("sets");
    match fs::OpenOptions::new().append(true).open(place.path()) {
        Ok(_) => drop(place.open()), // the superuser may write anyway
        Err(_) => assert!(refusal(&place).contains("the journal is read-only: check the permissions")),
    }
}

#[test]
fn many_may_open_a_new_file_at_once() {
    for _ in 0..20 {
        let (place, start) = (Place::new(), Barrier::new(16));
        thread::scope(|scope| {
            for _ in 0..16 {
                scope.spawn(|| {
                    start.wait();
                    SqliteJournal::open(place.path()).map(drop).expect("opens");
                });
            }
        });
    }
}

#[tokio::test]
async fn the_file_is_set_up_for_safety() {
    let place = Place::new();
    let journal = place.open();
    append(&*journal.open("s", "a").await.expect("is free"), &["1"]).await;
    let sqlite = place.sqlite();
    let pragma = |name: &str| sqlite.pragma_query_value(None, name, |row| row.get::<_, rusqlite::types::Value>(0));
    assert_eq!(pragma("journal_mode").expect("reads"), "wal".to_owned().into());
    assert_eq!(pragma("application_id").expect("reads"), i64::from(u32::from_be_bytes(*b"AGJL")).into());
    assert_eq!(pragma("user_version").expect("reads"), 5.into());
    assert_eq!(pragma("integrity_check").expect("reads"), "ok".to_owned().into());
}

#[tokio::test]
async fn the_sqlite_shell_can_read_the_history() {
    let place = Place::new();
    let journal = place.open();
    let writer = journal.open("alice", "assistant").await.expect("is free");
    let mut entries = vec![heard("hello")];
    entries.extend(every_kind("alice", "assistant"));
    entries.push(Entry::new("run-1".into(), 0, EntryBody::Unknown(json!("a text"))));
    let count = entries.len();
    writer.append(entries).await.expect("appends");

    let sqlite = place.sqlite();
    let first =
        "SELECT session, seq, time, run, kind, body ->> '$.message.user.parts[0].text.text' FROM history LIMIT 1";
    let row: (String, i64, String, String, String, String) = sqlite
        .query_row(first, (), |r| Ok((r.get(0)?, r.get(1)?, r.get(2)?, r.get(3)?, r.get(4)?, r.get(5)?)))
        .expect("a row");
    let text = |text: &str| text.to_owned();
    let kind = text("message_appended");
    assert_eq!(row, (text("alice"), 1, text("2023-11-14 22:13:20"), text("run-1"), kind, text("hello")));

    let mut statement = sqlite.prepare("SELECT kind FROM history ORDER BY seq").expect("prepares");
    let kinds = statement.query_map((), |row| row.get::<_, String>(0)).expect("queries");
    let kinds: Vec<_> = kinds.collect::<Result<_, _>>().expect("rows");
    assert_eq!(kinds.len(), count);
    assert!(kinds.iter().all(|kind| kind.chars().all(|c| c.is_ascii_lowercase() || "_ ".contains(c))), "{kinds:?}");
    assert_eq!(kinds.last().map(String::as_str), Some("a text"));
}

/// Returns the entries of a run's step, as the executor records them.
fn step(step: u32) -> [Vec<Entry>; 3] {
    let call_id: std::sync::Arc<str> = format!("call_{step:024}").into();
    let name: std::sync::Arc<str> = "search".into();
    let call = Block::tool_call(&*call_id, "search", r#"{"query": "the weather in Paris"}"#);
    let message = AssistantMessage::new(vec![Block::text("I shall look that up."), call]);
    let response = ModelResponse::new(message).with_usage(Usage::new(1200, 40));
    let output = ToolOutput::text("y".repeat(100));
    let attempt = "0".repeat(32).into();
    let entry = |body| Entry::new("0198f0c0a1b27c3d8e4f5a6b7c8d9e0f".into(), 1_700_000_000_000, body);
    [
        vec![
            entry(EntryBody::ModelFinished { step, response: std::sync::Arc::new(response) }),
            entry(EntryBody::ModelAccepted { step, message: None, exit: None }),
        ],
        vec![entry(EntryBody::ToolStarted {
            call_id: call_id.clone(),
            name: name.clone(),
            effect: Effect::Pure,
            attempt,
        })],
        vec![
            entry(EntryBody::ToolFinished { call_id: call_id.clone(), output }),
            entry(EntryBody::ToolAnswered { call_id, name, output: None }),
            entry(EntryBody::TurnEnded { step, changed: std::collections::BTreeMap::new(), exit: None }),
        ],
    ]
}

#[tokio::test]
async fn a_run_of_200_steps_takes_less_than_400_kilobytes() {
    let place = Place::new();
    {
        let journal = place.open();
        let writer = journal.open("s", "a").await.expect("is free");
        for batch in (1..=200).flat_map(step) {
            writer.append(batch).await.expect("appends");
        }
    }
    let size = fs::metadata(place.path()).expect("a file").len();
    assert!(size < 400_000, "{size} bytes");
}
