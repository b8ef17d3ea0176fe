//! Routing of each call to one of several models: [`ModelRouter`].

mod builder;
mod chooser;
mod condition;

use std::{fmt, sync::Arc};

use agent_core::{
    EventKind, Model, ModelInfo, ModelRequest, ModelResponse, Result, TokenCounter, ToolSpec, async_trait,
    model::ToolFinding,
};
use serde_json::json;

pub use self::{
    builder::ModelRouterBuilder,
    chooser::Chooser,
    condition::{Condition, Rule},
};
use crate::attempt::label;

/// A model composed of several, one of which is picked for each call: by rules, by a function, or
/// by another model.
///
/// The first route whose rule matches is taken; if none does, the first model is called, whose
/// route is named `default`. A rule inspects the call: its number of tokens and tools, the run's
/// step, the run's state. A function set with [`choose`](ModelRouterBuilder::choose) and a model
/// set with [`classify_with`](ModelRouterBuilder::classify_with) come before the rules; if they
/// name no route, the rules decide, and an unknown name causes a warning.
///
/// Each call emits its route as an [`EventKind::Custom`] named `model_route`, and
/// [`ModelResponse::model`] names the model that answered.
///
/// `ModelRouter` is a model rather than a middleware, like [`Failover`](crate::Failover): whichever
/// model is called, it is the step's single call in the journal, the budget and the outer layers.
/// The two can be combined.
///
/// # Order
///
/// ```text
/// // right: each route has its own fallback
/// ModelRouter::builder(Failover::builder(a).fallback(b).build()?).route("small", c, rule)
/// // usually wrong: the fallback is called whatever the route was
/// Failover::builder(ModelRouter::builder(a).route("small", c, rule).build()?).fallback(b)
/// ```
///
/// # Example
///
/// ```
/// use agent_core::{History, Message, Model, ModelInfo, ModelRequest, testing::detached_run};
/// use agent_llm::{ModelRouter, ScriptedModel, Turn, router::{Condition, Rule}};
///
/// # tokio::runtime::Builder::new_current_thread().build().expect("a runtime").block_on(async {
/// let large = ScriptedModel::new([]).with_info(ModelInfo::new("large"));
/// let small = ScriptedModel::new([Turn::text("4")]).with_info(ModelInfo::new("small"));
/// let model = ModelRouter::builder(large)
///     .route("short", small, Rule::when(|req| req.messages.len() == 1))
///     .route("late", ScriptedModel::new([]), Condition::StepOver(20))
///     .build()?;
/// let run = detached_run(History::from_messages([Message::user("What is 2 + 2?")])?);
/// let response = model.call(ModelRequest::new(run.cx().clone())).await?;
/// assert_eq!(response.model.as_deref(), Some("small"));
/// # Ok::<(), agent_core::Error>(())
/// # }).expect("answers");
/// ```
pub struct ModelRouter {
    routes: Vec<Route>,
    default: Route,
    chooser: Option<Arc<dyn Chooser>>,
    counter: Arc<dyn TokenCounter>,
    info: ModelInfo,
}

/// One of the models, and its rule.
struct Route {
    name: String,
    model: Arc<dyn Model>,
    info: Arc<ModelInfo>,
    rule: Option<Rule>,
}

impl Route {
    fn new(name: String, model: Arc<dyn Model>, rule: Option<Rule>) -> Self {
        let info = Arc::new(model.info());
        Self { name, model, info, rule }
    }
}

impl ModelRouter {
    /// Returns a builder with the model that is called if no other route matches.
    pub fn builder(default: impl Model) -> ModelRouterBuilder {
        ModelRouterBuilder::new(Arc::new(default))
    }

    async fn pick(&self, req: &ModelRequest) -> Result<&Route> {
        if let Some(chooser) = &self.chooser
            && let Some(name) = chooser.choose(req).await?
        {
            let named = std::iter::once(&self.default).chain(&self.routes).find(|route| route.name == name);
            match named {
                Some(route) => return Ok(route),
                None => {
                    let names: Vec<_> = self.routes.iter().map(|route| route.name.as_str()).collect();
                    let names = names.join(", ");
                    let message = format!("model router: '{name}' is no route; there are: default, {names}");
                    req.cx.emit(EventKind::Warning { message });
                }
            }
        }
        let holds = |route: &&Route| route.rule.as_ref().is_some_and(|rule| rule.holds(req, &*self.counter));
        Ok(self.routes.iter().find(holds).unwrap_or(&self.default))
    }
}

#[async_trait]
impl Model for ModelRouter {
    /// Returns the first model's name and provider with the smallest of the known windows and
    /// output limits, and tools and schemas only if all models support them; or the info set with
    /// [`ModelRouterBuilder::info`].
    fn info(&self) -> ModelInfo {
        self.info.clone()
    }

    async fn call(&self, mut req: ModelRequest) -> Result<ModelResponse> {
        let route = self.pick(&req).await?;
        let value = json!({"route": route.name, "model": label(&route.info)});
        req.cx.emit(EventKind::Custom { name: "model_route".into(), value });
        req.model = Some(route.info.clone());
        route.model.call(req).await
    }

    fn check_tools(&self, tools: &[ToolSpec]) -> Vec<ToolFinding> {
        let routes = self.routes.iter().chain([&self.default]);
        routes.flat_map(|route| route.model.check_tools(tools)).collect()
    }
}

impl fmt::Debug for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Route")
            .field("name", &self.name)
            .field("model", &label(&self.info))
            .field("rule", &self.rule)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for ModelRouter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ModelRouter")
            .field("routes", &self.routes)
            .field("default", &self.default)
            .finish_non_exhaustive()
    }
}
