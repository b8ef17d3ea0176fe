//! [`RuntimeEnvironment`]: describes the environment to a model.

use std::{collections::BTreeMap, env};

use agent_core::{
    Flow, Middleware, ModelRequest, ModelResponse, Part, PerRun, Placement, Result, RunCx, RunEnd, SystemMessage,
};
use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Configuration of `RuntimeEnvironment`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct RuntimeEnvironmentConfig {
    /// Working directory, if it differs from the process's own.
    pub directory: Option<String>,
    /// Includes the operating system and the architecture. Default: true.
    pub system: bool,
    /// Includes the user's shell. Default: true.
    pub shell: bool,
    /// Further facts, by name.
    pub facts: BTreeMap<String, String>,
}

impl Default for RuntimeEnvironmentConfig {
    fn default() -> Self {
        Self { directory: None, system: true, shell: true, facts: BTreeMap::new() }
    }
}

/// Adds a description of the environment to the system prompt: the working directory, the operating
/// system, the shell, and your own facts.
///
/// The description is decided once, when the run begins, and stays the same for all of its calls,
/// also in other processes, so that the provider's prompt cache remains valid. The only environment
/// variable it reads is the shell's.
///
/// # Order
///
/// ```text
/// // right: the cache mark comes after the whole system prompt
/// builder.middleware(RuntimeEnvironment::new()).middleware(PromptCaching::new())
/// // wrong: the environment comes after the cache mark
/// builder.middleware(PromptCaching::new()).middleware(RuntimeEnvironment::new())
/// ```
///
/// # Example
///
/// ```
/// use agent_middleware::RuntimeEnvironment;
///
/// let environment = RuntimeEnvironment::new().directory("project").fact("Branch", "main");
/// # drop(environment);
/// ```
#[derive(Debug, Default)]
pub struct RuntimeEnvironment {
    config: RuntimeEnvironmentConfig,
    told: PerRun<String>,
}

impl RuntimeEnvironment {
    /// Describes the working directory, the operating system and the shell of this process.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the described working directory.
    #[must_use]
    pub fn directory(mut self, directory: impl Into<String>) -> Self {
        self.config.directory = Some(directory.into());
        self
    }

    /// Adds a fact.
    #[must_use]
    pub fn fact(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.config.facts.insert(name.into(), value.into());
        self
    }

    fn describe(&self) -> String {
        let RuntimeEnvironmentConfig { directory, system, shell, facts } = &self.config;
        let own = || env::current_dir().ok().map(|directory| directory.display().to_string());
        let mut lines = Vec::new();
        lines.extend(directory.clone().or_else(own).map(|directory| format!("Working directory: {directory}")));
        if *system {
            lines.push(format!("Operating system: {} ({})", env::consts::OS, env::consts::ARCH));
        }
        if *shell {
            lines.extend(env::var("SHELL").ok().map(|shell| format!("Shell: {shell}")));
        }
        lines.extend(facts.iter().map(|(name, value)| format!("{name}: {value}")));
        format!("# Environment\n{}", lines.join("\n"))
    }
}

impl From<RuntimeEnvironmentConfig> for RuntimeEnvironment {
    fn from(config: RuntimeEnvironmentConfig) -> Self {
        Self { config, told: PerRun::default() }
    }
}

#[async_trait]
impl Middleware for RuntimeEnvironment {
    fn name(&self) -> &str {
        "runtime_environment"
    }

    fn placement(&self) -> Placement {
        Placement::default().unique()
    }

    async fn before_agent(&self, cx: &RunCx) -> Result<()> {
        let decided = cx.decide(self.name(), async { Ok(Value::from(self.describe())) }).await?;
        self.told.of(cx, || decided.as_str().unwrap_or_default().to_owned());
        Ok(())
    }

    async fn before_model(&self, cx: &RunCx, req: &mut ModelRequest) -> Result<Flow<ModelResponse>> {
        if let Some(told) = self.told.get(cx) {
            let system = req.system.get_or_insert_with(|| SystemMessage::new(Vec::new()));
            system.parts_mut().push(Part::text(told.as_str()));
        }
        Ok(Flow::Continue)
    }

    async fn after_agent(&self, cx: &RunCx, _: &mut Result<RunEnd>) -> Result<()> {
        self.told.end(cx);
        Ok(())
    }
}
