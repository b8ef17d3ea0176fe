//! `guardrails`: checks on what goes in and what comes out, by words and by a model.

use std::collections::{BTreeMap, BTreeSet};

use agent_core::{Error, Result};
use agent_exec::AgentSoFar;
use agent_middleware::{
    Guardrails,
    guardrails::{GuardStage, Guarded, ModelGuard, Moderation, ModerationConfig, OnGuardError, WordList},
};
use schemars::{JsonSchema, SchemaGenerator};
use serde::Deserialize;

use super::{AskedModel, read};
use crate::config::{
    Registry,
    file::{ModelRef, seconds},
};

const NAME: &str = "guardrails";

/// Checks on what users say, what models say, what tools are given and what tools give.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Config {
    /// Guards by name; events and errors have the name. The guards of one stage run in the order of their names.
    #[serde(default)]
    #[schemars(required)]
    guards: BTreeMap<String, GuardKeys>,
}

/// A guard: `words` or a `policy`, and how it is run.
#[derive(Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[derive(Default)]
struct GuardKeys {
    /// Words that do not pass, by category, in whatever letters.
    words: BTreeMap<String, Vec<String>>,
    /// Policy for texts, in words; a model judges them.
    policy: Option<String>,
    /// The model that is asked. Default: the agent's own.
    #[schemars(with = "Option<ModelRef>")]
    model: Option<agent_exec::ModelDefinition>,
    /// Answer in place of a refused text. Default: "I cannot help with that."
    answer: Option<String>,
    /// Stages to check. Default: `input` and `output`.
    stages: BTreeSet<GuardStage>,
    /// Checks in parallel, without delaying the text. Default: false.
    parallel: bool,
    /// Consequence of a failure or timeout. Default: nothing passes.
    on_error: OnGuardError,
    /// Seconds that it may take. Default: no limit.
    #[schemars(range(min = 0.001))]
    timeout: Option<f64>,
}

pub(super) fn register(registry: Registry) -> Registry {
    registry.middleware_made(NAME, SchemaGenerator::subschema_for::<Config>, |config, from| {
        let Config { guards } = read(NAME, config.clone())?;
        if guards.is_empty() {
            let example = "guards: {harm: {words: {harm: [poison]}}}";
            return Err(Error::config(format!("guardrails without guards check nothing: name one, such as {example}")));
        }
        let mut made = guards.into_iter().map(|(name, keys)| keys.guard(&name, from));
        made.try_fold(Guardrails::new(), |guardrails, guard| Ok(guardrails.guard(guard?)))
    })
}

impl GuardKeys {
    fn guard(self, name: &str, from: AgentSoFar<'_>) -> Result<Guarded> {
        let mut guard = match (self.policy, self.words.is_empty()) {
            (Some(policy), true) => {
                let guard = ModelGuard::new(AskedModel { model: self.model }.of(from)?, policy);
                let guard = self.answer.into_iter().fold(guard, ModelGuard::answer);
                Guarded::new(name, guard)
            }
            (None, false) if self.model.is_some() => {
                return Err(Error::config(format!(
                    "the guard '{name}' has words, and asks no model: leave 'model' out"
                )));
            }
            (None, false) => {
                let words =
                    self.words.iter().flat_map(|(category, words)| words.iter().map(move |word| (category, word)));
                let words = words.fold(WordList::new(), |list, (category, word)| list.word(category, word));
                let mut config = ModerationConfig::default();
                config.answer = self.answer.unwrap_or(config.answer);
                Guarded::new(name, Moderation::new(words).config(config))
            }
            _ => return Err(Error::config(format!("the guard '{name}' has either 'words' or a 'policy'"))),
        };
        let stages = if self.stages.is_empty() { [GuardStage::Input, GuardStage::Output].into() } else { self.stages };
        guard = stages.into_iter().fold(guard, Guarded::at);
        if self.parallel {
            guard = guard.parallel();
        }
        if self.on_error == OnGuardError::Open {
            guard = guard.fail_open();
        }
        match self.timeout {
            Some(time) => Ok(guard.timeout(seconds(time)?)),
            None => Ok(guard),
        }
    }
}
