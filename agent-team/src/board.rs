//! The task board.

use std::{collections::BTreeMap, sync::Arc};

use serde::{Deserialize, Serialize};

use crate::refusal::Refused;

/// Status of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum TaskStatus {
    /// Nobody works on the task.
    Pending,
    /// The owner works on the task.
    InProgress,
    /// The task is done.
    Completed,
}

impl TaskStatus {
    /// `pending`, `in_progress` or `completed`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::InProgress => "in_progress",
            Self::Completed => "completed",
        }
    }

    /// Parses the name that [`as_str`](Self::as_str) returns.
    pub fn parse(name: &str) -> Option<Self> {
        [Self::Pending, Self::InProgress, Self::Completed].into_iter().find(|status| status.as_str() == name)
    }
}

/// One claim in a task's history.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Claim {
    /// Member that claimed the task.
    pub member: Arc<str>,
    /// Time of the claim, in milliseconds since 1970, UTC.
    pub since: u64,
    /// Expiry of the claim's lease; `None` if claims do not expire.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<u64>,
    /// Reason for which the task returned to the board; `None` if it did not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub released: Option<String>,
}

/// A task of the board.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Task {
    /// Id, such as `T-001`.
    pub id: String,
    /// Title.
    pub title: String,
    /// Description for the member that works on the task.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// Priority; tasks with a higher one are listed first.
    pub priority: i64,
    /// Ids of the tasks that must be completed before this one can be claimed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dependencies: Vec<String>,
    /// Status.
    pub status: TaskStatus,
    /// Member that works on the task, or that completed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<Arc<str>>,
    /// Summary of the result, given at completion.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<String>,
    /// Path of the file for the task's deliverable.
    pub deliverable_path: String,
    /// Deadline, in milliseconds since 1970, UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<u64>,
    /// True once the leader was notified that the deadline passed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub overdue: bool,
    /// All claims, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub claims: Vec<Claim>,
}

/// Content of a new task.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct NewTask {
    /// Id; by default the next number.
    #[serde(default)]
    pub(crate) id: Option<String>,
    pub(crate) title: String,
    #[serde(default)]
    pub(crate) description: String,
    #[serde(default)]
    pub(crate) priority: i64,
    #[serde(default)]
    pub(crate) dependencies: Vec<String>,
    /// Time until the deadline, in milliseconds.
    #[serde(default)]
    pub(crate) time_limit: Option<u64>,
}

/// The task board: all tasks of a team, by id.
///
/// A task is claimed by one member at a time, a member works on one task at a time, and a task
/// cannot be claimed before its dependencies are completed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Board {
    tasks: BTreeMap<String, Task>,
    /// The last number that an id was made from.
    created: u64,
}

impl Board {
    /// Returns the task with this id.
    pub fn get(&self, id: &str) -> Option<&Task> {
        self.tasks.get(id)
    }

    /// All tasks, by id.
    pub fn tasks(&self) -> impl Iterator<Item = &Task> {
        self.tasks.values()
    }

    /// True if there are no tasks.
    pub fn is_empty(&self) -> bool {
        self.tasks.is_empty()
    }

    /// The tasks that are not completed, by id.
    pub fn open(&self) -> impl Iterator<Item = &Task> {
        self.tasks().filter(|task| task.status != TaskStatus::Completed)
    }

    /// Ids of the dependencies of a task that are not completed.
    pub fn blocked_by<'a>(&'a self, task: &'a Task) -> impl Iterator<Item = &'a str> {
        let is_open = |id: &&String| self.get(id).is_none_or(|task| task.status != TaskStatus::Completed);
        task.dependencies.iter().filter(is_open).map(String::as_str)
    }

    /// The task that a member works on.
    pub fn in_progress_of(&self, member: &str) -> Option<&Task> {
        self.tasks().find(|task| task.status == TaskStatus::InProgress && task.owner.as_deref() == Some(member))
    }

    pub(crate) fn create(&mut self, new: NewTask, folder: &str, time: u64) -> Result<&Task, Refused> {
        if new.title.trim().is_empty() {
            return Err(Refused::invalid("a task needs a title"));
        }
        let mut dependencies: Vec<String> = Vec::new();
        for id in new.dependencies {
            self.find(&id)?;
            if !dependencies.contains(&id) {
                dependencies.push(id);
            }
        }
        let id = match new.id {
            Some(id) if id.trim().is_empty() => return Err(Refused::invalid("the id of the task is empty")),
            Some(id) if self.tasks.contains_key(&id) => {
                return Err(Refused::conflict(format!("there is a task {id} already")));
            }
            Some(id) => id,
            None => self.next_id(),
        };
        let task = Task {
            deliverable_path: format!("{folder}/{id}-{}.md", slug(&new.title)),
            title: new.title,
            description: new.description,
            priority: new.priority,
            dependencies,
            status: TaskStatus::Pending,
            owner: None,
            result: None,
            deadline: new.time_limit.map(|limit| time.saturating_add(limit)),
            overdue: false,
            claims: Vec::new(),
            id: id.clone(),
        };
        Ok(self.tasks.entry(id).or_insert(task))
    }

