//! Runs of teams: turns, messages, events.

use std::time::Duration;

use agent_core::{
    EventKind, MemoryJournal, Message,
    testing::{ScriptedModel, Turn},
};
use agent_exec::Agent;
use agent_team::{Team, TeamChange, TeamEndReason, TeamEventKind, TeamHistory, TeamRequest};
use futures::StreamExt;
use serde_json::json;

use crate::common::{clock, led_by, scripted};

fn names(tools: &[agent_core::ToolSpec]) -> Vec<String> {
    tools.iter().map(|tool| tool.name.clone()).collect()
}

#[tokio::test]
async fn the_leader_has_eleven_tools_and_a_member_those_that_do_not_lead() {
    let team = led_by([]).member("builder", scripted("builder", [])).describe("builder", "writes code").build();
    let team = team.expect("builds");
    let leader = names(team.leader().expect("a leader").tools());
    let (_, builder) = team.roles().next().expect("one");
    let member = names(builder.tools());
    assert_eq!(leader.len(), 11, "{leader:?}");
    let shared =
        ["claim_task", "update_task_status", "release_task", "list_tasks", "list_teammates", "message", "broadcast"];
    assert_eq!(member, shared);
    let only_leader = ["spawn_teammate", "remove_teammate", "create_task", "finish_team"];
    assert!(only_leader.iter().chain(&shared).all(|name| leader.iter().any(|tool| tool == name)));
    assert!(team.leader().expect("a leader").tools()[0].description.ends_with("- builder: writes code"));
}

#[tokio::test(start_paused = true)]
async fn members_have_sessions_of_their_own_and_communicate_by_messages() {
    let leader = [
        Turn::call("1", "spawn_teammate", json!({"role_name": "builder"})),
        Turn::call("2", "message", json!({"to_agent_id": "builder-1", "content": "What is 2 + 2?"})),
        Turn::text("I asked.").expect(|seen| match seen.texts().last() {
            Some(text) if text.contains("builder-1") => Ok(()),
            other => Err(format!("{other:?}")),
        }),
        Turn::call("3", "finish_team", json!({"summary": "4"})).expect(|seen| {
            match seen.texts().last().map(String::as_str) {
                Some("Message from builder-1:\n\nIt is 4." | "Message from builder-1:\nIt is 4.") => Ok(()),
                other => Err(format!("{other:?}")),
            }
        }),
    ];
    let builder = [
        Turn::call("1", "message", json!({"to_agent_id": "leader", "content": "It is 4."})).expect(|seen| {
            match seen.texts().len() {
                1 => Ok(()),
                n => Err(format!("{n} messages: it must not see the leader's conversation")),
            }
        }),
        Turn::text("Answered."),
    ];
    let store = MemoryJournal::default();
    let team = led_by(leader).member("builder", scripted("builder", builder)).store(store.clone()).build();
    let team = team.expect("builds");
    let end = team.start(TeamRequest::user("Ask the builder.").session("ada")).await.expect("runs");
    assert_eq!((end.reason, end.text.as_str(), end.rounds), (TeamEndReason::Finished, "4", 3));
    assert_eq!(end.usage.calls, 6, "four calls of the leader and two of the builder");
    let sessions = agent_core::Journal::sessions(&store).await.expect("reads");
    assert_eq!(sessions, ["ada", "ada:builder-1", "ada:leader"]);
}

#[tokio::test(start_paused = true)]
async fn messages_that_arrive_during_a_turn_are_the_input_of_the_next_one() {
    let leader = [
        Turn::call("1", "spawn_teammate", json!({"role_name": "builder"})),
        Turn::call("2", "message", json!({"to_agent_id": "builder-1", "content": "one"})),
        Turn::calls([
            ("3", "message", json!({"to_agent_id": "builder-1", "content": "two"})),
            ("4", "message", json!({"to_agent_id": "builder-1", "content": "three"})),
        ]),
        Turn::text("Sent."),
    ];
    let slow = ScriptedModel::new([
        Turn::text("first").delay(Duration::from_secs(60)).expect(|seen| match seen.texts().len() {
            1 => Ok(()),
            n => Err(format!("{n} messages")),
        }),
        Turn::text("second").expect(|seen| match &seen.texts()[2..] {
            [two, three] if two.ends_with("two") && three.ends_with("three") => Ok(()),
            other => Err(format!("{other:?}")),
        }),
    ]);
    let builder = Agent::builder("builder", slow.clone()).build().expect("builds");
    let team = led_by(leader).member("builder", builder).max_idle_turns(1).build().expect("builds");
    let end = team.run("Go.").await.expect("runs");
    assert_eq!(end.reason, TeamEndReason::Quiescent);
    slow.assert_finished();
}

