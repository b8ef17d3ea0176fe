//! Parts from which the agent of a simulation is built.

use agent_core::{
    MemoryJournal, Model, Tool,
    testing::{Faults, FaultyModel, FaultyTool, MortalJournal, Outside, RandomModel, SeededRng},
};

/// One process of a simulation: supplies the parts that an agent is built from. Every process has
/// the same outside world and the same journal, and dies at a different moment.
#[derive(Clone, Debug)]
pub struct World {
    pub(super) rng: SeededRng,
    pub(super) faults: Faults,
    pub(super) outside: Outside,
    pub(super) kept: MemoryJournal,
    pub(super) journal: MortalJournal,
}

impl World {
    pub(super) fn new(rng: SeededRng, faults: Faults) -> Self {
        let kept = MemoryJournal::default();
        let journal = MortalJournal::new(kept.clone());
        Self { rng, faults, outside: Outside::default(), kept, journal }
    }

    /// Returns the next process, which dies at the journal entry with this number.
    pub(super) fn reborn(&self, dies_at: Option<u64>) -> Self {
        let journal = MortalJournal::new(self.kept.clone()).shuffled(self.faults.clone());
        let journal = dies_at.into_iter().fold(journal, MortalJournal::dying_at);
        Self { journal, ..self.clone() }
    }

    /// Returns a model that randomly calls the tools it is offered.
    pub fn model(&self) -> FaultyModel<RandomModel> {
        self.faulty(RandomModel::new(self.rng.part("model")))
    }

    /// Wraps your model with fault injection. Its responses must depend on the conversation alone,
    /// since another process may call it again.
    pub fn faulty<M: Model>(&self, model: M) -> FaultyModel<M> {
        FaultyModel::new(model, self.faults.clone())
    }

    /// Wraps your tool with fault injection, and records its effects in the world.
    pub fn tool<T: Tool>(&self, tool: T) -> FaultyTool<T> {
        FaultyTool::new(tool, self.faults.clone(), self.outside.clone())
    }

    /// Returns the journal for the agent's store.
    pub fn journal(&self) -> MortalJournal {
        self.journal.clone()
    }
}
