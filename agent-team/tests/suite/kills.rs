//! A team whose real processes are killed, over stores on disk.

use std::{
    fs,
    io::Write,
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus},
    sync::Arc,
    time::{Duration, SystemTime},
};

use agent_core::Journal;
use agent_store::{PostgresJournal, SqliteJournal};

use crate::common::crew::{Crew, Record};

/// Folder of the store and of the effects, for the process that is killed.
const FOLDER: &str = "AGENT_TEAM_KILLS_FOLDER";
/// Number of the process.
const GENERATION: &str = "AGENT_TEAM_KILLS_GENERATION";
/// Database of the store; without one it is a SQLite file in the folder.
const DATABASE: &str = "AGENT_TEAM_KILLS_DATABASE";

/// Lease of a writer in PostgreSQL, for which the process after one that was killed waits.
const LEASE: Duration = Duration::from_secs(1);

/// Kills per run: a few, or as many as `AGENT_TEAM_KILLS` says, of a team of six with forty tasks then.
fn kills() -> Option<u32> {
    std::env::var("AGENT_TEAM_KILLS").ok().and_then(|count| count.parse().ok())
}

fn crew() -> Crew {
    match kills() {
        Some(_) => Crew { seed: 39, members: 5, tasks: 40 },
        None => Crew { seed: 39, members: 3, tasks: 8 },
    }
}

async fn team(folder: &Path, database: Option<&str>, generation: u32) -> agent_team::Team {
    let file = folder.join("effects");
    let record: Record = Arc::new(move |task, key| {
        let mut file = fs::OpenOptions::new().create(true).append(true).open(&file).expect("opens");
        file.write_all(format!("{task} {key}\n").as_bytes()).expect("writes");
    });
    let store: Arc<dyn Journal> = match database {
        Some(url) => {
            let schema = folder.file_name().expect("a name").to_string_lossy().replace(['.', '-'], "_");
            let journal = PostgresJournal::builder(url).schema(format!("kills_{schema}")).lease_ttl(LEASE);
            Arc::new(journal.connect().await.expect("connects"))
        }
        None => {
            // The lease of a process that was killed would delay the next one: its clock runs ahead.
            let ahead = Duration::from_secs(60).saturating_mul(generation);
            let store = SqliteJournal::builder(folder.join("team.db")).clock(move || SystemTime::now() + ahead);
            Arc::new(store.open().expect("opens"))
        }
    };
    crew().team(store, record)
}

/// The process that is killed: the tests below run it.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "a process of the tests of kills"]
async fn child() {
    let Some(folder) = std::env::var_os(FOLDER).map(PathBuf::from) else { return };
    let generation = std::env::var(GENERATION).expect("a number").parse().expect("a number");
    let database = std::env::var(DATABASE).ok();
    let team = team(&folder, database.as_deref(), generation).await;
    team.start(Crew::request()).await.expect("runs");
    fs::write(folder.join("done"), "").expect("writes");
}

fn spawn(folder: &Path, database: Option<&str>, generation: u32) -> Child {
    let program = std::env::current_exe().expect("this program");
    let args = ["--ignored", "--exact", "kills::child", "--quiet"];
    let mut command = Command::new(program);
    command.args(args).env(FOLDER, folder).env(GENERATION, generation.to_string());
    command.envs(database.map(|url| (DATABASE, url))).spawn().expect("begins")
}

/// Runs a process, and kills it after a while unless it is the last one. Returns its status if it ended.
fn live(mut process: Child, for_a_while: Option<Duration>) -> Option<ExitStatus> {
    let Some(time) = for_a_while else { return Some(process.wait().expect("ends")) };
    std::thread::sleep(time);
    let ended = process.try_wait().expect("is a process");
    if ended.is_none() {
        process.kill().expect("is killed");
        process.wait().expect("ends");
    }
    ended
}

async fn survives(database: Option<String>) {
    let folder = tempfile::tempdir().expect("a folder");
    let (most, mut died) = (kills().unwrap_or(4), 0_u32);
    loop {
        let process = spawn(folder.path(), database.as_deref(), died);
        let time = (died < most).then(|| Duration::from_millis(u64::from(60 + died * 37 % 240)));
        let ended = tokio::task::spawn_blocking(move || live(process, time)).await.expect("waits");
        if let Some(status) = ended {
            assert!(status.success(), "{status}");
            break;
        }
        died += 1;
        if database.is_some() {
            tokio::time::sleep(LEASE + Duration::from_millis(200)).await;
        }
    }
    assert!(folder.path().join("done").exists());
    let team = team(folder.path(), database.as_deref(), died + 1).await;
    let end = team.start(Crew::request()).await.expect("is over");
    let effects = fs::read_to_string(folder.path().join("effects")).expect("reads");
    let effects = effects.lines().filter_map(|line| line.split_once(' '));
    let effects: Vec<_> = effects.map(|(task, key)| (task.to_owned(), key.to_owned())).collect();
    crew().check(&team, &end, &effects).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_team_on_sqlite_whose_processes_are_killed_loses_and_doubles_nothing() {
    survives(None).await;
}

/// Runs where `DATABASE_URL` names a database.
#[tokio::test(flavor = "multi_thread")]
async fn a_team_on_postgres_whose_processes_are_killed_loses_and_doubles_nothing() {
    match std::env::var("DATABASE_URL") {
        Ok(url) => survives(Some(url)).await,
        Err(_) => eprintln!("skipped: DATABASE_URL is not set"),
    }
}