#[tokio::test(start_paused = true)]
async fn one_stream_has_the_events_of_all_members_and_the_changes_of_the_team() {
    let leader = [
        Turn::call("1", "spawn_teammate", json!({"role_name": "builder"})),
        Turn::call("2", "message", json!({"to_agent_id": "builder-1", "content": "hello"})),
        Turn::text("I wait."),
    ];
    let team = led_by(leader).member("builder", scripted("builder", [Turn::text("hi there")]));
    let team = team.max_idle_turns(1).build().expect("builds");
    let mut run = team.start(TeamRequest::user("Go.").streaming(true));
    let (mut texts, mut changes) = (Vec::new(), Vec::new());
    while let Some(event) = run.next().await {
        match event.kind {
            TeamEventKind::Run(inner) => {
                if let EventKind::ModelAnswered { message, .. } = inner.kind {
                    texts.push((event.member.expect("a member").to_string(), message.text()));
                }
            }
            TeamEventKind::Change(change) => changes.push(change),
            _ => {}
        }
    }
    let end = run.await.expect("runs");
    assert_eq!(end.reason, TeamEndReason::Quiescent);
    assert!(texts.contains(&("builder-1".into(), "hi there".into())), "{texts:?}");
    assert!(texts.contains(&("leader".into(), "I wait.".into())), "{texts:?}");
    let has = |found: &dyn Fn(&TeamChange) -> bool| changes.iter().any(found);
    assert!(has(&|change| matches!(change, TeamChange::Started { .. })));
    assert!(has(&|change| matches!(change, TeamChange::Spawned { member } if &**member == "builder-1")));
    assert!(has(&|change| matches!(change, TeamChange::Sent { message } if message.text() == "hello")));
    assert!(has(&|change| matches!(change, TeamChange::TurnEnded { member, .. } if &**member == "builder-1")));
    assert_eq!(changes.last(), Some(&TeamChange::Ended { reason: TeamEndReason::Quiescent }));
}

#[tokio::test(start_paused = true)]
async fn members_of_one_role_run_at_the_same_time_unless_turns_are_limited() {
    for (limit, peak) in [(None, 3), (Some(1), 1)] {
        let spawn = |id| (id, "spawn_teammate", json!({"role_name": "builder"}));
        let leader = [
            Turn::calls([spawn("1"), spawn("2"), spawn("3")]),
            Turn::call("4", "broadcast", json!({"content": "work"})),
            Turn::text("I wait."),
        ];
        let slow = || Turn::text("done").delay(Duration::from_secs(60));
        let model = ScriptedModel::new([slow(), slow(), slow()]);
        let builder = Agent::builder("builder", model.clone()).build().expect("builds");
        let mut team = led_by(leader).member("builder", builder).max_idle_turns(1);
        if let Some(limit) = limit {
            team = team.max_concurrent_turns(limit);
        }
        team.build().expect("builds").run("Go.").await.expect("runs");
        assert_eq!(model.peak(), peak);
    }
}

#[tokio::test(start_paused = true)]
async fn a_later_run_of_the_session_continues_with_the_same_members_and_tasks() {
    let leader = [
        Turn::calls([
            ("1", "spawn_teammate", json!({"role_name": "builder"})),
            ("2", "create_task", json!({"title": "One"})),
        ]),
        Turn::call("3", "finish_team", json!({"summary": "later", "force": true})),
        Turn::call("4", "list_teammates", json!({})),
        Turn::call("5", "list_tasks", json!({"status": "pending"})).expect(|seen| match seen.texts().last() {
            Some(text) if text.contains("builder-1") => Ok(()),
            other => Err(format!("{other:?}")),
        }),
        Turn::call("6", "finish_team", json!({"summary": "seen", "force": true})).expect(|seen| {
            match seen.texts().last() {
                Some(text) if text.contains("T-001") => Ok(()),
                other => Err(format!("{other:?}")),
            }
        }),
    ];
    let team = led_by(leader).member("builder", scripted("builder", [])).build().expect("builds");
    for text in ["later", "seen"] {
        let end = team.start(TeamRequest::user("Go on.").session("s")).await.expect("runs");
        assert_eq!((end.reason, end.text.as_str()), (TeamEndReason::Finished, text));
    }
}

