//! [`TodoList`]: a plan that the model maintains.

use std::{fmt::Write, sync::Arc};

use agent_core::{
    Effect, EventKind, Flow, Message, Middleware, ModelRequest, ModelResponse, Part, Placement, Result, RunCx, RunEnd,
    SystemMessage, Tool, ToolBatch, ToolOptions, ToolOutput, ToolRequest, ToolSpec,
};
use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::run_value::RunValue;

const TOOL: &str = "write_todos";
const TODOS: RunValue<Vec<Todo>> = RunValue::new("todo_list", "todos");

const PROMPT: &str = "You keep a list of todos with the tool `write_todos`. Write one before work that takes three steps or \
more, keep exactly one todo in progress, and mark each as completed as soon as it is. Work of a step or two needs no list.";

/// Configuration of `TodoList`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct TodoListConfig {
    /// Instructions in the system prompt; empty for none. Default: when to write a list and how to
    /// maintain it.
    pub prompt: String,
}

impl Default for TodoListConfig {
    fn default() -> Self {
        Self { prompt: PROMPT.into() }
    }
}

/// A task of the list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Todo {
    /// Description of the task.
    pub content: String,
    /// Status of the task.
    pub status: TodoStatus,
}

/// Status of a [`Todo`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum TodoStatus {
    /// Not started.
    Pending,
    /// In progress.
    InProgress,
    /// Completed.
    Completed,
}

/// Gives the model a todo list: a tool that replaces the whole list, and instructions on when to
/// use it.
///
/// The list belongs to the run and survives a pause and a restart. The model sees it as its own
/// tool call; if compaction removed that from the conversation, the list is the last message of
/// each call, until it is written again. Each change is an event named `todos`, whose value is the
/// list. Two writes in one message would race, so both are refused.
///
/// # Order
///
/// Anywhere; outside `PromptCaching`, since it adds to the system prompt.
///
/// ```text
/// // right
/// builder.middleware(TodoList::new()).middleware(PromptCaching::new())
/// // wrong: the instructions come after the cache mark
/// builder.middleware(PromptCaching::new()).middleware(TodoList::new())
/// ```
#[derive(Clone, Debug, Default)]
pub struct TodoList {
    config: TodoListConfig,
}

impl TodoList {
    /// Creates a list with the default instructions.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the instructions in the system prompt; empty for none.
    #[must_use]
    pub fn prompt(mut self, prompt: impl Into<String>) -> Self {
        self.config.prompt = prompt.into();
        self
    }

    /// Returns the todos of a running run.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](agent_core::ErrorKind::Config) if another value is stored under the
    /// key.
    pub fn todos(cx: &RunCx) -> Result<Vec<Todo>> {
        TODOS.update(cx, |todos| todos.clone())
    }
}

impl From<TodoListConfig> for TodoList {
    fn from(config: TodoListConfig) -> Self {
        Self { config }
    }
}

#[async_trait]
impl Middleware for TodoList {
    fn name(&self) -> &str {
        "todo_list"
    }

    fn placement(&self) -> Placement {
        Placement::default().unique()
    }

    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        vec![Arc::new(WriteTodos)]
    }

    async fn before_model(&self, cx: &RunCx, req: &mut ModelRequest) -> Result<Flow<ModelResponse>> {
        let todos = Self::todos(cx)?;
        if !todos.is_empty() && !req.messages.iter().rev().any(is_written) {
            req.messages.push(Message::user(listed(&todos)))?;
        }
        if !self.config.prompt.is_empty() && req.tools.iter().any(|tool| tool.name == TOOL) {
            let system = req.system.get_or_insert_with(|| SystemMessage::new(Vec::new()));
            system.parts_mut().push(Part::text(self.config.prompt.as_str()));
        }
        Ok(Flow::Continue)
    }

    async fn before_tools(&self, _: &RunCx, batch: &mut ToolBatch) -> Result<()> {
        let writes = || batch.calls.iter().filter(|call| &*call.request.call.name == TOOL);
        if writes().count() > 1 {
            for call in batch.calls.iter_mut().filter(|call| &*call.request.call.name == TOOL) {
                call.answer(ToolOutput::error("Not run: write the whole list in one call, not in several at once."));
            }
        }
        Ok(())
    }

    async fn after_agent(&self, cx: &RunCx, end: &mut Result<RunEnd>) -> Result<()> {
        TODOS.end(cx, end);
        Ok(())
    }
}

/// True for the result of a write of the list.
fn is_written(message: &Message) -> bool {
    message.as_tool().is_some_and(|result| result.name() == TOOL && !result.is_error())
}

fn listed(todos: &[Todo]) -> String {
    let mut told = String::from("The list is now:");
    for todo in todos {
        let mark = match todo.status {
            TodoStatus::Pending => ' ',
            TodoStatus::InProgress => '~',
            TodoStatus::Completed => 'x',
        };
        let _ = write!(told, "\n[{mark}] {}", todo.content);
    }
    told
}

struct WriteTodos;

#[derive(Deserialize)]
struct List {
    todos: Vec<Todo>,
}

#[async_trait]
impl Tool for WriteTodos {
    fn spec(&self) -> ToolSpec {
        let todo = json!({
            "type": "object",
            "properties": {
                "content": {"type": "string", "description": "What is to be done."},
                "status": {"type": "string", "enum": ["pending", "in_progress", "completed"]},
            },
            "required": ["content", "status"],
        });
        let parameters = json!({
            "type": "object",
            "properties": {"todos": {"type": "array", "items": todo, "description": "The whole list, in order."}},
            "required": ["todos"],
        });
        ToolSpec::new(TOOL, "Writes the list of todos, in the place of the one before.", parameters)
    }

    fn options(&self) -> ToolOptions {
        ToolOptions::default().effect(Effect::Idempotent)
    }

    async fn call(&self, req: ToolRequest) -> Result<ToolOutput> {
        let List { todos } = req.parse()?;
        let told = listed(&todos);
        req.cx.emit(EventKind::Custom { name: "todos".into(), value: json!(todos) });
        TODOS.update(&req.cx, |kept| kept.clone_from(&todos))?;
        Ok(ToolOutput::text(told))
    }
}
