//! The tools of a team: eleven for the leader, seven for the other members.

mod calls;
mod views;

use std::{collections::BTreeMap, fmt, sync::Arc};

use agent_core::{Effect, Error, Result, Tool, ToolOptions, ToolOutput, ToolRequest, ToolSpec, async_trait};
use serde_json::{Value, json};

use crate::{
    command::{Command, Reply},
    log::{Author, TeamLog},
    mail::Actor,
};

/// Name of the tool that ends the team.
pub(crate) const FINISH: &str = "finish_team";

/// The member whose run calls the tools: a resource of the run.
pub(crate) struct Seat {
    pub(crate) log: Arc<TeamLog>,
    pub(crate) member: Arc<str>,
    pub(crate) run: Arc<str>,
}

impl Seat {
    /// Submits a command of the member. A call that is resumed after a crash has the same key, so the
    /// command takes effect once.
    async fn submit(&self, req: &ToolRequest, command: Command) -> Result<Reply> {
        let by = Actor::Member(self.member.clone());
        let author = Author { by, turn: Some(self.run.clone()), key: Some(req.idempotency_key()) };
        self.log.submit(author, command).await?.map_err(|refused| Error::tool(refused.message))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    SpawnTeammate,
    RemoveTeammate,
    CreateTask,
    FinishTeam,
    ClaimTask,
    UpdateTaskStatus,
    ReleaseTask,
    ListTasks,
    ListTeammates,
    Message,
    Broadcast,
}

/// One tool of a team. The member that calls it is a resource of the run.
#[derive(Clone)]
pub(crate) struct TeamTool {
    kind: Kind,
    /// Descriptions of the roles that can be spawned, by name.
    roles: Arc<BTreeMap<String, String>>,
}

impl TeamTool {
    /// The tools of the leader.
    pub(crate) fn of_leader(roles: &BTreeMap<String, String>) -> Vec<Arc<dyn Tool>> {
        let only_leader = [Kind::SpawnTeammate, Kind::RemoveTeammate, Kind::CreateTask, Kind::FinishTeam];
        Self::all(only_leader.into_iter().chain(MEMBER), roles)
    }

    /// The tools of the other members.
    pub(crate) fn of_member() -> Vec<Arc<dyn Tool>> {
        Self::all(MEMBER, &BTreeMap::new())
    }

