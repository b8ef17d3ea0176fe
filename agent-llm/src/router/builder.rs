//! [`ModelRouterBuilder`].

use std::{collections::BTreeSet, fmt, sync::Arc};

use agent_core::{Error, Model, ModelInfo, Result, TokenCounter, model::ApproximateCounter};

use super::{Chooser, ModelRouter, Route, Rule, chooser::Classifier};
use crate::{attempt::what_holds_for_all, tokens::IncrementalCounter};

/// Makes a [`ModelRouter`].
#[must_use]
pub struct ModelRouterBuilder {
    routes: Vec<Route>,
    default: Route,
    /// What a route is good for, by its name.
    criteria: Vec<(String, String)>,
    chooser: Option<Arc<dyn Chooser>>,
    classifier: Option<Arc<dyn Model>>,
    counter: Arc<dyn TokenCounter>,
    info: Option<ModelInfo>,
}

impl ModelRouterBuilder {
    pub(super) fn new(default: Arc<dyn Model>) -> Self {
        Self {
            routes: Vec::new(),
            default: Route::new("default".into(), default, None),
            criteria: Vec::new(),
            chooser: None,
            classifier: None,
            counter: Arc::new(IncrementalCounter::new(ApproximateCounter)),
            info: None,
        }
    }

    /// Adds a model that is asked where the rule holds and none before it did: a [`Condition`](super::Condition), or a closure
    /// with [`Rule::when`].
    pub fn route(mut self, name: impl Into<String>, model: impl Model, rule: impl Into<Rule>) -> Self {
        self.routes.push(Route::new(name.into(), Arc::new(model), Some(rule.into())));
        self
    }

    /// Adds a model that no rule leads to, with what it is good for: for those who [choose](Self::choose) and
    /// [classify](Self::classify_with).
    pub fn choice(mut self, name: impl Into<String>, model: impl Model, good_for: impl Into<String>) -> Self {
        let name = name.into();
        self.criteria.push((name.clone(), good_for.into()));
        self.routes.push(Route::new(name, Arc::new(model), None));
        self
    }

    /// Says what the first model, which is called `default`, is good for, for those who [classify](Self::classify_with).
    pub fn default_is_good_for(mut self, what: impl Into<String>) -> Self {
        self.criteria.push((self.default.name.clone(), what.into()));
        self
    }

    /// Lets a function pick the route of each call, before the rules.
    pub fn choose(mut self, chooser: impl Chooser) -> Self {
        self.chooser = Some(Arc::new(chooser));
        self
    }

    /// Lets a model pick one of the [choices](Self::choice) for each run, before the rules: a provider's cache is of one model,
    /// so a run had better stay with it. What it uses counts as the run's.
    pub fn classify_with(mut self, model: impl Model) -> Self {
        self.classifier = Some(Arc::new(model));
        self
    }

    /// Sets what counts tokens for the rules. Default: four characters are a token, each message counted once.
    pub fn counter(mut self, counter: impl TokenCounter) -> Self {
        self.counter = Arc::new(counter);
        self
    }

    /// Sets what is said to be known of the model. Default: what holds for all of them.
    pub fn info(mut self, info: ModelInfo) -> Self {
        self.info = Some(info);
        self
    }

    /// Makes the model.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](agent_core::ErrorKind::Config) if there is no route, if two have the same name, if a route is
    /// there that nothing leads to, or if there are two who choose.
    pub fn build(self) -> Result<ModelRouter> {
        if self.routes.is_empty() {
            return Err(Error::config("a model router needs a second model: add one with route(..) or choice(..)"));
        }
        let mut names = BTreeSet::from([self.default.name.as_str()]);
        if let Some(twice) = self.routes.iter().find(|route| !names.insert(&route.name)) {
            return Err(Error::config(format!("two routes are named '{}': rename one", twice.name)));
        }
        let chooser: Option<Arc<dyn Chooser>> = match (self.chooser, self.classifier) {
            (Some(_), Some(_)) => {
                return Err(Error::config("a model router takes choose(..) or classify_with(..), not both"));
            }
            (Some(chooser), None) => Some(chooser),
            (None, Some(model)) => Some(Arc::new(Classifier::new(model, self.criteria))),
            (None, None) => None,
        };
        if chooser.is_none()
            && let Some(route) = self.routes.iter().find(|route| route.rule.is_none())
        {
            let name = &route.name;
            return Err(Error::config(format!(
                "nothing leads to the choice '{name}': add choose(..) or classify_with(..), or make it a route(..)"
            )));
        }
        let infos: Vec<_> =
            std::iter::once(&self.default).chain(&self.routes).map(|route| (*route.info).clone()).collect();
        let info = self.info.unwrap_or_else(|| what_holds_for_all(&infos));
        Ok(ModelRouter { routes: self.routes, default: self.default, chooser, counter: self.counter, info })
    }
}

impl fmt::Debug for ModelRouterBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ModelRouterBuilder").field("routes", &self.routes).finish_non_exhaustive()
    }
}
