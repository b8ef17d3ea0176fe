//! Documents that are indexed, retrieved and searched by an agent.

use std::sync::{Arc, Mutex};

use agent_core::{Effect, ErrorKind, Result, Tool, Usage, async_trait};
use agent_retrieval::{
    embed::{EmbedRequest, EmbedResponse, Embedder, EmbedderInfo},
    memory::Filter,
    rank::{RankRequest, RankResponse, Ranked, Reranker, RerankerInfo},
    retrieval::{VectorQuery, VectorStore},
};
use agent_store::InMemoryVectorStore;
use agent_tools::retrieval::{Chunker, Document, IndexReport, Retriever, Search};
use serde_json::json;

use crate::support::call;

/// Embedder that knows two subjects, and records its inputs.
#[derive(Clone, Default)]
struct Subjects(Arc<Mutex<Vec<String>>>);

#[async_trait]
impl Embedder for Subjects {
    fn info(&self) -> EmbedderInfo {
        EmbedderInfo::new("test", "subjects")
    }

    async fn embed(&self, req: EmbedRequest) -> Result<EmbedResponse> {
        let about =
            |text: &str, words: &[&str]| words.iter().any(|word| text.to_lowercase().contains(word)) as u8 as f32;
        let vector = |text: &String| vec![about(text, &["bee", "insect"]), about(text, &["cake", "dessert"]), 0.1];
        let vectors = req.texts.iter().map(vector).collect();
        self.0.lock().expect("no panic").extend(req.texts);
        let mut usage = Usage::default();
        usage.input = 1;
        Ok(EmbedResponse::new(vectors, usage))
    }
}

impl Subjects {
    fn asked(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().expect("no panic"))
    }
}

struct Fixture {
    store: InMemoryVectorStore,
    embedder: Subjects,
    retriever: Retriever,
}

fn fixture() -> Fixture {
    let (store, embedder) = (InMemoryVectorStore::default(), Subjects::default());
    let chunker = Chunker::new(24).overlap(0).build().expect("builds");
    let retriever = Retriever::new(store.clone(), "c").embedder(embedder.clone()).chunker(chunker);
    Fixture { store, embedder, retriever }
}

fn bees(more: &str) -> Document {
    let text = format!(
        "{more}# Bees\n\nThey are kept in hives, and seldom sting.\n\n## Honey\n\nIt is taken in July, when there is enough of it.\n"
    );
    Document::new("bees.md", text).with("subject", "garden")
}

fn menu() -> Document {
    Document::new("menu.md", "# Cake\n\nThere is one with walnuts, and one with apples.\n").with("subject", "food")
}

fn counts(report: &IndexReport) -> (usize, usize, usize) {
    (report.added, report.unchanged, report.removed)
}

#[tokio::test]
async fn what_did_not_change_is_not_embedded_again_and_what_is_gone_goes() {
    let Fixture { store, embedder, retriever } = fixture();
    let report = retriever.index(vec![bees(""), menu()]).await.expect("indexes");
    assert_eq!((counts(&report), report.documents, report.usage.input), ((3, 0, 0), 2, 1));
    assert_eq!(embedder.asked().len(), 3);
    let report = retriever.index(vec![bees(""), menu()]).await.expect("indexes");
    assert_eq!((counts(&report), embedder.asked().len()), ((0, 3, 0), 0));
    let mut changed = bees("");
    changed.text = changed.text.replace("July", "August");
    let report = retriever.index(vec![changed]).await.expect("indexes");
    assert_eq!(counts(&report), (1, 1, 2), "the other chunk of the document, and the other document, went");
    assert!(embedder.asked()[0].contains("August"));
    assert_eq!(store.count("c", None).await.expect("counts"), 2);
    assert_eq!(retriever.remove(&["bees.md".to_owned()]).await.expect("removes"), 2);
}

