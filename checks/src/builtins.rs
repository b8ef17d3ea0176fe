//! Built-in middlewares in typical configurations, all idle.

use agent::{
    AgentBuilder, Budget, Caps, Flow,
    middleware::{
        Approval, ContextCompaction, Delegation, Events, Limits, Logging, LongToolOutput, PatchToolCalls,
        PromptCaching, Reminders, RuntimeEnvironment, Telemetry, TodoList, ToolErrors, ToolRetry, after_model_fn,
        after_tool_fn, before_model_fn, before_tool_fn,
    },
};

/// Adds a middleware to an agent.
pub type Add = fn(AgentBuilder) -> AgentBuilder;

/// Limit that no run reaches.
const MUCH: u64 = u64::MAX / 4;

/// The first ten are those that most agents have: a budget and limits far from exhausted, events
/// without a sink, logging and telemetry without a subscriber, a compaction below its threshold, a
/// rule for another tool.
pub const BUILTINS: [(&str, Add); 20] = [
    ("Budget", |agent| agent.budget(Budget::new(Caps::default().tokens(MUCH).model_calls(MUCH)))),
    ("PatchToolCalls", |agent| agent.middleware(PatchToolCalls::new())),
    ("Events", |agent| agent.middleware(Events::new())),
    ("Logging", |agent| agent.middleware(Logging::new())),
    ("Limits", |agent| agent.middleware(Limits::new().model_calls(u32::MAX))),
    ("ContextCompaction", |agent| agent.middleware(ContextCompaction::new())),
    ("LongToolOutput", |agent| agent.middleware(LongToolOutput::new())),
    ("Approval", |agent| agent.middleware(Approval::new().ask("send_mail"))),
    ("ToolRetry", |agent| agent.middleware(ToolRetry::new())),
    ("Telemetry", |agent| agent.middleware(Telemetry::new())),
    ("RuntimeEnvironment", |agent| agent.middleware(RuntimeEnvironment::new())),
    ("TodoList", |agent| agent.middleware(TodoList::new())),
    ("ToolErrors", |agent| agent.middleware(ToolErrors::new(|_, _| None))),
    ("Delegation", |agent| agent.middleware(Delegation::new())),
    ("before_model_fn", |agent| agent.middleware(before_model_fn("a", |_, _| Ok(Flow::Continue)))),
    ("after_model_fn", |agent| agent.middleware(after_model_fn("b", |_, _| Ok(())))),
    ("before_tool_fn", |agent| agent.middleware(before_tool_fn("c", |_, _| Ok(Flow::Continue)))),
    ("after_tool_fn", |agent| agent.middleware(after_tool_fn("d", |_, _, _| Ok(())))),
    ("PromptCaching", |agent| agent.middleware(PromptCaching::new())),
    ("Reminders", |agent| agent.middleware(Reminders::new())),
];

/// Adds the first `count` of them to an agent.
pub fn with(agent: AgentBuilder, count: usize) -> AgentBuilder {
    BUILTINS[..count].iter().fold(agent, |agent, (_, add)| add(agent))
}
