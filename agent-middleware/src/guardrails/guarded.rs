//! [`Guarded`]: a guard, and how it is run.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::Arc,
    time::Duration,
};

use agent_core::{Error, ErrorKind, EventKind, Result, RunCx};
use serde::{Deserialize, Serialize};

use super::{Guard, GuardStage, GuardSubject, GuardVerdict};

/// How guards are run, by their names: in the place of what was set in code.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct GuardrailsConfig {
    /// The guards that are run otherwise.
    pub guards: BTreeMap<String, GuardConfig>,
}

/// How a guard is run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct GuardConfig {
    /// Where it checks. Default: nowhere.
    pub stages: BTreeSet<GuardStage>,
    /// Whether what it checks is not held up. Default: false.
    pub parallel: bool,
    /// What it means that it fails or takes too long. Default: nothing passes.
    pub on_error: OnGuardError,
    /// Longest time that it may take; in configuration files, seconds. Default: no limit.
    #[serde(with = "agent_core::seconds")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<agent_core::seconds::Seconds>"))]
    pub timeout: Option<Duration>,
}

/// What it means that a guard fails or takes too long.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum OnGuardError {
    /// Nothing passes: the run fails, or the call of a tool is refused.
    #[default]
    Closed,
    /// Everything passes, with a warning.
    Open,
}

/// A guard, and how it is run: by default nowhere, blocking, and so that nothing passes if it fails.
#[derive(Clone)]
pub struct Guarded {
    pub(super) name: String,
    pub(super) config: GuardConfig,
    guard: Arc<dyn Guard>,
}

impl Guarded {
    /// A guard under a name, which is said in events and errors.
    pub fn new(name: impl Into<String>, guard: impl Guard) -> Self {
        Self { name: name.into(), config: GuardConfig::default(), guard: Arc::new(guard) }
    }

    /// Checks there too.
    #[must_use]
    pub fn at(mut self, stage: GuardStage) -> Self {
        self.config.stages.insert(stage);
        self
    }

    /// Does not hold up what it checks. The model is called on the input meanwhile, and its call dropped if the input does
    /// not pass; an answer is streamed meanwhile, and taken back. No tool runs before the check is done. Tool calls and their
    /// results always wait.
    #[must_use]
    pub fn parallel(mut self) -> Self {
        self.config.parallel = true;
        self
    }

    /// Lets everything pass, with a warning, if it fails or takes too long.
    #[must_use]
    pub fn fail_open(mut self) -> Self {
        self.config.on_error = OnGuardError::Open;
        self
    }

    /// Sets the longest time that it may take.
    #[must_use]
    pub fn timeout(mut self, most: Duration) -> Self {
        self.config.timeout = Some(most);
        self
    }

    /// What it says, or what it means that it cannot.
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
            Err(e) if e.kind().is_told() => e,
            checked => return checked, // what is no failure of its own ends or suspends the run
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