#[tokio::test]
async fn what_only_moved_is_told_where_it_stands_now() {
    let Fixture { embedder, retriever, .. } = fixture();
    retriever.index(vec![bees("")]).await.expect("indexes");
    embedder.asked();
    let before = "# Foreword\n\nSome words that stand before all the others, and are long enough.\n\n";
    let report = retriever.index(vec![bees(before)]).await.expect("indexes");
    assert_eq!((counts(&report), embedder.asked().len()), ((1, 2, 0), 1));
    let found = retriever.search("honey in July").await.expect("searches");
    assert_eq!(found[0].source(), "bees.md:9-11 (Bees > Honey)");
}

#[tokio::test]
async fn documents_that_are_added_leave_the_others_alone() {
    let Fixture { store, retriever, .. } = fixture();
    retriever.add(vec![bees("")]).await.expect("adds");
    retriever.add(vec![menu()]).await.expect("adds");
    assert_eq!(store.count("c", None).await.expect("counts"), 3);
    let e = retriever.add(vec![menu(), menu()]).await.expect_err("two of one name");
    assert_eq!(e.kind(), ErrorKind::Config);
}

#[tokio::test]
async fn a_question_finds_what_it_means_and_what_it_says() {
    let Fixture { retriever, .. } = fixture();
    retriever.index(vec![bees(""), menu()]).await.expect("indexes");
    let found = retriever.search("Which dessert is there?").await.expect("searches");
    assert_eq!(found[0].document, "menu.md", "what is said of cake is about dessert");
    assert!(found[0].text.starts_with("# Cake") && found[0].headings == ["Cake"] && found[0].similarity.is_some());
    let found = retriever.search(Search::new("insects, hives").top_k(1)).await.expect("searches");
    assert_eq!((found.len(), found[0].source().as_str()), (1, "bees.md:1-4 (Bees)"));
    let found = retriever.search(Search::new("insects").filter(Filter::eq("subject", "food"))).await.expect("searches");
    assert!(found.iter().all(|passage| passage.document == "menu.md") && !found.is_empty(), "{found:?}");
    let limited = retriever.clone().filter(Filter::eq("subject", "garden"));
    let found = limited.search(Search::new("cake").filter(Filter::eq("subject", "food"))).await.expect("searches");
    assert!(found.is_empty(), "both filters hold: {found:?}");
}

#[tokio::test]
async fn a_collection_of_another_embedder_is_refused_before_anything_is_paid_for() {
    let Fixture { store, embedder, retriever } = fixture();
    retriever.index(vec![bees("")]).await.expect("indexes");
    embedder.asked();
    struct Other(Subjects);
    #[async_trait]
    impl Embedder for Other {
        fn info(&self) -> EmbedderInfo {
            EmbedderInfo::new("test", "other")
        }
        async fn embed(&self, req: EmbedRequest) -> Result<EmbedResponse> {
            self.0.embed(req).await
        }
    }
    let other = Retriever::new(store, "c").embedder(Other(embedder.clone()));
    let e = other.index(vec![menu()]).await.expect_err("refused");
    assert!(e.kind() == ErrorKind::Config && e.to_string().contains("test:subjects"), "{e}");
    assert!(embedder.asked().is_empty());
    let words = Retriever::new(InMemoryVectorStore::default(), "c");
    words.index(vec![bees("")]).await.expect("needs no embedder");
    assert_eq!(words.search("hives").await.expect("searches").len(), 1);
}

#[tokio::test]
async fn an_embedder_that_comes_later_embeds_what_was_found_by_words_alone() {
    let Fixture { store, embedder, retriever } = fixture();
    let chunker = Chunker::new(24).overlap(0).build().expect("builds");
    Retriever::new(store.clone(), "c").chunker(chunker).index(vec![bees("")]).await.expect("indexes");
    let report = retriever.index(vec![bees("")]).await.expect("indexes");
    assert_eq!((counts(&report), embedder.asked().len()), ((2, 0, 0), 2));
    let near = retriever.search("insects").await.expect("searches");
    assert!(near[0].similarity.is_some());
}

/// Reranker that prefers the shortest text.
struct Shortest;

