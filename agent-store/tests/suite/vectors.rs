//! Vector stores in memory and in a file: conformance tests, and tests of the file.

use std::{collections::HashMap, sync::Mutex};

use agent_core::{Result, Usage, async_trait};
use agent_retrieval::{
    embed::{EmbedRequest, EmbedResponse, Embedder, EmbedderInfo},
    search::words,
};

mod in_memory {
    use std::sync::Arc;

    use agent_retrieval::retrieval::VectorStore;

    agent_store::vector_store_conformance!(|| {
        (Arc::new(agent_store::InMemoryVectorStore::default()) as Arc<dyn VectorStore>, ())
    });
}

mod memories_in_memory {
    agent_store::memory_store_conformance!(|| {
        let store = agent_store::InMemoryVectorStore::default();
        (agent_store::HybridMemoryStore::new(store, super::Words::default()), ())
    });
}

/// Embedder that gives each word its own direction: texts are similar if they share words.
#[derive(Default)]
struct Words(Mutex<HashMap<String, usize>>);

#[async_trait]
impl Embedder for Words {
    fn info(&self) -> EmbedderInfo {
        EmbedderInfo::new("test", "words").with_dimensions(256)
    }

    async fn embed(&self, req: EmbedRequest) -> Result<EmbedResponse> {
        let mut known = self.0.lock().expect("no panic");
        let vectors = req.texts.iter().map(|text| {
            let mut vector = vec![0.0; 256];
            for word in words(text) {
                let next = known.len();
                vector[*known.entry(word).or_insert(next)] += 1.0;
            }
            vector
        });
        Ok(EmbedResponse::new(vectors.collect(), Usage::default()))
    }
}

#[cfg(feature = "sqlite")]
mod sqlite {
    use std::{path::Path, sync::Arc};

    use agent_core::ErrorKind;
    use agent_retrieval::retrieval::{Record, Vector, VectorQuery, VectorStore};
    use agent_store::{SqliteMemoryStore, SqliteVectorStore};

    fn open(dir: &Path) -> SqliteVectorStore {
        SqliteVectorStore::open(dir.join("vectors.db")).expect("opens")
    }

    agent_store::vector_store_conformance!(|| {
        let dir = tempfile::tempdir().expect("a directory");
        (Arc::new(open(dir.path())) as Arc<dyn VectorStore>, dir)
    });

    mod memories {
        agent_store::memory_store_conformance!(|| {
            let dir = tempfile::tempdir().expect("a directory");
            let store = super::open(dir.path());
            (agent_store::HybridMemoryStore::new(store, crate::vectors::Words::default()), dir)
        });
    }

    fn record(id: &str) -> Record {
        Record::new(id, format!("about {id}")).vector(Vector::of("test:e", vec![1.0, 2.0]))
    }

    #[tokio::test]
    async fn what_was_kept_is_there_for_the_next_process_with_its_space() {
        let dir = tempfile::tempdir().expect("a directory");
        open(dir.path()).upsert("c", vec![record("bees")]).await.expect("keeps");
        let again = open(dir.path());
        assert_eq!(again.get("c", &["bees".to_owned()]).await.expect("reads"), [record("bees")]);
        let other = Record::new("x", "x").vector(Vector::of("other:e", vec![1.0, 2.0]));
        assert_eq!(again.upsert("c", vec![other]).await.expect_err("refused").kind(), ErrorKind::Config);
    }

    #[tokio::test]
    async fn a_batch_that_fails_in_the_middle_leaves_nothing() {
        let dir = tempfile::tempdir().expect("a directory");
        let store = open(dir.path());
        store.upsert("c", vec![record("old")]).await.expect("keeps");
        let refuse = "CREATE TRIGGER refuse BEFORE INSERT ON record WHEN NEW.id = 'broken'
                      BEGIN SELECT RAISE(ABORT, 'refused'); END";
        rusqlite::Connection::open(dir.path().join("vectors.db"))
            .and_then(|c| c.execute_batch(refuse))
            .expect("a trigger");
        let changed = Record::new("old", "something else");
        let e = store.upsert("c", vec![changed, record("new"), record("broken")]).await.expect_err("fails");
        assert_eq!(e.kind(), ErrorKind::Store);
        let ids = ["old", "new", "broken"].map(str::to_owned);
        assert_eq!(store.get("c", &ids).await.expect("reads"), [record("old")]);
        let found = store.search("c", &VectorQuery::text("else new old").top_k(9)).await.expect("searches");
        assert_eq!(found.len(), 1, "{found:?}");
        store.upsert("c", vec![record("new")]).await.expect("the store works on");
    }

    #[tokio::test]
    async fn files_of_another_kind_are_left_alone() {
        let dir = tempfile::tempdir().expect("a directory");
        let (memories, vectors) = (dir.path().join("memories.db"), dir.path().join("vectors.db"));
        drop(SqliteMemoryStore::open(&memories).expect("opens"));
        drop(open(dir.path()));
        assert_eq!(SqliteVectorStore::open(&memories).expect_err("refused").kind(), ErrorKind::Store);
        assert_eq!(SqliteMemoryStore::open(&vectors).expect_err("refused").kind(), ErrorKind::Store);
    }
}
