//! A team of three: a leader plans, a builder and a tester work, and a person watches.

use agent::{
    prelude::*,
    team::{Team, TeamChange, TeamEventKind, TeamRequest},
    testing::{ScriptedModel, Turn},
};
use futures::StreamExt;
use serde_json::json;

/// The leader: spawns two members, and hands out a task to each.
fn lead() -> ScriptedModel {
    ScriptedModel::new([
        Turn::calls([
            ("1", "spawn_teammate", json!({"role_name": "builder"})),
            ("2", "spawn_teammate", json!({"role_name": "tester"})),
            ("3", "create_task", json!({"title": "Build the parser"})),
            ("4", "create_task", json!({"title": "Test the parser", "dependencies": ["T-001"]})),
            ("5", "claim_task", json!({"task_id": "T-001", "assignee_agent_id": "builder-1"})),
        ]),
        Turn::text("The builder is at work."),
        Turn::call("6", "claim_task", json!({"task_id": "T-002", "assignee_agent_id": "tester-1"})),
        Turn::text("The tester is at work."),
        Turn::call("7", "finish_team", json!({"summary": "The parser is built and tested."})),
    ])
}

/// A member that completes its task and reports to the leader.
fn worker(task: &str, result: &str) -> ScriptedModel {
    let completed = json!({"task_id": task, "status": "completed", "result_summary": result});
    let report = json!({"to_agent_id": "leader", "content": format!("{task}: {result}")});
    ScriptedModel::new([
        Turn::calls([("1", "update_task_status", completed), ("2", "message", report)]),
        Turn::text("I am done."),
    ])
}

fn by(member: Option<&str>) -> &str {
    member.unwrap_or("the user")
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let builder = worker("T-001", "it parses all our files");
    let tester = worker("T-002", "40 tests pass");
    let team = Team::builder("release")
        .leader(Agent::builder("lead", lead()).build()?)
        .member("builder", Agent::builder("builder", builder).build()?)
        .member("tester", Agent::builder("tester", tester).build()?)
        .build()?;

    let mut run = team.start(TeamRequest::user("Build a parser for our configuration files."));
    while let Some(event) = run.next().await {
        let TeamEventKind::Change(change) = &event.kind else { continue };
        let who = by(event.member.as_deref());
        match change {
            TeamChange::Spawned { member } => println!("{who} spawned {member}"),
            TeamChange::Task { task, .. } => println!("{who}: {} {} is {}", task.id, task.title, task.status.as_str()),
            TeamChange::Sent { message } => println!("{who} to {}: {}", message.to.join(", "), message.text()),
            TeamChange::Ended { reason } => println!("the team ended: {reason}"),
            _ => {}
        }
    }
    let end = run.await?;
    println!("{} ({} turns, {} model calls)", end.text, end.rounds, end.usage.calls);
    Ok(())
}