#[test]
fn a_team_that_cannot_work_is_refused_when_it_is_built() {
    let lead = || scripted("lead", []);
    let team = || Team::builder("team").leader(lead());
    let error = |built: agent_core::Result<Team>| built.expect_err("refused").message().to_owned();
    assert_eq!(
        error(Team::builder("team").build()),
        "a team needs a leader or a pattern: set it with leader(..) or pattern(..)"
    );
    let twice = team().member("leader", lead()).member("x y", lead()).member("a", lead()).member("a", lead());
    let twice = twice.describe("b", "").max_members(0).max_rounds(0).deadline(Duration::ZERO);
    let message = error(twice.build());
    for part in [
        "deadline is 0",
        "'leader' is the role of the leader",
        "role 'x y'",
        "role 'a' is declared twice",
        "role 'b' is described",
        "max_members is 0",
        "max_rounds is 0",
    ] {
        assert!(message.contains(part), "{part}: {message}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_leader_with_attachments_receives_the_message_of_the_user_unchanged() {
    let leader = [Turn::text("Noted.").expect(|seen| match &seen.messages[..] {
        [Message::User(user)] if user.parts().len() == 2 => Ok(()),
        other => Err(format!("{other:?}")),
    })];
    let team = led_by(leader).clock(clock()).max_idle_turns(1).build().expect("builds");
    let parts =
        vec![agent_core::Part::text("Look."), agent_core::Part::Image(agent_core::Media::url("https://x.test/a.png"))];
    let end = team.start(TeamRequest::parts(parts)).await.expect("runs");
    assert_eq!((end.reason, end.text.as_str()), (TeamEndReason::Quiescent, "Noted."));
}

#[tokio::test(start_paused = true)]
async fn two_teams_are_compared_by_their_changes_and_not_by_their_times() {
    let store = agent_core::MemoryJournal::default();
    for (session, title) in [("one", "Build"), ("two", "Build"), ("three", "Test")] {
        let leader = [
            Turn::call("1", "create_task", json!({"title": title})),
            Turn::call("2", "finish_team", json!({"summary": "done", "force": true})),
        ];
        let team = led_by(leader).store(store.clone()).build().expect("builds");
        team.start(TeamRequest::user("Go.").session(session)).await.expect("runs");
        tokio::time::sleep(std::time::Duration::from_secs(60)).await;
    }
    let read = async |session: &str| TeamHistory::read(&store, session).await.expect("reads");
    let (one, two, three) = (read("one").await, read("two").await, read("three").await);
    assert_eq!(one.difference(&two), None);
    let difference = one.difference(&three).expect("they differ");
    let titles = [difference.one, difference.two].map(|record| format!("{:?}", record.expect("a change").change));
    assert!(titles[0].contains("Build") && titles[1].contains("Test"), "{titles:?}");
}

#[tokio::test(start_paused = true)]
async fn the_runs_of_all_members_belong_to_one_trace_in_every_process() {
    let traces = async |session: &str, run: &str| {
        let leader = [
            Turn::call("1", "spawn_teammate", json!({"role_name": "builder"})),
            Turn::call("2", "message", json!({"to_agent_id": "builder-1", "content": "Hi."})),
            Turn::text("I wait."),
        ];
        let store = MemoryJournal::default();
        let team = led_by(leader).member("builder", scripted("builder", [Turn::text("Hi.")]));
        let team = team.max_rounds(2).store(store.clone()).build().expect("builds");
        team.start(TeamRequest::user("Go.").session(session).run_id(run)).await.expect("runs");
        let mut found = Vec::new();
        for member in ["leader", "builder-1"] {
            let entries =
                agent_core::Journal::read(&store, &format!("{session}:{member}"), 0, 100).await.expect("reads");
            found.extend(entries.iter().filter_map(|entry| match &entry.body {
                agent_core::journal::EntryBody::RunStarted { ids, .. } => ids.traceparent.clone(),
                _ => None,
            }));
        }
        found
    };
    let (one, again, other) = (traces("s", "r1").await, traces("t", "r1").await, traces("s", "r2").await);
    assert_eq!(one.len(), 2);
    assert!(one.iter().chain(&again).all(|trace| *trace == one[0]), "{one:?} {again:?}");
    assert_ne!(one[0], other[0]);
}
