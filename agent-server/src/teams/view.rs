//! State of a team's session in the form for clients.

use std::sync::Arc;

use agent::{
    Usage,
    team::{MemberInfo, Task, TaskStatus, TeamEndReason, TeamQuestion, TeamState},
};
use serde::Serialize;

/// State of a team's session.
#[derive(Debug, Serialize)]
pub(super) struct TeamView {
    pub(super) team: String,
    pub(super) session: Arc<str>,
    pub(super) run: Option<Arc<str>>,
    /// `running`, `waiting`, `suspended`, or the reason of the end.
    pub(super) status: &'static str,
    /// Error of a run that failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) error: Option<String>,
    /// Name of the pattern, if the team runs one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) pattern: Option<String>,
    /// Result of the run, or the leader's last text.
    pub(super) text: String,
    pub(super) tasks: Vec<TaskView>,
    pub(super) members: Vec<MemberInfo>,
    pub(super) questions: Vec<TeamQuestion>,
    /// Members that wait, each with what it waits for.
    pub(super) waits: Vec<Wait>,
    pub(super) rounds: u32,
    pub(super) usage: Usage,
}

/// A task, with the open tasks that it depends on.
#[derive(Debug, Serialize)]
pub(super) struct TaskView {
    #[serde(flatten)]
    pub(super) task: Task,
    pub(super) is_blocked: bool,
}

/// A member or a task that waits.
#[derive(Debug, PartialEq, Serialize)]
pub(super) struct Wait {
    /// Id of the member or task that waits.
    pub(super) waiting: String,
    /// Id of the task, or `user`.
    pub(super) on: String,
    pub(super) why: String,
}

impl TeamView {
    /// Describes a state. `is_live` says whether the run is active in this process.
    pub(super) fn new(team: &str, session: Arc<str>, state: &TeamState, is_live: bool) -> Self {
        let questions = state.questions();
        let status = match state.reason() {
            Some(reason) => reason.as_str(),
            None if state.run().is_none() => "new",
            None if is_live => "running",
            None if !questions.is_empty() => "waiting",
            None => "suspended",
        };
        let error = match state.reason() {
            Some(TeamEndReason::Failed(error)) => Some(error.clone()),
            _ => None,
        };
        Self {
            team: team.to_owned(),
            session,
            run: state.run().cloned(),
            status,
            error,
            pattern: state.pattern().map(str::to_owned),
            text: state.text(),
            tasks: tasks(state, None),
            members: state.member_infos(),
            waits: waits(state, &questions),
            questions,
            rounds: state.rounds(),
            usage: state.usage(),
        }
    }
}

/// The tasks of the board with this status.
pub(super) fn tasks(state: &TeamState, status: Option<TaskStatus>) -> Vec<TaskView> {
    let board = state.board();
    let wanted = board.tasks().filter(|task| status.is_none_or(|status| task.status == status));
    wanted.map(|task| TaskView { task: task.clone(), is_blocked: board.blocked_by(task).next().is_some() }).collect()
}

fn waits(state: &TeamState, questions: &[TeamQuestion]) -> Vec<Wait> {
    let of_members = questions.iter().map(|asked| Wait {
        waiting: asked.member.to_string(),
        on: "user".to_owned(),
        why: format!("asks a question ({})", asked.question.kind),
    });
    let board = state.board();
    let of_tasks = board.open().flat_map(|task| {
        board.blocked_by(task).map(|on| Wait {
            waiting: task.id.clone(),
            on: on.to_owned(),
            why: "depends on it".to_owned(),
        })
    });
    of_members.chain(of_tasks).collect()
}
