//! Assignment of models to roles.

use std::{fmt, sync::Arc};

use agent_core::{Error, Model, ModelInfo, ModelRequest, ModelResponse, Result, async_trait};

/// Slot for a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Slot {
    /// The trainable planner: it answers without tools, and plans each step.
    PlannerMain,
    /// The fixed planner: it analyses the query, and writes the outputs in the role of the
    /// generator.
    PlannerFixed,
    /// The verifier.
    Verifier,
    /// The worker, which converts a step to calls.
    Executor,
}

impl Slot {
    /// All slots, in the order of [`Models::list`].
    pub const ALL: [Self; 4] = [Self::PlannerMain, Self::PlannerFixed, Self::Verifier, Self::Executor];

    /// `planner_main`, `planner_fixed`, `verifier` or `executor`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::PlannerMain => "planner_main",
            Self::PlannerFixed => "planner_fixed",
            Self::Verifier => "verifier",
            Self::Executor => "executor",
        }
    }
}

/// Models of a solver. Every slot that the requested outputs need must have a model, and no other
/// slot may: a model that would never be called is rejected as a mistake.
///
/// ```
/// use agent_core::testing::ScriptedModel;
/// use agent_flow::Models;
///
/// # let (trained, large) = (ScriptedModel::new([]), ScriptedModel::new([]));
/// let models = Models::all(large).planner_main(trained);
/// ```
#[derive(Clone, Default)]
#[must_use]
pub struct Models {
    others: Option<Arc<dyn Model>>,
    slots: [Option<Arc<dyn Model>>; 4],
}

impl Models {
    /// Creates an empty assignment.
    pub fn new() -> Self {
        Self::default()
    }

    /// Uses this model for every slot without a separate one.
    pub fn all(model: impl Model) -> Self {
        Self { others: Some(Arc::new(model)), ..Self::default() }
    }

    /// Uses these models for the four slots, in the order of [`Slot::ALL`].
    pub fn list(models: [Arc<dyn Model>; 4]) -> Self {
        Self { others: None, slots: models.map(Some) }
    }

    /// Sets the model that answers without tools and plans each step.
    pub fn planner_main(self, model: impl Model) -> Self {
        self.set(Slot::PlannerMain, model)
    }

    /// Sets the model that analyses the query and writes the outputs.
    pub fn planner_fixed(self, model: impl Model) -> Self {
        self.set(Slot::PlannerFixed, model)
    }

    /// Sets the model of the verifier.
    pub fn verifier(self, model: impl Model) -> Self {
        self.set(Slot::Verifier, model)
    }

    /// Sets the model that converts steps to calls.
    pub fn executor(self, model: impl Model) -> Self {
        self.set(Slot::Executor, model)
    }

    fn set(mut self, slot: Slot, model: impl Model) -> Self {
        self.slots[slot as usize] = Some(Arc::new(model));
        self
    }

    /// Checks that exactly the slots in `needed` have a model, and returns the models.
    pub(crate) fn cast(self, needed: &[Slot]) -> Result<Cast> {
        let given = self.slots.iter().filter(|slot| slot.is_some()).count();
        if self.others.is_some() && given == self.slots.len() {
            return Err(Error::config("all four slots have a model of their own: leave out the one of Models::all"));
        }
        let mut parts = [const { None }; 4];
        for (slot, own) in Slot::ALL.into_iter().zip(self.slots) {
            let name = slot.as_str();
            parts[slot as usize] = match (needed.contains(&slot), own) {
                (false, None) => None,
                (false, Some(_)) => {
                    return Err(Error::config(format!(
                        "the model of slot '{name}' would never be asked for these outputs: leave it out"
                    )));
                }
                (true, own) => {
                    let missing =
                        || Error::config(format!("slot '{name}' has no model: set {name}(..) or Models::all"));
                    let model = own.or_else(|| self.others.clone()).ok_or_else(missing)?;
                    Some((Arc::new(model.info()), model))
                }
            };
        }
        Ok(Cast { parts })
    }
}

/// Info of a model, and the model.
type Part = (Arc<ModelInfo>, Arc<dyn Model>);

/// The models as one [`Model`]: the [`ModelRequest::model`] of each call selects the model.
pub(crate) struct Cast {
    parts: [Option<Part>; 4],
}

impl Cast {
    /// Info of the model in each slot; its address identifies the slot in requests.
    pub(crate) fn infos(&self) -> [Option<Arc<ModelInfo>>; 4] {
        self.parts.each_ref().map(|part| part.as_ref().map(|(info, _)| info.clone()))
    }
}

#[async_trait]
impl Model for Cast {
    fn info(&self) -> ModelInfo {
        let mut names: Vec<_> = self.parts.iter().flatten().map(|(info, _)| info.name.as_str()).collect();
        names.dedup();
        ModelInfo::new(names.join("+"))
    }

    async fn call(&self, req: ModelRequest) -> Result<ModelResponse> {
        let meant = |info: &Arc<ModelInfo>| req.model.as_ref().is_some_and(|model| Arc::ptr_eq(model, info));
        match self.parts.iter().flatten().find(|(info, _)| meant(info)) {
            Some((_, model)) => model.call(req).await,
            None => Err(Error::config("a layer changed who is asked: leave the `model` of a solver's requests alone")),
        }
    }

    async fn warm_up(&self) -> Result<()> {
        for (_, model) in self.parts.iter().flatten() {
            model.warm_up().await?;
        }
        Ok(())
    }

    async fn close(&self) -> Result<()> {
        let mut closed = Ok(());
        for (_, model) in self.parts.iter().flatten() {
            closed = closed.and(model.close().await);
        }
        closed
    }
}

impl fmt::Debug for Models {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named = |model: &Arc<dyn Model>| model.info().name;
        let own = Slot::ALL.into_iter().zip(&self.slots);
        let mut map = f.debug_map();
        map.entries(own.filter_map(|(slot, model)| Some((slot.as_str(), named(model.as_ref()?)))));
        map.entries(self.others.iter().map(|model| ("others", named(model)))).finish()
    }
}
