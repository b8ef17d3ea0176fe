//! A team of three whose members decide by their conversations alone: two tasks, one after the other.

use std::sync::{Arc, Mutex};

use agent_core::{
    AssistantMessage, Block, Effect, Error, Journal, MemoryJournal, Message, ToolOutput, ToolRequest,
    journal::each_entry,
};
use agent_exec::Agent;
use agent_team::{Team, TeamEnd};
use agent_tools::{ToolExt, from_schema};
use serde_json::{Value, json};

use super::Thinker;

pub(crate) const SESSION: &str = "s";

/// Idempotency keys of the effects outside.
pub(crate) type Effects = Arc<Mutex<Vec<String>>>;

fn calls(calls: &[(&str, &str, Value)]) -> AssistantMessage {
    AssistantMessage::new(calls.iter().map(|(id, name, args)| Block::tool_call(*id, *name, args.to_string())).collect())
}

fn says(text: &str) -> AssistantMessage {
    AssistantMessage::new(vec![Block::text(text)])
}

fn heard(messages: &[Message], text: &str) -> bool {
    messages.iter().any(|message| matches!(message, Message::User(_)) && message.text().contains(text))
}

fn lead(messages: &[Message]) -> AssistantMessage {
    let done = messages.iter().filter_map(Message::as_assistant).filter(|message| message.calls().count() > 0).count();
    match done {
        0 => calls(&[
            ("a1", "spawn_teammate", json!({"role_name": "builder"})),
            ("a2", "spawn_teammate", json!({"role_name": "builder"})),
            ("a3", "create_task", json!({"title": "First"})),
            ("a4", "create_task", json!({"title": "Second", "dependencies": ["T-001"]})),
        ]),
        1 => calls(&[
            ("b1", "claim_task", json!({"task_id": "T-001", "assignee_agent_id": "builder-1"})),
            ("b2", "broadcast", json!({"content": "We have begun."})),
        ]),
        2 if heard(messages, "T-001 is done") => {
            calls(&[("c1", "claim_task", json!({"task_id": "T-002", "assignee_agent_id": "builder-2"}))])
        }
        3 if heard(messages, "T-002 is done") => calls(&[("d1", "finish_team", json!({"summary": "All is built."}))]),
        _ => says("I wait."),
    }
}

fn build(messages: &[Message]) -> AssistantMessage {
    let assigned = messages.iter().position(|message| message.text().contains("You were assigned task"));
    let Some(at) = assigned else { return says("I am ready.") };
    let task = if messages[at].text().contains("T-001") { "T-001" } else { "T-002" };
    let answered = messages[at..].iter().filter_map(Message::as_tool).count();
    let done = format!("{task} is done.");
    match answered {
        0 => calls(&[("w1", "work", json!({"task": task}))]),
        1 => calls(&[(
            "w2",
            "update_task_status",
            json!({"task_id": task, "status": "completed", "result_summary": "built"}),
        )]),
        2 => calls(&[("w3", "message", json!({"to_agent_id": "leader", "content": done}))]),
        _ => says("I am done."),
    }
}

/// Builds the team over a store; `effects` collects what the tool `work` did.
pub(crate) fn team(store: impl Journal, effects: &Effects) -> Team {
    let effects = effects.clone();
    let schema = json!({"type": "object", "properties": {"task": {"type": "string"}}, "required": ["task"]});
    let work = from_schema("work", "Works.", schema, move |_: Value, req: ToolRequest| {
        let key = req.idempotency_key();
        effects.lock().expect("free").push(key);
        async { Ok::<_, Error>(ToolOutput::text("worked")) }
    });
    let work = work.with_options(|options| options.effect(Effect::Idempotent));
    Team::builder("release")
        .leader(Agent::builder("lead", Thinker::new(lead)).build().expect("builds"))
        .member("builder", Agent::builder("builder", Thinker::new(build)).tool(work).build().expect("builds"))
        .store(store)
        .build()
        .expect("builds")
}

/// Id, status, owner and result of a task, and the number of its claims.
type TaskFacts = (String, String, Option<String>, Option<String>, usize);

/// Facts that are equal however often the team's process died.
#[derive(Debug, PartialEq)]
pub(crate) struct Course {
    end: (String, String),
    tasks: Vec<TaskFacts>,
    members: Vec<(String, String)>,
    /// The messages in each member's conversation, in order.
    received: Vec<Vec<String>>,
    effects: Vec<String>,
}

pub(crate) async fn course(team: &Team, end: &TeamEnd, effects: &Effects) -> Course {
    let tasks = end.board.tasks().map(|task| {
        let (owner, result) = (task.owner.as_deref().map(str::to_owned), task.result.clone());
        (task.id.clone(), task.status.as_str().to_owned(), owner, result, task.claims.len())
    });
    let members = end.members.iter().map(|member| (member.id.to_string(), member.status.as_str().to_owned()));
    let mut received = Vec::new();
    for member in &end.members {
        let session = team.session(SESSION).of_member(&member.id);
        let agent = if &*member.id == "leader" { "lead" } else { "builder" };
        let history = team.store().index(&session).await.expect("reads").look(|index| index.history(agent));
        let users = history.iter().filter(|message| matches!(message, Message::User(_))).map(Message::text);
        let mut texts: Vec<_> = users.filter(|text| !text.contains("All agents are idle")).collect();
        texts.sort(); // messages of two senders may arrive in either order
        received.push(texts);
    }
    let mut effects = effects.lock().expect("free").clone();
    effects.sort();
    effects.dedup();
    Course {
        end: (end.reason.to_string(), end.text.clone()),
        tasks: tasks.collect(),
        members: members.collect(),
        received,
        effects,
    }
}

/// Number of entries of all sessions.
pub(crate) async fn entries(journal: &MemoryJournal) -> u64 {
    let mut count = 0;
    for session in journal.sessions().await.expect("reads") {
        each_entry(journal, &session, 0, |_| count += 1).await.expect("reads");
    }
    count
}
