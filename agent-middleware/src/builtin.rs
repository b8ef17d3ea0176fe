//! [`Builtin`]: the middlewares of this crate by name, for applications that read agents from
//! files.

use std::sync::Arc;

use agent_core::{Error, Middleware, Model, Result, SubAgent};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::{
    Approval, AskParent, Breakpoints, ContextCompaction, Delegation, Events, Judge, Limits, Logging, LongToolOutput,
    PatchToolCalls, Pii, PromptCaching, PromptInjection, Reminders, RuntimeEnvironment, TodoList, ToolEmulator,
    ToolRetry, ToolSearch, ToolSelector,
    approval::ApprovalConfig,
    archive::SessionArchive,
    breakpoints::BreakpointsConfig,
    compaction::{CompactionConfig, LongToolOutputConfig},
    delegation::{AskParentConfig, DelegationConfig},
    limits::LimitsConfig,
    pii::PiiConfig,
    prompt::{PromptCachingConfig, RemindersConfig, RuntimeEnvironmentConfig, TodoListConfig},
    prompt_injection::PromptInjectionConfig,
    review::JudgeConfig,
    telemetry::{EventsConfig, LoggingConfig},
    tools::{PatchToolCallsConfig, ToolEmulatorConfig, ToolRetryConfig, ToolSearchConfig, ToolSelectorConfig},
};

/// A middleware of this crate that can be made from a configuration, and a model if it calls one.
///
/// Middlewares that need more are not included: `ChatHistory` and `LongTermMemory` need a store,
/// `Knowledge` a retriever, `Guardrails` guards, `Snapshots` and `ToolErrors` a function.
///
/// ```
/// use std::sync::Arc;
///
/// use agent_core::{Middleware, Model, testing::ScriptedModel};
/// use agent_middleware::Builtin;
/// use serde_json::json;
///
/// let model: Arc<dyn Model> = Arc::new(ScriptedModel::new([]));
/// let limits = Builtin::find("limits").expect("is there");
/// assert_eq!(limits.make(json!({"model_calls": 50}), &model, &[])?.name(), "limits");
///
/// let error = limits.make(json!({"modelcalls": 50}), &model, &[]).err().expect("a slip of the pen");
/// assert!(error.message().contains("unknown field `modelcalls`"));
/// # Ok::<(), agent_core::Error>(())
/// ```
#[derive(Clone, Copy)]
pub struct Builtin {
    name: &'static str,
    asks_model: bool,
    make: Make,
    #[cfg(feature = "schema")]
    schema: fn(&mut schemars::SchemaGenerator) -> schemars::Schema,
}

type Make = fn(Value, &Arc<dyn Model>, &[SubAgent]) -> Result<Arc<dyn Middleware>>;

impl Builtin {
    /// Returns all built-in middlewares, by name.
    pub fn all() -> &'static [Self] {
        ALL
    }

    /// Returns the middleware of this name.
    pub fn find(name: &str) -> Option<&'static Self> {
        ALL.iter().find(|builtin| builtin.name == name)
    }

    /// Returns its name in files, which is also its [`Middleware::name`].
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// True if [`make`](Self::make) uses a model.
    pub fn asks_model(&self) -> bool {
        self.asks_model
    }

    /// Makes the middleware from its configuration; null is an empty one. `model` judges, selects,
    /// reads or summarises on behalf of the middleware, if it needs a model: usually the agent's
    /// own. `delegation` offers the sub-agents.
    ///
    /// Content that `context_compaction` and `long_tool_output` remove from the conversation is
    /// stored in a [`SessionArchive`].
    ///
    /// # Errors
    /// [`ErrorKind::Config`](agent_core::ErrorKind::Config) for a configuration that is invalid, or
    /// with which the middleware would do nothing.
    pub fn make(&self, config: Value, model: &Arc<dyn Model>, sub_agents: &[SubAgent]) -> Result<Arc<dyn Middleware>> {
        let config = if config.is_null() { Value::Object(Default::default()) } else { config };
        (self.make)(config, model, sub_agents)
    }

    /// Returns the JSON Schema of its configuration.
    #[cfg(feature = "schema")]
    pub fn schema(&self, generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        (self.schema)(generator)
    }
}

impl std::fmt::Debug for Builtin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Builtin").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Parses the configuration of a middleware.
fn read<C: DeserializeOwned>(name: &str, config: Value) -> Result<C> {
    serde_json::from_value(config)
        .map_err(|e| Error::config(format!("the configuration of middleware '{name}' is wrong: {e}")))
}

/// Refuses a configuration that would do nothing.
fn acts(name: &str, acts: bool, help: &str) -> Result<()> {
    if acts { Ok(()) } else { Err(Error::config(format!("middleware '{name}' would do nothing: {help}"))) }
}

