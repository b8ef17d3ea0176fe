//! Ends of runs.

use std::time::Duration;

use agent_core::{Caps, Error, ErrorKind, testing::Turn};
use agent_team::{MemberStatus, TaskStatus, TeamEndReason, TeamRequest};
use serde_json::json;

use crate::common::{led_by, scripted};

fn spawn() -> Turn {
    Turn::call("s", "spawn_teammate", json!({"role_name": "builder"}))
}

fn ask() -> Turn {
    Turn::call("m", "message", json!({"to_agent_id": "builder-1", "content": "work"}))
}

fn credit() -> Turn {
    Turn::error(|| Error::new(ErrorKind::Quota, "no credit"))
}

#[tokio::test(start_paused = true)]
async fn finishing_with_open_tasks_is_refused_and_the_leader_can_force_it() {
    let leader = [
        Turn::call("1", "create_task", json!({"title": "One"})),
        Turn::call("2", "finish_team", json!({"summary": "done"})),
        Turn::call("3", "finish_team", json!({"summary": "given up", "force": true})).expect(|seen| {
            match seen.texts().last() {
                Some(text) if text.contains("tasks are open: T-001") => Ok(()),
                other => Err(format!("{other:?}")),
            }
        }),
    ];
    let end = led_by(leader).build().expect("builds").run("Go.").await.expect("runs");
    assert_eq!((end.reason, end.text.as_str()), (TeamEndReason::Finished, "given up"));
    assert_eq!(end.board.get("T-001").map(|task| task.status), Some(TaskStatus::Pending));
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_only_talks_is_reminded_and_three_texts_in_a_row_end_the_team() {
    let reminded = |seen: &agent_core::testing::Seen| match seen.texts().last() {
        Some(text) if text.contains("You have no teammates") => Ok(()),
        other => Err(format!("{other:?}")),
    };
    let leader = [Turn::text("one"), Turn::text("two").expect(reminded), Turn::text("three").expect(reminded)];
    let end = led_by(leader).build().expect("builds").run("Go.").await.expect("runs");
    assert_eq!((end.reason, end.text.as_str(), end.rounds), (TeamEndReason::Quiescent, "three", 3));
}

#[tokio::test(start_paused = true)]
async fn an_idle_team_with_open_tasks_is_brought_to_the_leaders_attention_after_ten_seconds() {
    let began = tokio::time::Instant::now();
    let leader = [
        spawn(),
        Turn::call("1", "create_task", json!({"title": "One"})),
        Turn::text("I wait."),
        Turn::call("2", "finish_team", json!({"summary": "enough", "force": true})).expect(|seen| {
            match seen.texts().last() {
                Some(text) if text.contains("All agents are idle") && text.contains("T-001 (pending)") => Ok(()),
                other => Err(format!("{other:?}")),
            }
        }),
    ];
    let team = led_by(leader).member("builder", scripted("builder", [])).build().expect("builds");
    let end = team.run("Go.").await.expect("runs");
    assert_eq!(end.reason, TeamEndReason::Finished);
    assert_eq!(began.elapsed().as_secs(), 10);
}

#[tokio::test(start_paused = true)]
async fn the_limit_on_turns_ends_the_team() {
    let team = led_by([Turn::text("one"), Turn::text("two")]).max_rounds(2).build().expect("builds");
    let end = team.run("Go.").await.expect("runs");
    assert_eq!((end.reason, end.rounds, end.text.as_str()), (TeamEndReason::Rounds, 2, "two"));
}

#[tokio::test(start_paused = true)]
async fn the_deadline_cancels_the_turns_of_all_members() {
    let slow = Turn::text("too late").delay(Duration::from_secs(3600));
    let team = led_by([spawn(), ask(), Turn::text("I wait.")]).member("builder", scripted("builder", [slow]));
    let team = team.deadline(Duration::from_secs(60)).build().expect("builds");
    let began = tokio::time::Instant::now();
    let end = team.run("Go.").await.expect("runs");
    assert_eq!((end.reason, began.elapsed().as_secs()), (TeamEndReason::Deadline, 60));
    assert!(end.members.iter().all(|member| member.status == MemberStatus::Idle), "{:?}", end.members);
}

#[tokio::test(start_paused = true)]
async fn the_caps_of_the_team_hold_over_all_its_members() {
    let builder = [Turn::text("never said")];
    let team = led_by([spawn(), ask(), Turn::text("I wait.")]).member("builder", scripted("builder", builder));
    let team = team.caps(Caps::default().model_calls(3)).build().expect("builds");
    let end = team.run("Go.").await.expect("runs");
    assert_eq!((end.reason, end.usage.calls), (TeamEndReason::Budget, 3));
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_fails_ends_the_team_with_its_error() {
    let end = led_by([credit()]).build().expect("builds").run("Go.").await.expect("ends");
    assert_eq!(end.reason, TeamEndReason::Failed("no credit".into()));
}

#[tokio::test(start_paused = true)]
async fn a_member_that_fails_loses_its_task_and_the_leader_goes_on() {
    let leader = [
        spawn(),
        Turn::call("1", "create_task", json!({"title": "One"})),
        Turn::call("2", "claim_task", json!({"task_id": "T-001", "assignee_agent_id": "builder-1"})),
        Turn::text("I wait."),
        Turn::call("3", "finish_team", json!({"summary": "it failed", "force": true})).expect(|seen| {
            match seen.texts().last() {
                Some(text) if text.contains("builder-1 failed: no credit") && text.contains("T-001 returned") => Ok(()),
                other => Err(format!("{other:?}")),
            }
        }),
    ];
    let team = led_by(leader).member("builder", scripted("builder", [credit()])).build().expect("builds");
    let end = team.run("Go.").await.expect("runs");
    assert_eq!((end.reason, end.text.as_str()), (TeamEndReason::Finished, "it failed"));
    let task = end.board.get("T-001").expect("there");
    assert_eq!((task.status, task.claims.len()), (TaskStatus::Pending, 1));
    assert_eq!(end.members[0].error.as_deref(), Some("no credit"));
}

#[tokio::test(start_paused = true)]
async fn stopping_ends_the_run_and_a_new_message_starts_another() {
    let slow = Turn::text("never").delay(Duration::from_secs(3600));
    let team = led_by([slow, Turn::text("again")]).max_idle_turns(1).build().expect("builds");
    let run = team.start(TeamRequest::user("Go.").session("s"));
    let session = run.handle().session().clone();
    let stop = async {
        tokio::time::sleep(Duration::from_secs(5)).await;
        session.stop().await
    };
    let (end, stopped) = tokio::join!(run, stop);
    stopped.expect("stops");
    assert_eq!(end.expect("ends").reason, TeamEndReason::Stopped);
    let refused = session.message("leader", "hello?").await.expect_err("it has ended");
    assert_eq!(refused.kind(), ErrorKind::Stale, "{refused}");
    let end = team.start(TeamRequest::user("Again.").session("s")).await.expect("runs");
    assert_eq!((end.reason, end.text.as_str()), (TeamEndReason::Quiescent, "again"));
}

#[tokio::test(start_paused = true)]
async fn members_that_work_when_the_leader_finishes_are_cancelled() {
    let slow = Turn::text("never").delay(Duration::from_secs(3600));
    let leader = [spawn(), ask(), Turn::call("3", "finish_team", json!({"summary": "enough"}))];
    let team = led_by(leader).member("builder", scripted("builder", [slow])).build().expect("builds");
    let began = tokio::time::Instant::now();
    let end = team.run("Go.").await.expect("runs");
    assert_eq!((end.reason, began.elapsed().as_secs()), (TeamEndReason::Finished, 0));
    assert!(end.members.iter().all(|member| member.status == MemberStatus::Idle), "{:?}", end.members);
}
