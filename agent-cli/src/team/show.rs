//! Events of a team as lines of text.

use agent::{
    EventKind,
    team::{Board, MemberInfo, TaskStatus, TeamChange, TeamEnd, TeamEvent, TeamEventKind, TeamQuestion, TurnEnd},
};
use serde_json::{Value, json};

use crate::{
    output::{End, line, plain, table},
    run::about,
};

/// Tools whose effects are shown as changes of the team.
const TEAM_TOOLS: [&str; 11] = [
    "spawn_teammate",
    "remove_teammate",
    "create_task",
    "finish_team",
    "claim_task",
    "update_task_status",
    "release_task",
    "list_tasks",
    "list_teammates",
    "message",
    "broadcast",
];

/// One line about an event, for a person who watches; `None` if there is nothing to tell.
pub(super) fn told(event: &TeamEvent) -> Option<String> {
    let member = event.member.as_deref().unwrap_or("team");
    let text = match &event.kind {
        TeamEventKind::Change(change) => changed(change)?,
        TeamEventKind::Run(event) => match &event.kind {
            EventKind::ModelAnswered { message, .. } => {
                let calls = message.calls().filter(|call| !TEAM_TOOLS.contains(&&*call.name));
                let calls: Vec<_> = calls.map(|call| format!("{} {}", call.name, line(&call.arguments, 100))).collect();
                if calls.is_empty() {
                    return None;
                }
                format!("calls {}", calls.join("; "))
            }
            EventKind::ToolAnswered { name, output, .. } if output.is_error() => {
                format!("{name} failed: {}", line(&output.to_text(), 200))
            }
            EventKind::Retry { attempt, delay, error, .. } => {
                format!("try {attempt} in {delay:.1} s: {}", line(error, 200))
            }
            EventKind::Warning { message } => format!("! {}", line(message, 400)),
            _ => return None,
        },
        _ => return None,
    };
    Some(format!("[{member}] {text}"))
}

/// Text that a member's model wrote, if the event is an answer with text.
pub(super) fn said(event: &TeamEvent) -> Option<(&str, String)> {
    let TeamEventKind::Run(inner) = &event.kind else { return None };
    let EventKind::ModelAnswered { message, .. } = &inner.kind else { return None };
    (inner.ids.depth == 0 && message.has_text()).then(|| (event.member.as_deref().unwrap_or("team"), message.text()))
}

/// Describes a change of the team; `None` for a change that is not shown.
pub(super) fn changed(change: &TeamChange) -> Option<String> {
    Some(match change {
        TeamChange::Spawned { member } => format!("{member} joined the team"),
        TeamChange::Removed { member } => format!("{member} left the team"),
        TeamChange::Task { task, .. } => {
            let owner = task.owner.as_ref().map(|owner| format!(", {owner}")).unwrap_or_default();
            format!("{} {} ({}{owner})", task.id, line(&task.title, 100), task.status.as_str())
        }
        TeamChange::Sent { message } => format!("to {}: {}", message.to.join(", "), line(&message.text(), 200)),
        TeamChange::TurnSuspended { .. } => "waits for an answer".to_owned(),
        TeamChange::Answered { .. } => "has an answer".to_owned(),
        TeamChange::TurnEnded { end: TurnEnd::Failed { error }, .. } => format!("failed: {}", line(error, 400)),
        _ => return None,
    })
}

/// The task board as a table.
pub(super) fn board(board: &Board) -> String {
    let mut rows = vec![["task", "status", "owner", "needs", "title"].map(str::to_owned).to_vec()];
    for task in board.tasks() {
        let is_blocked = task.status == TaskStatus::Pending && board.blocked_by(task).next().is_some();
        let status = if is_blocked { "blocked" } else { task.status.as_str() };
        let owner = task.owner.as_deref().unwrap_or("-");
        let needs = if task.dependencies.is_empty() { "-".to_owned() } else { task.dependencies.join(", ") };
        rows.push(vec![task.id.clone(), status.to_owned(), owner.to_owned(), needs, line(&task.title, 60)]);
    }
    if rows.len() == 1 { "the board has no tasks\n".to_owned() } else { table(&rows) }
}

/// The members as a table.
pub(super) fn members(members: &[MemberInfo]) -> String {
    let mut rows = vec![["member", "status", "task", "unread", "turns", "tokens"].map(str::to_owned).to_vec()];
    for member in members {
        rows.push(vec![
            member.id.to_string(),
            member.status.as_str().to_owned(),
            member.task.clone().unwrap_or_else(|| "-".to_owned()),
            member.unread.to_string(),
            member.turns.to_string(),
            member.usage.total().to_string(),
        ]);
    }
    table(&rows)
}

/// A question with the member that asks it.
pub(super) fn question(asked: &TeamQuestion) -> String {
    format!("{} asks: {}", asked.member, line(&about(&asked.question), 300))
}

/// The end of a run as one value.
pub(super) fn end_in_json(end: &TeamEnd) -> Value {
    json!({
        "end": end.reason.as_str(), "session": end.session, "run": end.run, "answer": end.text,
        "error": match &end.reason { agent::team::TeamEndReason::Failed(error) => Some(plain(error)), _ => None },
        "tasks": end.board.tasks().collect::<Vec<_>>(), "members": end.members, "questions": end.questions,
        "usage": end.usage, "rounds": end.rounds,
    })
}

/// Exit status of the program for the end of a run.
pub(super) fn status(end: &TeamEnd) -> End {
    use agent::team::TeamEndReason as Reason;
    match &end.reason {
        Reason::Finished | Reason::Quiescent => End::Finished,
        Reason::Waiting | Reason::Paused => End::Waits,
        Reason::Cancelled => End::Interrupted,
        _ => End::Failed,
    }
}
