//! The board and the members as models see them.

use std::cmp::Reverse;

use serde_json::{Value, json};

use crate::{
    board::{Board, Task, TaskStatus},
    state::TeamState,
};

/// A task, and what blocks it.
pub(super) fn task(board: &Board, task: &Task) -> Value {
    let blocked_by: Vec<_> = board.blocked_by(task).collect();
    let mut view = json!({
        "task_id": task.id,
        "title": task.title,
        "status": task.status.as_str(),
        "priority": task.priority,
        "is_blocked": !blocked_by.is_empty() && task.status == TaskStatus::Pending,
        "deliverable_path": task.deliverable_path,
    });
    let mut set = |name: &str, value: Value| {
        let is_empty = value.is_null() || value.as_str() == Some("") || value.as_array().is_some_and(Vec::is_empty);
        if !is_empty {
            view[name] = value;
        }
    };
    set("description", json!(task.description));
    set("dependencies", json!(task.dependencies));
    set("blocked_by", json!(blocked_by));
    set("assignee_agent_id", json!(task.owner));
    set("result_summary", json!(task.result));
    let notes: Vec<_> = task.claims.iter().filter_map(|claim| claim.released.as_deref()).collect();
    set("notes", json!(notes));
    view
}

/// The tasks with this status, those of the highest priority first. Whether a task is blocked is
/// computed from the whole board.
pub(super) fn tasks(state: &TeamState, status: Option<TaskStatus>) -> Value {
    let mut tasks: Vec<_> = state.board().tasks().filter(|task| status.is_none_or(|s| s == task.status)).collect();
    tasks.sort_by_key(|task| Reverse(task.priority));
    json!({"tasks": tasks.into_iter().map(|one| task(state.board(), one)).collect::<Vec<_>>()})
}

/// All members that were not removed; `you` marks the one that asks.
pub(super) fn teammates(state: &TeamState, you: &str) -> Value {
    let active = state.members().filter(|member| !member.removed);
    let views = active.map(|member| {
        let task = state.board().in_progress_of(&member.id).map(|task| task.id.as_str());
        // The one that asks is running, whatever else it is.
        let mut view = json!({"agent_id": member.id, "role_name": member.role, "status": member.status().as_str()});
        if let Some(task) = task {
            view["task_id"] = json!(task);
        }
        if *member.id == *you {
            view["you"] = json!(true);
        }
        view
    });
    json!({"teammates": views.collect::<Vec<_>>()})
}