macro_rules! builtins {
    ($($(#[$cfg:meta])* $name:literal: |$config:ident: $type:ty, $model:pat_param, $agents:pat_param| $made:expr;)+) => {
        const ALL: &[Builtin] = &[$($(#[$cfg])* Builtin {
            name: $name,
            // Middlewares that do not use it write `_`.
            asks_model: stringify!($model).as_bytes()[0] != b'_',
            make: |$config, $model, $agents| {
                let $config: $type = read($name, $config)?;
                Ok(Arc::new($made))
            },
            #[cfg(feature = "schema")]
            schema: |generator| generator.subschema_for::<$type>(),
        }),+];
    };
}

builtins! {
    "approval": |config: ApprovalConfig, _, _| Approval::from(config);
    "ask_parent": |config: AskParentConfig, _, _| AskParent::from(config);
    "breakpoints": |config: BreakpointsConfig, _, _| Breakpoints::from(config);
    #[cfg(feature = "code")]
    "code_mode": |config: crate::code_mode::CodeModeConfig, _, _| crate::CodeMode::from(config);
    "context_compaction": |config: CompactionConfig, model, _| {
        ContextCompaction::builder().config(config).model(model.clone()).archive(SessionArchive::new()).build()?
    };
    "delegation": |config: DelegationConfig, _, agents| {
        agents.iter().cloned().fold(Delegation::from(config), Delegation::agent)
    };
    "events": |config: EventsConfig, _, _| Events::from(config);
    "judge": |config: JudgeConfig, model, _| Judge::new(model.clone()).config(config);
    "limits": |config: LimitsConfig, _, _| Limits::from(config);
    "logging": |config: LoggingConfig, _, _| Logging::from(config);
    "long_tool_output": |config: LongToolOutputConfig, _, _| {
        LongToolOutput::builder().config(config).archive(SessionArchive::new()).build()?
    };
    "patch_tool_calls": |config: PatchToolCallsConfig, _, _| PatchToolCalls::from(config);
    "pii": |config: PiiConfig, _, _| Pii::from_config(config)?;
    "prompt_caching": |config: PromptCachingConfig, _, _| PromptCaching::from(config);
    "prompt_injection": |config: PromptInjectionConfig, model, _| {
        PromptInjection::builder().config(config).reader(model.clone()).build()?
    };
    "reminders": |config: RemindersConfig, _, _| {
        acts("reminders", config != RemindersConfig::default(), "set 'steps', 'tokens' or 'every'")?;
        Reminders::from(config)
    };
    "runtime_environment": |config: RuntimeEnvironmentConfig, _, _| RuntimeEnvironment::from(config);
    #[cfg(feature = "telemetry")]
    "telemetry": |config: crate::telemetry::TelemetryConfig, _, _| crate::Telemetry::from(config);
    "todo_list": |config: TodoListConfig, _, _| TodoList::from(config);
    "tool_emulator": |config: ToolEmulatorConfig, model, _| {
        let acts_on = !config.tools.is_empty() || !config.answers.is_empty();
        acts("tool_emulator", acts_on, "set 'tools' or 'answers', such as tools: ['*']")?;
        ToolEmulator::from(config).with_model(model.clone())
    };
    "tool_retry": |config: ToolRetryConfig, _, _| ToolRetry::from(config);
    "tool_search": |config: ToolSearchConfig, _, _| {
        acts("tool_search", !config.tools.is_empty(), "set 'tools' to those that are deferred, such as tools: ['*']")?;
        ToolSearch::from(config)
    };
    "tool_selector": |config: ToolSelectorConfig, model, _| ToolSelector::new(model.clone()).config(config);
}

#[cfg(test)]
mod tests {
    use agent_core::testing::ScriptedModel;

    use super::*;

    #[test]
    fn every_builtin_is_made_without_a_configuration_or_refused_because_it_would_do_nothing() {
        let model: Arc<dyn Model> = Arc::new(ScriptedModel::new([]));
        let mut refused = Vec::new();
        for builtin in Builtin::all() {
            match builtin.make(Value::Null, &model, &[]) {
                Ok(made) => {
                    assert_eq!(made.name(), builtin.name);
                    made.validate().unwrap_or_else(|e| panic!("{}: {e}", builtin.name));
                }
                Err(e) => {
                    assert!(e.message().contains("would do nothing: set '"), "{e}");
                    refused.push(builtin.name);
                }
            }
        }
        assert_eq!(refused, ["reminders", "tool_emulator", "tool_search"]);
        let asking = Builtin::all().iter().filter(|builtin| builtin.asks_model()).map(Builtin::name);
        let known = ["context_compaction", "judge", "prompt_injection", "tool_emulator", "tool_selector"];
        assert!(asking.eq(known));
        assert!(Builtin::all().is_sorted_by_key(|builtin| builtin.name), "so that a list of names is easy to read");
    }
}