    fn all(kinds: impl IntoIterator<Item = Kind>, roles: &BTreeMap<String, String>) -> Vec<Arc<dyn Tool>> {
        let roles = Arc::new(roles.clone());
        kinds.into_iter().map(|kind| Arc::new(Self { kind, roles: roles.clone() }) as Arc<dyn Tool>).collect()
    }
}

const MEMBER: [Kind; 7] = [
    Kind::ClaimTask,
    Kind::UpdateTaskStatus,
    Kind::ReleaseTask,
    Kind::ListTasks,
    Kind::ListTeammates,
    Kind::Message,
    Kind::Broadcast,
];

#[async_trait]
impl Tool for TeamTool {
    fn spec(&self) -> ToolSpec {
        let object = |properties: Value, required: &[&str]| json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false});
        let task_id = || json!({"type": "string", "description": "Id of the task, such as T-001."});
        let statuses = || json!(["pending", "in_progress", "completed"]);
        match self.kind {
            Kind::SpawnTeammate => {
                let names: Vec<_> = self.roles.keys().collect();
                let roles = self.roles.iter().map(|(name, text)| match text.is_empty() {
                    true => format!("\n- {name}"),
                    false => format!("\n- {name}: {text}"),
                });
                let roles: String = roles.collect();
                let role = json!({"type": "string", "enum": names, "description": "Role of the new teammate."});
                ToolSpec::new(
                    "spawn_teammate",
                    format!(
                        "Adds a teammate of a role and returns its agent id. It waits until you send it a message or \
                         assign it a task. Roles:{roles}"
                    ),
                    object(json!({"role_name": role}), &["role_name"]),
                )
            }
            Kind::RemoveTeammate => {
                let id = json!({"type": "string", "description": "Agent id of an idle teammate."});
                let text = "Removes an idle teammate. Its task returns to the board.";
                ToolSpec::new("remove_teammate", text, object(json!({"agent_id": id}), &["agent_id"]))
            }
            Kind::CreateTask => {
                let properties = json!({
                    "title": {"type": "string", "description": "Short title of the task."},
                    "description": {"type": "string", "description": "What has to be done, and what counts as done."},
                    "priority": {"type": "integer", "description": "Higher numbers come first. Default: 0."},
                    "dependencies": {
                        "type": "array",
                        "items": {"type": "string"},
                        "description": "Ids of the tasks that must be completed before this one can be claimed."
                    },
                    "task_id": {"type": "string", "description": "Id of the task. Default: the next number, such as T-001."},
                    "time_limit_seconds": {
                        "type": "integer",
                        "minimum": 1,
                        "description": "Seconds after which you are notified if the task is still open. Default: never."
                    }
                });
                let text = "Creates a task on the board, with the path of the file for its deliverable.";
                ToolSpec::new("create_task", text, object(properties, &["title"]))
            }
            Kind::FinishTeam => {
                let properties = json!({
                    "summary": {"type": "string", "description": "What the team did and what came of it."},
                    "force": {"type": "boolean", "description": "Give up open tasks. Default: false."}
                });
                let text = "Ends the work of the whole team. Refused while tasks are open, unless force is set.";
                ToolSpec::new(FINISH, text, object(properties, &["summary"]))
            }
            Kind::ClaimTask => {
                let assignee = "Agent id of the teammate that gets the task. Default: you. Only the leader assigns tasks \
                                to others, who then receive a message.";
                let properties =
                    json!({"task_id": task_id(), "assignee_agent_id": {"type": "string", "description": assignee}});
                let text =
                    "Claims a pending task whose dependencies are completed. Each agent works on one task at a time.";
                ToolSpec::new("claim_task", text, object(properties, &["task_id"]))
            }
            Kind::UpdateTaskStatus => {
                let properties = json!({
                    "task_id": task_id(),
                    "status": {"type": "string", "enum": statuses(), "description": "New status of the task."},
                    "result_summary": {"type": "string", "description": "Summary of the result of a completed task."}
                });
                let text = "Changes the status of a task: in_progress claims it, completed ends it, pending returns it \
                            to the board.";
                ToolSpec::new("update_task_status", text, object(properties, &["task_id", "status"]))
            }
            Kind::ReleaseTask => {
                let text = "Returns a task that you cannot complete to the board.";
                ToolSpec::new("release_task", text, object(json!({"task_id": task_id()}), &["task_id"]))
            }
            Kind::ListTasks => {
                let status =
                    json!({"type": "string", "enum": statuses(), "description": "Only tasks with this status."});
                let text = "Lists the tasks of the board with their owners, and what blocks them.";
                ToolSpec::new("list_tasks", text, object(json!({"status": status}), &[]))
            }
            Kind::ListTeammates => {
                let text = "Lists all agents of the team with their roles and what they are doing.";
                ToolSpec::new("list_teammates", text, object(json!({}), &[]))
            }
            Kind::Message => {
                let properties = json!({
                    "to_agent_id": {"type": "string", "description": "Agent id of the recipient."},
                    "content": {"type": "string", "description": "The message."}
                });
                let text = "Sends a message to one agent, which reads it in its next turn. An answer comes as a message \
                            to you, in a later turn: end your turn if you have to wait for it.";
                ToolSpec::new("message", text, object(properties, &["to_agent_id", "content"]))
            }
            Kind::Broadcast => {
                let content = json!({"type": "string", "description": "The message."});
                let text = "Sends a message to all other agents of the team.";
                ToolSpec::new("broadcast", text, object(json!({"content": content}), &["content"]))
            }
        }
    }

    fn options(&self) -> ToolOptions {
        let effect = match self.kind {
            Kind::ListTasks | Kind::ListTeammates => Effect::Pure,
            _ => Effect::Idempotent,
        };
        // Calls of one message take effect in their order.
        ToolOptions::default().effect(effect).serial()
    }

    async fn call(&self, req: ToolRequest) -> Result<ToolOutput> {
        let seat =
            req.cx.resources().get::<Seat>().map_err(|_| {
                Error::tool("this tool belongs to a team, and works only in a run that the team started")
            })?;
        self.run(&seat, &req).await.map(ToolOutput::value)
    }
}

impl fmt::Debug for TeamTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("TeamTool").field(&self.kind).finish()
    }
}