#[async_trait]
impl Reranker for Shortest {
    fn info(&self) -> RerankerInfo {
        RerankerInfo::new("test", "shortest")
    }

    async fn rank(&self, req: RankRequest) -> Result<RankResponse> {
        let ranked = req.documents.iter().enumerate().map(|(at, text)| Ranked::new(at, -(text.len() as f32)));
        Ok(RankResponse::new(ranked.collect(), Usage::default()).best(req.top))
    }
}

/// Reranker that returns an index it was not given.
struct Confused;

#[async_trait]
impl Reranker for Confused {
    fn info(&self) -> RerankerInfo {
        RerankerInfo::new("test", "confused")
    }

    async fn rank(&self, _: RankRequest) -> Result<RankResponse> {
        Ok(RankResponse::new(vec![Ranked::new(99, 1.0)], Usage::default()))
    }
}

#[tokio::test]
async fn a_reranker_has_the_last_word_on_more_than_is_wanted() {
    let Fixture { retriever, .. } = fixture();
    let documents = (0..6).map(|n| Document::new(format!("{n}.txt"), format!("bees{}", " and bees".repeat(n))));
    retriever.index(documents.collect()).await.expect("indexes");
    let found = retriever.clone().reranker(Shortest).search(Search::new("bees").top_k(2)).await.expect("searches");
    assert_eq!(found.iter().map(|p| p.document.as_str()).collect::<Vec<_>>(), ["0.txt", "1.txt"]);
    assert_eq!(found[0].score, -4.0);
    let e = retriever.reranker(Confused).search("bees").await.expect_err("refused");
    assert_eq!(e.kind(), ErrorKind::Protocol);
}

#[tokio::test]
async fn progress_is_told_and_batches_are_bounded() {
    let (store, told) = (InMemoryVectorStore::default(), Arc::new(Mutex::new(Vec::new())));
    let tell = told.clone();
    let retriever =
        Retriever::new(store, "c").on_progress(move |progress| tell.lock().expect("no panic").push(progress));
    let documents = (0..150).map(|n| Document::new(format!("{n}.txt"), format!("text {n}")));
    retriever.index(documents.collect()).await.expect("indexes");
    let told: Vec<_> = told.lock().expect("no panic").iter().map(|p| (p.documents, p.of, p.added)).collect();
    assert_eq!(told, [(64, 150, 64), (128, 150, 128), (150, 150, 150)]);
}

#[tokio::test]
async fn the_tool_answers_with_sources_and_lines_and_never_too_much() {
    let Fixture { retriever, .. } = fixture();
    retriever.index(vec![bees(""), menu()]).await.expect("indexes");
    let tool = retriever.tool().max_chars(90);
    assert_eq!(tool.options().effect, Effect::Pure);
    let answer = call(&tool, json!({"query": "honey, July"})).await.expect("answers");
    let text = answer.to_text();
    assert!(text.contains("[1] bees.md:5-7 (Bees > Honey)") && text.contains("cut here"), "{text}");
    assert!(text.len() < 300, "{text}");
    let answer = call(&tool, json!({"query": "cake", "top_k": 1})).await.expect("answers");
    assert!(answer.to_text().contains("[1] menu.md:1-3"), "{answer:?}");
    let empty = Retriever::new(InMemoryVectorStore::default(), "c").tool();
    let answer = call(&empty, json!({"query": "cake"})).await.expect("answers");
    assert!(answer.to_text().contains("Nothing was found"));
}

#[tokio::test]
async fn the_headings_above_a_chunk_are_found_and_are_not_shown_twice() {
    let Fixture { store, retriever, .. } = fixture();
    retriever.index(vec![bees("")]).await.expect("indexes");
    let kept = store.search("c", &VectorQuery::text("July")).await.expect("searches");
    assert!(kept[0].record.text.starts_with("Bees > Honey\n\n## Honey"));
    assert!(retriever.search("July").await.expect("searches")[0].text.starts_with("## Honey"));
}
