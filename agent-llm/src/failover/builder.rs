//! [`FailoverBuilder`]: builder of a failover model.

use std::{fmt, sync::Arc};

use agent_core::{Error, ErrorKind, Model, ModelInfo, Result};

use super::{
    Candidate, Failover, Sticky,
    rules::{Rules, concerns_the_run},
    sticky::Memory,
};
use crate::attempt::{label, what_holds_for_all};

/// Builder of a [`Failover`].
#[must_use]
pub struct FailoverBuilder {
    models: Vec<Arc<dyn Model>>,
    rules: Rules,
    sticky: Sticky,
    info: Option<ModelInfo>,
}

impl FailoverBuilder {
    pub(super) fn new(primary: Arc<dyn Model>) -> Self {
        Self { models: vec![primary], rules: Rules::default(), sticky: Sticky::default(), info: None }
    }

    /// Adds a model that is called after all models before it failed.
    pub fn fallback(mut self, model: impl Model) -> Self {
        self.models.push(Arc::new(model));
        self
    }

    /// Also moves on after errors of these kinds.
    pub fn on(mut self, kinds: impl IntoIterator<Item = ErrorKind>) -> Self {
        self.rules.kinds.extend(kinds);
        self
    }

    /// Does not move on after errors of these kinds.
    pub fn never(mut self, kinds: impl IntoIterator<Item = ErrorKind>) -> Self {
        for kind in kinds {
            self.rules.kinds.remove(&kind);
        }
        self
    }

    /// Also moves on after errors that match the predicate, such as a status that a provider uses
    /// in a non-standard way: `|error| error.context("status") == Some("404")`. The predicate never
    /// sees errors that concern the run itself.
    pub fn when(mut self, moves_on: impl Fn(&Error) -> bool + Send + Sync + 'static) -> Self {
        self.rules.when = Some(Box::new(moves_on));
        self
    }

    /// Sets the model that calls after a failover begin with. Default: the first.
    pub fn sticky(mut self, sticky: Sticky) -> Self {
        self.sticky = sticky;
        self
    }

    /// Overrides the model's info. Default: the limits and abilities common to all models.
    pub fn info(mut self, info: ModelInfo) -> Self {
        self.info = Some(info);
        self
    }

    /// Builds the model.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] if there is no fallback, or if [`on`](Self::on) names a kind that is
    /// not a model's: a run that is cancelled, paused or out of budget is so with every model.
    pub fn build(self) -> Result<Failover> {
        if self.models.len() < 2 {
            return Err(Error::config("a failover needs a second model: add one with fallback(..)"));
        }
        if let Some(kind) = self.rules.kinds.iter().find(|kind| concerns_the_run(**kind)) {
            return Err(Error::config(format!("'{kind}' concerns the run: another model cannot help, so remove it")));
        }
        let infos: Vec<_> = self.models.iter().map(Model::info).collect();
        let info = self.info.unwrap_or_else(|| what_holds_for_all(&infos));
        let candidate =
            |(model, info): (_, &ModelInfo)| Candidate { model, label: label(info), window: info.context_window };
        let candidates = self.models.into_iter().zip(&infos).map(candidate).collect();
        Ok(Failover { candidates, rules: self.rules, memory: Memory::new(self.sticky), info })
    }
}

impl fmt::Debug for FailoverBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let models: Vec<_> = self.models.iter().map(|model| label(&model.info())).collect();
        f.debug_struct("FailoverBuilder")
            .field("models", &models)
            .field("rules", &self.rules)
            .field("sticky", &self.sticky)
            .finish_non_exhaustive()
    }
}
