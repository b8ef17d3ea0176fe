//! [`ModelRouterBuilder`]: builder of a model router.

use std::{collections::BTreeSet, fmt, sync::Arc};

use agent_core::{Error, Model, ModelInfo, Result, TokenCounter, model::ApproximateCounter};

use super::{Chooser, ModelRouter, Route, Rule, chooser::Classifier};
use crate::{attempt::what_holds_for_all, tokens::IncrementalCounter};

/// Builder of a [`ModelRouter`].
#[must_use]
pub struct ModelRouterBuilder {
    routes: Vec<Route>,
    default: Route,
    /// Description of each route's purpose, by name.
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

    /// Adds a model that is called if its rule matches and none before it does: a
    /// [`Condition`](super::Condition), or a closure with [`Rule::when`].
    pub fn route(mut self, name: impl Into<String>, model: impl Model, rule: impl Into<Rule>) -> Self {
        self.routes.push(Route::new(name.into(), Arc::new(model), Some(rule.into())));
        self
    }

    /// Adds a model without a rule, with a description of its purpose, for [`choose`](Self::choose)
    /// and [`classify_with`](Self::classify_with).
    pub fn choice(mut self, name: impl Into<String>, model: impl Model, good_for: impl Into<String>) -> Self {
        let name = name.into();
        self.criteria.push((name.clone(), good_for.into()));
        self.routes.push(Route::new(name, Arc::new(model), None));
        self
    }

    /// Describes the purpose of the first model, whose route is named `default`, for
    /// [`classify_with`](Self::classify_with).
    pub fn default_is_good_for(mut self, what: impl Into<String>) -> Self {
        self.criteria.push((self.default.name.clone(), what.into()));
        self
    }

    /// Sets a function that picks the route of each call, before the rules.
    pub fn choose(mut self, chooser: impl Chooser) -> Self {
        self.chooser = Some(Arc::new(chooser));
        self
    }

    /// Sets a model that picks one of the [choices](Self::choice) for each run, before the rules.
    /// It picks per run because prompt caches are per model. Its usage counts as the run's. If the
    /// run's budget has no room for its call beside the routed one, the rules decide.
    pub fn classify_with(mut self, model: impl Model) -> Self {
        self.classifier = Some(Arc::new(model));
        self
    }

    /// Sets the token counter for the rules. Default: four characters per token, each message
    /// counted once.
    pub fn counter(mut self, counter: impl TokenCounter) -> Self {
        self.counter = Arc::new(counter);
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
    /// [`ErrorKind::Config`](agent_core::ErrorKind::Config) if there is no route, if two routes
    /// have the same name, if a route is unreachable, or if both a chooser and a classifier are
    /// set.
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
