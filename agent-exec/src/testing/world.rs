//! What an agent of a simulation is made of.

use agent_core::{
    MemoryJournal, Model, Tool,
    testing::{Faults, FaultyModel, FaultyTool, MortalJournal, Outside, RandomModel, SeededRng},
};

/// One process of a simulation: it gives the parts that an agent is built of. Every process has the same world outside and
/// the same journal, and they die at different moments.
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

    /// The next process, which dies at its entry of this number.
    pub(super) fn reborn(&self, dies_at: Option<u64>) -> Self {
        let journal = MortalJournal::new(self.kept.clone()).shuffled(self.faults.clone());
        let journal = dies_at.into_iter().fold(journal, MortalJournal::dying_at);
        Self { journal, ..self.clone() }
    }

    /// A model that calls whatever it is offered.
    pub fn model(&self) -> FaultyModel<RandomModel> {
        self.faulty(RandomModel::new(self.rng.part("model")))
    }

    /// A model of your own, with whom things go wrong. What it says must depend on the conversation alone: another process
    /// may ask it again.
    pub fn faulty<M: Model>(&self, model: M) -> FaultyModel<M> {
        FaultyModel::new(model, self.faults.clone())
    }

    /// A tool of yours, with which things go wrong, and whose work the world remembers.
    pub fn tool<T: Tool>(&self, tool: T) -> FaultyTool<T> {
        FaultyTool::new(tool, self.faults.clone(), self.outside.clone())
    }

    /// Where the agent is to keep its runs.
    pub fn journal(&self) -> MortalJournal {
        self.journal.clone()
    }
}
