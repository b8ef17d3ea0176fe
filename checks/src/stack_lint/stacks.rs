//! Misconfigured agents.

use agent::{
    Agent, AgentBuilder, Middleware, StateField, StateSchema, Tool, ToolOptions, ToolOutput, ToolRequest, async_trait,
    core::{ModelInfo, Placement, Result, ToolSpec},
    middleware::{
        Approval, Breakpoints, ContextCompaction, Delegation, Limits, LongToolOutput, PatchToolCalls, PromptCaching,
        Reminders, RuntimeEnvironment, TodoList, ToolErrors, ToolRetry,
    },
    testing::ScriptedModel,
};
use serde_json::json;

/// Misconfigured agent.
pub(crate) struct Bad {
    /// Description of the fault.
    pub(crate) name: &'static str,
    pub(crate) stack: fn() -> AgentBuilder,
    /// Text that the error must contain.
    pub(crate) fix: &'static str,
}

pub(crate) fn all() -> Vec<Bad> {
    let bad = |name, stack, fix| Bad { name, stack, fix };
    vec![
        bad(
            "prompts are marked for the cache and compacted afterwards",
            || agent().middleware(PromptCaching::new()).middleware(ContextCompaction::new()),
            "register it after 'context_compaction'",
        ),
        bad(
            "the environment comes after the mark for the cache",
            || agent().middleware(PromptCaching::new()).middleware(RuntimeEnvironment::new()),
            "register it after 'runtime_environment'",
        ),
        bad(
            "the list of todos comes after the mark for the cache",
            || agent().middleware(PromptCaching::new()).middleware(TodoList::new()),
            "register it after 'todo_list'",
        ),
        bad(
            "a reminder, another one each time, is what the cache keeps",
            || agent().middleware(Reminders::new().steps(20)).middleware(PromptCaching::new()),
            "register it after 'prompt_caching'",
        ),
        bad(
            "a reminder is counted as conversation",
            || agent().middleware(Reminders::new().steps(20)).middleware(ContextCompaction::new()),
            "register it after 'context_compaction'",
        ),
        bad(
            "people approve calls that are refused afterwards",
            || agent().middleware(Approval::new().ask("*")).middleware(Limits::new().tool_calls(10)),
            "register it before 'approval'",
        ),
        bad(
            "people are asked again for each try",
            || agent().middleware(ToolRetry::new()).middleware(Approval::new().ask("*")),
            "register it after 'approval'",
        ),
        bad(
            "an error in other words is not tried again",
            || agent().middleware(ToolRetry::new()).middleware(ToolErrors::new(|_, _| Some("Sorry.".to_owned()))),
            "register it before 'tool_retry'",
        ),
        bad(
            "a breakpoint stops after the history was compacted",
            || agent().middleware(ContextCompaction::new()).middleware(Breakpoints::new().before_model(1)),
            "register it before 'context_compaction'",
        ),
        bad(
            "what is compacted is not patched yet",
            || agent().middleware(ContextCompaction::new()).middleware(PatchToolCalls::new()),
            "register it before 'context_compaction'",
        ),
        bad(
            "two compactions compact each other's summaries",
            || agent().middleware(ContextCompaction::new()).middleware(ContextCompaction::new()),
            "it may be there once: remove one",
        ),
        bad(
            "long outputs are cut twice",
            || agent().middleware(LongToolOutput::new()).middleware(LongToolOutput::new()),
            "it may be there once: remove one",
        ),
        bad(
            "a middleware needs another that is not there",
            || agent().middleware(Placed("audit", Placement::default().requires("approval"))),
            "requires 'approval', which is not there: add it",
        ),
        bad(
            "two middlewares do the same in different ways",
            || {
                let own = Placed("own_compaction", Placement::default().conflicts("context_compaction"));
                agent().middleware(own).middleware(ContextCompaction::new())
            },
            "conflicts with 'context_compaction': remove one of them",
        ),
        bad(
            "two tools have one name",
            || agent().tool(Named("search", ToolOptions::default())).tool(Named("search", ToolOptions::default())),
            "rename one, or prefix its tool set",
        ),
        bad(
            "two sub-agents have one key",
            || {
                let helper = || Agent::builder("helper", ScriptedModel::new([])).build().expect("is sound");
                let delegation =
                    Delegation::new().to("helper", "Helps.", helper()).to("helper", "Helps too.", helper());
                agent().middleware(delegation)
            },
            "two sub-agents have the key 'helper': rename one",
        ),
        bad(
            "the run is to end with a tool that there is not",
            || agent().tool(Named("search", ToolOptions::default())).exit_on(["submit"]),
            "valid: text, search",
        ),
        bad(
            "a model that takes no tools is given some",
            || {
                let model = ScriptedModel::new([]).with_info(ModelInfo::new("old").without_tools());
                Agent::builder("lint", model).tool(Named("search", ToolOptions::default()))
            },
            "remove them or use another model",
        ),
        bad(
            "a tool writes state that nobody declared",
            || {
                let schema = StateSchema::default().key("notes", StateField::of::<Vec<String>>());
                agent().state(schema).tool(Named("search", ToolOptions::default().writes("note", None)))
            },
            "or name one of those that are: notes",
        ),
        bad(
            "an argument is given that is the framework's",
            || agent().tool(Named("search", ToolOptions::default().arg("state", "x"))),
            "which is reserved; choose another name",
        ),
    ]
}

fn agent() -> AgentBuilder {
    Agent::builder("lint", ScriptedModel::new([]))
}

/// Middleware with a placement and no function.
struct Placed(&'static str, Placement);

#[async_trait]
impl Middleware for Placed {
    fn name(&self) -> &str {
        self.0
    }

    fn placement(&self) -> Placement {
        self.1.clone()
    }
}

/// Tool of this name.
struct Named(&'static str, ToolOptions);

#[async_trait]
impl Tool for Named {
    fn spec(&self) -> ToolSpec {
        ToolSpec::new(self.0, "", json!({"type": "object", "properties": {"state": {"type": "string"}}}))
    }

    fn options(&self) -> ToolOptions {
        self.1.clone()
    }

    async fn call(&self, _: ToolRequest) -> Result<ToolOutput> {
        Ok(ToolOutput::text("nothing"))
    }
}
