//! `long_term_memory`: what earlier conversations left behind.

#[cfg(feature = "sqlite")]
use std::path::PathBuf;

#[cfg(feature = "sqlite")]
use agent_core::async_trait;
use agent_core::{Error, Result};
use agent_exec::ModelDefinition;
use agent_middleware::{LongTermMemory, memory::LongTermMemoryConfig};
use agent_retrieval::memory::{Memory, MemoryQuery, MemoryStore, ScoredMemory};
#[cfg(feature = "sqlite")]
use agent_store::SqliteMemoryStore;
use agent_store::{HybridMemoryStore, InMemoryMemoryStore};
use schemars::JsonSchema;
use serde::Deserialize;
#[cfg(feature = "sqlite")]
use serde_json::{Map, Value};
#[cfg(feature = "sqlite")]
use tokio::sync::OnceCell;

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
    /// Store of memories: `memory`, `sqlite:PATH`, or with an embedder `postgres://..`. Default: `memory`.
    store: StoreAddress,
    /// Embedder, to also find memories by meaning. Default: none, which searches by words.
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
            StoreAddress::Sqlite(path) => Ok(LongTermMemory::new(LazyMemories::at(path.clone()))),
            #[cfg(not(feature = "sqlite"))]
            StoreAddress::Sqlite(_) => Err(self.store.off()),
            StoreAddress::Postgres(_) => {
                Err(Error::config("memories in PostgreSQL are found by vectors: name an 'embedder' beside the store"))
            }
        }
    }
}

/// Memories in a SQLite file that is opened on first use: an agent is built without I/O.
#[cfg(feature = "sqlite")]
struct LazyMemories {
    path: PathBuf,
    opened: OnceCell<SqliteMemoryStore>,
}

#[cfg(feature = "sqlite")]
impl LazyMemories {
    fn at(path: PathBuf) -> Self {
        Self { path, opened: OnceCell::new() }
    }

    async fn open(&self) -> Result<&SqliteMemoryStore> {
        self.opened.get_or_try_init(async || SqliteMemoryStore::open(&self.path)).await
    }
}

#[cfg(feature = "sqlite")]
#[async_trait]
impl MemoryStore for LazyMemories {
    async fn add(&self, user: &str, memories: Vec<Memory>) -> Result<Vec<String>> {
        self.open().await?.add(user, memories).await
    }

    async fn search(&self, user: &str, query: &MemoryQuery) -> Result<Vec<ScoredMemory>> {
        self.open().await?.search(user, query).await
    }

    async fn update(&self, user: &str, id: &str, text: &str, metadata: Map<String, Value>) -> Result<bool> {
        self.open().await?.update(user, id, text, metadata).await
    }

    async fn delete(&self, user: &str, id: &str) -> Result<bool> {
        self.open().await?.delete(user, id).await
    }

    async fn delete_all(&self, user: &str) -> Result<usize> {
        self.open().await?.delete_all(user).await
    }
}