    /// Returns an id that no task has, and never had.
    fn next_id(&mut self) -> String {
        loop {
            self.created += 1;
            let id = format!("T-{:03}", self.created);
            if !self.tasks.contains_key(&id) {
                return id;
            }
        }
    }

    pub(crate) fn claim(&mut self, id: &str, member: &Arc<str>, time: u64, lease: Option<u64>) -> Result<(), Refused> {
        let task = self.find(id)?;
        match (task.status, &task.owner) {
            (TaskStatus::Pending, _) => {}
            (TaskStatus::InProgress, Some(owner)) if owner == member => {
                return Err(Refused::conflict(format!("{member} already works on task {id}")));
            }
            (TaskStatus::InProgress, owner) => {
                let owner = owner.as_deref().unwrap_or("another member");
                return Err(Refused::conflict(format!("task {id} is already claimed by {owner}")));
            }
            (TaskStatus::Completed, _) => return Err(Refused::conflict(format!("task {id} is completed"))),
        }
        let blocking: Vec<_> = self.blocked_by(task).collect();
        if !blocking.is_empty() {
            let blocking = blocking.join(", ");
            return Err(Refused::conflict(format!("task {id} is blocked: its dependencies are open: {blocking}")));
        }
        if let Some(other) = self.in_progress_of(member) {
            let other = &other.id;
            return Err(Refused::conflict(format!(
                "{member} already works on task {other}: complete it or release it first"
            )));
        }
        let task = self.find_mut(id)?;
        (task.status, task.owner) = (TaskStatus::InProgress, Some(member.clone()));
        let until = lease.map(|lease| time.saturating_add(lease));
        task.claims.push(Claim { member: member.clone(), since: time, until, released: None });
        Ok(())
    }

    pub(crate) fn complete(&mut self, id: &str, result: Option<String>) -> Result<(), Refused> {
        let task = self.find_mut(id)?;
        if task.status != TaskStatus::InProgress {
            let status = task.status.as_str();
            return Err(Refused::conflict(format!("task {id} is {status}: claim a task before you complete it")));
        }
        (task.status, task.result) = (TaskStatus::Completed, result);
        Ok(())
    }

    /// Returns a task in progress to the board.
    pub(crate) fn release(&mut self, id: &str, note: &str) -> Result<(), Refused> {
        let task = self.find_mut(id)?;
        if task.status != TaskStatus::InProgress {
            let status = task.status.as_str();
            return Err(Refused::conflict(format!("task {id} is {status}: nothing to release")));
        }
        (task.status, task.owner) = (TaskStatus::Pending, None);
        if let Some(claim) = task.claims.last_mut() {
            claim.released = Some(note.to_owned());
        }
        Ok(())
    }

    /// Extends the lease of a member's claim.
    pub(crate) fn renew(&mut self, member: &str, until: u64) {
        let owned = |task: &&mut Task| task.status == TaskStatus::InProgress && task.owner.as_deref() == Some(member);
        for task in self.tasks.values_mut().filter(owned) {
            if let Some(claim) = task.claims.last_mut() {
                claim.until = claim.until.map(|_| until);
            }
        }
    }

    pub(crate) fn set_overdue(&mut self, id: &str) {
        if let Some(task) = self.tasks.get_mut(id) {
            task.overdue = true;
        }
    }

    pub(crate) fn find(&self, id: &str) -> Result<&Task, Refused> {
        self.tasks.get(id).ok_or_else(|| self.unknown(id))
    }

    fn find_mut(&mut self, id: &str) -> Result<&mut Task, Refused> {
        let unknown = self.unknown(id);
        self.tasks.get_mut(id).ok_or(unknown)
    }

    fn unknown(&self, id: &str) -> Refused {
        let known: Vec<_> = self.tasks.keys().map(String::as_str).collect();
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        Refused::not_found(format!("unknown task '{id}'; tasks: {known}"))
    }
}

/// Returns the title in lower case, with hyphens in place of other characters, at most 40 bytes.
fn slug(title: &str) -> String {
    let mut slug = String::new();
    for c in title.chars() {
        match c {
            c if c.is_ascii_alphanumeric() => slug.push(c.to_ascii_lowercase()),
            _ if !slug.is_empty() && !slug.ends_with('-') => slug.push('-'),
            _ => {}
        }
        if slug.len() >= 40 {
            break;
        }
    }
    let slug = slug.trim_end_matches('-');
    if slug.is_empty() { "task".to_owned() } else { slug.to_owned() }
}
