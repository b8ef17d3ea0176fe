//! [`Guarded`]: a guard with its execution settings.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::Arc,
    time::Duration,
};

use agent_core::{Error, ErrorKind, EventKind, Result, RunCx};
use serde::{Deserialize, Serialize};

use super::{Guard, GuardStage, GuardSubject, GuardVerdict};

/// Execution settings of guards by name, which override those set in code.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct GuardrailsConfig {
    /// The guards with overridden settings.
    pub guards: BTreeMap<String, GuardConfig>,
}

/// Execution settings of a guard.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct GuardConfig {
    /// Stages at which it checks. Default: input and output.
    pub stages: BTreeSet<GuardStage>,
    /// Runs the check concurrently with what it checks. Default: false.
    pub parallel: bool,
    /// Consequence of a failure or timeout of the guard. Default: nothing passes.
    pub on_error: OnGuardError,
    /// Timeout of a check; in configuration files, seconds. Default: no limit.
    #[serde(with = "agent_core::seconds")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<agent_core::seconds::Seconds>"))]
    pub timeout: Option<Duration>,
}

impl GuardConfig {
    /// True if the guard checks this stage.
    pub(super) fn checks(&self, stage: GuardStage) -> bool {
        let is_default = self.stages.is_empty() && matches!(stage, GuardStage::Input | GuardStage::Output);
        is_default || self.stages.contains(&stage)
    }
}

/// Consequence of a failure or timeout of a guard.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum OnGuardError {
    /// Fail closed: the run fails, or the tool call is refused.
    #[default]
    Closed,
    /// Fail open: everything passes, with a warning.
    Open,
}

/// A guard with its execution settings. By default it checks input and output, blocks, and fails
/// closed.
#[derive(Clone)]
pub struct Guarded {
    pub(super) name: String,
    pub(super) config: GuardConfig,
    guard: Arc<dyn Guard>,
}

impl Guarded {
    /// Creates a guard with a name for events and errors.
    pub fn new(name: impl Into<String>, guard: impl Guard) -> Self {
        Self { name: name.into(), config: GuardConfig::default(), guard: Arc::new(guard) }
    }

    /// Also checks at this stage. The first call replaces the default, input and output.
    #[must_use]
    pub fn at(mut self, stage: GuardStage) -> Self {
        self.config.stages.insert(stage);
        self
    }

    /// Runs the check concurrently. The model is called with the input meanwhile, and the call is
    /// dropped if the input does not pass; a response is streamed meanwhile, and retracted if it
    /// does not pass. No tool runs before the check is done. Tool calls and their results always
    /// wait.
    #[must_use]
    pub fn parallel(mut self) -> Self {
        self.config.parallel = true;
        self
    }

    /// Lets everything pass, with a warning, if the guard fails or times out.
    #[must_use]
    pub fn fail_open(mut self) -> Self {
        self.config.on_error = OnGuardError::Open;
        self
    }

    /// Sets the timeout of a check.
    #[must_use]
    pub fn timeout(mut self, most: Duration) -> Self {
        self.config.timeout = Some(most);
        self
    }

    /// Returns the guard's verdict, or the consequence of its failure.
    pub(super) async fn judge(&self, cx: &RunCx, subject: &GuardSubject) -> Result<GuardVerdict> {
        let name = &self.name;
        let check = self.guard.check(cx, subject);
        let checked = match self.config.timeout {
            None => check.await,
            Some(most) => tokio::time::timeout(most, check)
                .await
                .unwrap_or_else(|_| Err(Error::new(ErrorKind::Timeout, format!("it took longer than {most:?}")))),
        };
        let e = match checked {
            Err(e) if e.kind().is_model_visible() => e,
            // errors that are not the guard's own failure end or suspend the run
            checked => return checked,
        };
        cx.emit(EventKind::Warning { message: format!("guardrails: the check '{name}' could not be made: {e}") });
        let why = format!("the check '{name}' could not be made");
        Ok(match (self.config.on_error, subject.stage) {
            (OnGuardError::Open, _) => GuardVerdict::Pass,
            (OnGuardError::Closed, GuardStage::Input | GuardStage::Output) => GuardVerdict::Fail(why),
            (OnGuardError::Closed, GuardStage::ToolInput) => GuardVerdict::Refuse(format!("Not run: {why}.")),
            (OnGuardError::Closed, GuardStage::ToolOutput) => {
                GuardVerdict::Refuse(format!("The output is not shown: {why}."))
            }
        })
    }
}

impl fmt::Debug for Guarded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guarded").field("name", &self.name).field("config", &self.config).finish_non_exhaustive()
    }
}
