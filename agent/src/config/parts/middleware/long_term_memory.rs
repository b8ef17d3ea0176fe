//! `long_term_memory`: what earlier conversations left behind.

use agent_core::{Error, Result};
use agent_exec::ModelDefinition;
use agent_middleware::{LongTermMemory, memory::LongTermMemoryConfig};
use agent_store::{HybridMemoryStore, InMemoryMemoryStore};
use schemars::JsonSchema;
use serde::Deserialize;

use super::{beside, read, split};
use crate::config::{
    Registry, StoreAddress,
    file::ModelRef,
    parts::knowledge::{EmbedderRef, Vectors},
};

const NAME: &str = "long_term_memory";

#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
struct Memories {
    /// Where memories are kept: `memory`, `sqlite:PATH`, or with an embedder `postgres://..`. Default: `memory`.
    store: StoreAddress,
    /// What makes vectors, so that memories are found by their meaning, too. Default: none, their words decide.
    embedder: Option<EmbedderRef>,
    /// The least cosine at which a memory is found that has none of the question's words. Default: 0.2.
    #[schemars(range(min = -1.0, max = 1.0))]
    min_similarity: Option<f32>,
    /// The model that says what of a run is worth remembering, in the place of keeping the exchange. Default: none.
    #[schemars(with = "Option<ModelRef>")]
    facts: Option<ModelDefinition>,
}

pub(super) fn register(registry: Registry) -> Registry {
    registry.middleware_made(
        NAME,
        |generator| beside::<Memories>(generator.subschema_for::<LongTermMemoryConfig>(), generator),
        |config, from| {
            let (own, config) = split::<Memories>(NAME, config)?;
            let config: LongTermMemoryConfig = read(NAME, config)?;
            let memory = own.opened()?.config(config);
            match &own.facts {
                Some(model) => Ok(memory.facts_with(from.registry.make_model(model)?)),
                None => Ok(memory),
            }
        },
    )
}

impl Memories {
    fn opened(&self) -> Result<LongTermMemory> {
        if let Some(embedder) = &self.embedder {
            let store = HybridMemoryStore::new(Vectors::at(self.store.clone()), embedder.make()?);
            return Ok(LongTermMemory::new(match self.min_similarity {
                Some(least) => store.min_similarity(least),
                None => store,
            }));
        }
        if self.min_similarity.is_some() {
            return Err(Error::config("'min_similarity' is about vectors: name an 'embedder' beside it"));
        }
        match &self.store {
            StoreAddress::Memory => Ok(LongTermMemory::new(InMemoryMemoryStore::default())),
            #[cfg(feature = "sqlite")]
            StoreAddress::Sqlite(path) => Ok(LongTermMemory::new(agent_store::SqliteMemoryStore::open(path)?)),
            #[cfg(not(feature = "sqlite"))]
            StoreAddress::Sqlite(_) => Err(self.store.off()),
            StoreAddress::Postgres(_) => {
                Err(Error::config("memories in PostgreSQL are found by vectors: name an 'embedder' beside the store"))
            }
        }
    }
}
