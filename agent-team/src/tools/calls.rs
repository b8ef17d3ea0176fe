//! Calls of the team tools.

use std::sync::Arc;

use agent_core::{Error, Part, Result, ToolRequest};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{FINISH, Kind, Seat, TeamTool, views};
use crate::{
    board::{NewTask, TaskStatus},
    command::{Command, Reply},
};

/// The arguments of all team tools. The schema of each tool requires and allows its own.
#[derive(Deserialize)]
struct Arguments {
    role_name: Option<String>,
    agent_id: Option<Arc<str>>,
    title: Option<String>,
    #[serde(default)]
    description: String,
    #[serde(default)]
    priority: i64,
    #[serde(default)]
    dependencies: Vec<String>,
    task_id: Option<String>,
    time_limit_seconds: Option<u64>,
    summary: Option<String>,
    #[serde(default)]
    force: bool,
    assignee_agent_id: Option<Arc<str>>,
    status: Option<String>,
    result_summary: Option<String>,
    to_agent_id: Option<Arc<str>>,
    content: Option<String>,
}

impl TeamTool {
    pub(super) async fn run(&self, seat: &Seat, req: &ToolRequest) -> Result<Value> {
        let args: Arguments = req.parse()?;
        let status = args.status.as_deref().map(parse_status).transpose()?;
        let command = match self.kind {
            Kind::ListTasks => {
                seat.log.catch_up().await?;
                return Ok(seat.log.look(|state| views::tasks(state, status)));
            }
            Kind::ListTeammates => {
                seat.log.catch_up().await?;
                return Ok(seat.log.look(|state| views::teammates(state, &seat.member)));
            }
            Kind::SpawnTeammate => Command::Spawn { role: given(args.role_name, "role_name")? },
            Kind::RemoveTeammate => Command::Remove { member: given(args.agent_id, "agent_id")? },
            Kind::CreateTask => Command::CreateTask(NewTask {
                id: args.task_id,
                title: given(args.title, "title")?,
                description: args.description,
                priority: args.priority,
                dependencies: args.dependencies,
                time_limit: args.time_limit_seconds.map(|seconds| seconds.saturating_mul(1000)),
            }),
            Kind::FinishTeam => Command::Finish { summary: given(args.summary, "summary")?, force: args.force },
            Kind::ClaimTask => {
                Command::ClaimTask { task: given(args.task_id, "task_id")?, assignee: args.assignee_agent_id }
            }
            Kind::UpdateTaskStatus => Command::UpdateTask {
                task: given(args.task_id, "task_id")?,
                status: given(status, "status")?,
                result: args.result_summary,
            },
            Kind::ReleaseTask => Command::ReleaseTask { task: given(args.task_id, "task_id")? },
            Kind::Message => {
                let parts = vec![Part::text(given(args.content, "content")?)];
                Command::Message { to: given(args.to_agent_id, "to_agent_id")?, parts }
            }
            Kind::Broadcast => Command::Broadcast { parts: vec![Part::text(given(args.content, "content")?)] },
        };
        let reply = seat.submit(req, command).await?;
        if self.kind == Kind::FinishTeam {
            req.cx.stop(FINISH);
        }
        Ok(seat.log.look(|state| match reply {
            Reply::Done | Reply::Turn(_) => json!("done"),
            Reply::Spawned(agent_id) => json!({"agent_id": agent_id}),
            Reply::Task(task) => views::task(state.board(), &task),
            Reply::Sent(number, recipients) => json!({"message_id": number, "recipients": recipients}),
        }))
    }
}

/// Returns an argument that the schema requires.
fn given<T>(value: Option<T>, name: &str) -> Result<T> {
    value.ok_or_else(|| Error::tool(format!("the argument '{name}' is missing")))
}

fn parse_status(name: &str) -> Result<TaskStatus> {
    let unknown = || Error::tool(format!("unknown status '{name}'; statuses: pending, in_progress, completed"));
    TaskStatus::parse(name).ok_or_else(unknown)
}
