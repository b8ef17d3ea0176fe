//! Document passages in runs, and memories found by meaning.

use agent_core::{
    Checkpoint, Result, RunRequest, Usage, async_trait,
    testing::{ScriptedModel, Turn},
};
use agent_exec::Agent;
use agent_middleware::{Knowledge, LongTermMemory, memory::KnowledgeConfig};
use agent_retrieval::{
    embed::{EmbedRequest, EmbedResponse, Embedder, EmbedderInfo},
    memory::{Memory, MemoryStore},
};
use agent_store::{HybridMemoryStore, InMemoryVectorStore};
use agent_tools::retrieval::{Document, Retriever};
use serde_json::json;

use super::{asks, finished, says};

/// An embedder that recognises food.
struct Food;

#[async_trait]
impl Embedder for Food {
    fn info(&self) -> EmbedderInfo {
        EmbedderInfo::new("test", "food")
    }

    async fn embed(&self, req: EmbedRequest) -> Result<EmbedResponse> {
        let is_food = |text: &String| ["nuts", "cake", "eat"].iter().any(|word| text.contains(word));
        let vector = |text: &String| if is_food(text) { vec![1.0, 0.0] } else { vec![0.0, 1.0] };
        Ok(EmbedResponse::new(req.texts.iter().map(vector).collect(), Usage::default()))
    }
}

async fn menu(store: InMemoryVectorStore) -> Retriever {
    let retriever = Retriever::new(store, "menu").embedder(Food).min_similarity(0.5);
    let menu = Document::new("menu.md", "# Cakes\n\nThe walnut cake is our best.\n");
    retriever.index(vec![menu, Document::new("hours.txt", "We close at six.")]).await.expect("indexes");
    retriever
}

#[tokio::test]
async fn passages_that_fit_are_told_with_their_sources_and_are_not_kept_in_the_conversation() {
    let model = says(&["The walnut cake (menu.md:1-3)."]);
    let knowledge = Knowledge::new(menu(InMemoryVectorStore::default()).await);
    let agent = Agent::builder("waiter", model.clone()).middleware(knowledge).build().expect("builds");
    let end = finished(agent.start(RunRequest::user("What is there to eat?")).await);
    let told = model.requests()[0].texts();
    assert!(told[1].contains("<passages>\n[1] menu.md:1-3 (Cakes)\n# Cakes"), "{told:?}");
    assert!(!told[1].contains("We close"), "{told:?}");
    assert_eq!(end.history.len(), 2, "the question and the answer");
}

#[tokio::test]
async fn a_run_that_goes_on_in_another_process_is_told_the_same() {
    let store = InMemoryVectorStore::default();
    let model = ScriptedModel::new([Turn::call("c1", "wait", json!({})), Turn::text("The walnut cake.")]);
    let knowledge = Knowledge::new(menu(store.clone()).await);
    let agent = Agent::builder("waiter", model.clone()).tool(asks("wait")).middleware(knowledge).build();
    let agent = agent.expect("builds");
    let end = agent.start(RunRequest::user("What is there to eat?")).await.expect("runs");
    let checkpoint = match end {
        agent_core::RunEnd::Interrupted(checkpoint) => checkpoint.to_json().expect("serialises"),
        other => panic!("{other:?}"),
    };
    menu(store).await.index(vec![]).await.expect("empties it");
    let checkpoint = Checkpoint::from_json(&checkpoint).expect("parses");
    let answers = checkpoint.questions.iter().map(|q| (q.id.clone(), json!("well"))).collect::<Vec<_>>();
    finished(agent.start(RunRequest::resume(checkpoint, answers)).await);
    let told = model.requests()[1].texts();
    assert!(told.last().expect("a message").contains("menu.md:1-3"), "{told:?}");
}

#[tokio::test]
async fn what_is_told_is_bounded_and_nothing_is_told_where_nothing_fits() {
    let config: KnowledgeConfig = serde_json::from_str(r#"{"top_k": 1, "max_chars": 30}"#).expect("parses");
    let model = says(&["Yes.", "No."]);
    let knowledge = Knowledge::new(menu(InMemoryVectorStore::default()).await).config(config);
    let agent = Agent::builder("waiter", model.clone()).middleware(knowledge).build().expect("builds");
    finished(agent.start(RunRequest::user("Is there cake?")).await);
    finished(agent.start(RunRequest::user("")).await);
    let told = |at: usize| model.requests()[at].texts();
    assert!(told(0)[1].contains("cut here") && !told(0)[1].contains("our best"), "{:?}", told(0));
    assert_eq!(told(1).len(), 1);
}

#[tokio::test]
async fn a_memory_is_found_by_its_meaning_where_there_is_an_embedder() {
    let store = HybridMemoryStore::new(InMemoryVectorStore::default(), Food);
    let memories = ["Ada is allergic to nuts.", "Ada plays chess."].map(Memory::new);
    store.add("ada", memories.to_vec()).await.expect("adds");
    let model = says(&["The apple pie."]);
    let agent = Agent::builder("waiter", model.clone()).middleware(LongTermMemory::new(store)).build().expect("builds");
    finished(agent.start(RunRequest::user("What may I eat?").on_behalf_of("ada")).await);
    let told = model.requests()[0].texts();
    assert!(told[1].contains("allergic to nuts") && !told[1].contains("chess"), "{told:?}");
}
