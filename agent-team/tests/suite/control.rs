//! A run is paused, cancelled, resumed, and reached from outside.

use std::time::Duration;

use agent_core::{ErrorKind, Journal, MemoryJournal, testing::Turn};
use agent_team::{TeamBuilder, TeamEndReason, TeamRequest};
use serde_json::json;

use crate::common::{led_by, scripted};

fn two_at_work(store: &MemoryJournal) -> TeamBuilder {
    let leader = [
        Turn::call("1", "spawn_teammate", json!({"role_name": "builder"})),
        Turn::call("2", "message", json!({"to_agent_id": "builder-1", "content": "work"})),
        Turn::text("I wait."),
        Turn::call("3", "finish_team", json!({"summary": "done"})),
    ];
    let slow = Turn::call("1", "message", json!({"to_agent_id": "leader", "content": "ready"}));
    let builder = [slow.delay(Duration::from_secs(100)), Turn::text("sent")];
    led_by(leader).member("builder", scripted("builder", builder)).store(store.clone())
}

#[tokio::test(start_paused = true)]
async fn a_paused_team_is_resumed_where_every_member_was() {
    let store = MemoryJournal::default();
    let team = two_at_work(&store).build().expect("builds");
    let run = team.start(TeamRequest::user("Go.").session("s"));
    let handle = run.handle();
    let pause = async {
        tokio::time::sleep(Duration::from_secs(5)).await;
        handle.pause();
    };
    let (end, ()) = tokio::join!(run, pause);
    let end = end.expect("is suspended");
    assert_eq!(end.reason, TeamEndReason::Paused);
    assert!(!end.reason.is_final());
    let end = team.start(TeamRequest::resume("s")).await.expect("runs");
    assert_eq!((end.reason, end.text.as_str()), (TeamEndReason::Finished, "done"));
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_team_can_be_resumed_too() {
    let store = MemoryJournal::default();
    let leader = [
        Turn::text("never").delay(Duration::from_secs(3600)),
        Turn::call("1", "finish_team", json!({"summary": "done"})),
    ];
    let team = led_by(leader).store(store).build().expect("builds");
    let run = team.start(TeamRequest::user("Go.").session("s"));
    let handle = run.handle();
    let cancel = async {
        tokio::time::sleep(Duration::from_secs(5)).await;
        handle.cancel();
    };
    let (end, ()) = tokio::join!(run, cancel);
    assert_eq!(end.expect("is suspended").reason, TeamEndReason::Cancelled);
    let end = team.start(TeamRequest::resume("s")).await.expect("runs");
    assert_eq!((end.reason, end.text.as_str()), (TeamEndReason::Finished, "done"));
}

#[tokio::test(start_paused = true)]
async fn there_is_one_driver_of_a_session_and_nothing_to_resume_in_a_new_one() {
    let store = MemoryJournal::default();
    let team = led_by([Turn::text("slow").delay(Duration::from_secs(60))]).store(store).max_idle_turns(1);
    let team = team.build().expect("builds");
    let first = team.start(TeamRequest::user("Go.").session("s"));
    let second = async {
        tokio::time::sleep(Duration::from_secs(5)).await;
        team.start(TeamRequest::user("Me too.").session("s")).await
    };
    let (first, second) = tokio::join!(first, second);
    assert_eq!(second.expect_err("busy").kind(), ErrorKind::Busy);
    assert_eq!(first.expect("runs").reason, TeamEndReason::Quiescent);
    let nothing = team.start(TeamRequest::resume("other")).await.expect_err("nothing is there");
    assert_eq!(nothing.message(), "session 'other' has no run of team 'team' to resume");
}

#[tokio::test(start_paused = true)]
async fn the_user_reaches_any_member_while_the_team_runs_and_from_another_process() {
    for is_elsewhere in [false, true] {
        let store = MemoryJournal::default();
        let leader = [
            Turn::call("1", "spawn_teammate", json!({"role_name": "builder"})),
            Turn::call("2", "message", json!({"to_agent_id": "builder-1", "content": "work"})),
            Turn::text("I wait."),
        ];
        let builder = [
            Turn::text("working").delay(Duration::from_secs(100)),
            Turn::text("understood").expect(|seen| match seen.texts().last().map(String::as_str) {
                Some(text) if text.starts_with("Message from the user:") && text.ends_with("use tabs") => Ok(()),
                other => Err(format!("{other:?}")),
            }),
        ];
        let build = || led_by([]).member("builder", scripted("builder", [])).store(store.clone()).build();
        let team = led_by(leader).member("builder", scripted("builder", builder)).store(store.clone());
        let team = team.max_idle_turns(1).build().expect("builds");
        let run = team.start(TeamRequest::user("Go.").session("s"));
        let session = match is_elsewhere {
            true => build().expect("builds").session("s"),
            false => run.handle().session().clone(),
        };
        let write = async {
            tokio::time::sleep(Duration::from_secs(5)).await;
            let send = || session.send("builder-1", vec![agent_core::Part::text("use tabs")], Some("k".into()));
            assert_eq!(send().await.expect("sent"), send().await.expect("known"), "the key is idempotent");
            let nobody = session.message("builder-7", "hello").await.expect_err("nobody");
            assert_eq!(nobody.message(), "unknown member 'builder-7'; members: builder-1, leader");
        };
        let (end, ()) = tokio::join!(run, write);
        let end = end.expect("runs");
        assert_eq!(end.reason, TeamEndReason::Quiescent);
        assert_eq!(end.members[0].turns, 2, "elsewhere: {is_elsewhere}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_run_of_a_team_is_a_run_of_its_session_with_a_status() {
    let store = MemoryJournal::default();
    let team = led_by([Turn::call("1", "finish_team", json!({"summary": "done"}))]).store(store.clone());
    let team = team.build().expect("builds");
    let end = team.start(TeamRequest::user("Go.").session("s").run_id("r7")).await.expect("runs");
    assert_eq!(&*end.run, "r7");
    let index = store.index("s").await.expect("reads");
    let runs = index.look(|index| index.runs("team:team").to_vec());
    assert_eq!(runs.iter().map(|run| &*run.run_id).collect::<Vec<_>>(), ["r7"]);
    assert!(format!("{:?}", runs[0].status).contains("finish_team"), "{:?}", runs[0].status);
}
