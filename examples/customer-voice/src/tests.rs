use agent::testing::{ScriptedModel, Turn};
use serde_json::{Value, json};

use super::*;
use crate::{classifier::Topic, documents::Document};

fn documents(count: usize) -> Vec<Document> {
    let mut all = documents::read_or_generate(None).expect("generates");
    assert_eq!(all.len(), 10_000);
    all.truncate(count);
    all
}

/// Classifies documents with the rules within a budget, as a process of its own would.
async fn run(folder: &std::path::Path, dollars: f64, documents: Vec<Document>) -> Outcome {
    let mut results = Results::open(&folder.join("results.jsonl")).expect("opens");
    let budget = classifier::budget(dollars, results.spent()).expect("a budget");
    let agent = classifier::build(Rules::new().expect("prices"), budget).expect("builds");
    batch::run(&agent, documents, &mut results, 8).await.expect("runs")
}

#[tokio::test]
async fn every_document_has_one_result_and_a_second_run_calls_no_model() {
    let folder = tempfile::tempdir().expect("a folder");

    let first = run(folder.path(), 2.0, documents(100)).await;
    let second = run(folder.path(), 2.0, documents(100)).await;

    assert_eq!((first.classified, first.left), (100, 0));
    assert_eq!((second.classified, second.known), (0, 100));
    let results = Results::open(&folder.path().join("results.jsonl")).expect("opens");
    assert_eq!(results.rows().len(), 100);
}

#[tokio::test]
async fn the_budget_stops_the_batch_and_a_larger_one_continues_it() {
    let folder = tempfile::tempdir().expect("a folder");

    let first = run(folder.path(), 0.001, documents(200)).await;
    let same = run(folder.path(), 0.001, documents(200)).await;
    let more = run(folder.path(), 1.0, documents(200)).await;

    assert!(first.classified > 10 && first.left > 10, "{first:?}");
    assert!(same.classified < 10, "the results know their cost: {same:?}");
    assert_eq!((more.known + more.classified, more.left), (200, 0));
}

#[tokio::test]
async fn a_document_whose_answer_is_invalid_is_tried_again_by_the_next_run() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut results = Results::open(&folder.path().join("results.jsonl")).expect("opens");
    let voice = json!({"topic": "price", "sentiment": "negative", "point": "too expensive"});
    let call = |arguments: Value| Turn::call("c1", "final_answer", arguments);
    let model = ScriptedModel::new([call(json!({})), call(json!({})), call(voice)]);
    let agent =
        Agent::builder("classifier", model).middleware(agent::Structured::<classifier::Voice>::new().expect("a form"));
    let agent = agent.build().expect("builds");

    let first = batch::run(&agent, documents(1), &mut results, 1).await.expect("runs");
    let second = batch::run(&agent, documents(1), &mut results, 1).await.expect("runs");

    assert_eq!((first.classified, first.failed), (0, 1));
    assert_eq!((second.classified, results.rows()[0].voice.topic), (1, Topic::Price));
}

#[tokio::test]
async fn a_refused_key_ends_the_batch_at_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut results = Results::open(&folder.path().join("results.jsonl")).expect("opens");
    let refused = || Turn::error(|| Error::new(ErrorKind::Authentication, "unknown key"));
    let model = ScriptedModel::new((0..100).map(|_| refused()));
    let agent = Agent::builder("classifier", model.clone()).build().expect("builds");

    let error = batch::run(&agent, documents(100), &mut results, 4).await.expect_err("it is refused");

    assert_eq!(error.kind(), ErrorKind::Authentication);
    assert!(model.calls() <= 8, "{} calls", model.calls());
}

#[test]
fn an_incomplete_last_line_of_a_killed_run_is_removed() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("results.jsonl");
    let whole = r#"{"id": "a", "cost": 20, "topic": "price", "sentiment": "negative", "point": "dear"}"#;
    std::fs::write(&path, format!("{whole}\n{{\"id\": \"b\", \"to")).expect("writes");

    let results = Results::open(&path).expect("opens");

    assert!(results.has("a") && !results.has("b"));
    assert_eq!(std::fs::read_to_string(&path).expect("reads"), format!("{whole}\n"));
}

#[test]
fn the_report_counts_topics_and_names_the_most_frequent_complaint() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("results.jsonl");
    let row =
        |id, sentiment, point| json!({"id": id, "cost": 20, "topic": "price", "sentiment": sentiment, "point": point});
    let rows = [row("1", "negative", "too | dear"), row("2", "negative", "too | dear"), row("3", "positive", "fair")];
    std::fs::write(&path, rows.map(|row| format!("{row}\n")).concat()).expect("writes");

    let report = report::markdown(Results::open(&path).expect("opens").rows());

    assert!(report.contains("# What 3 customers say"), "{report}");
    assert!(report.contains("| price | 3 | 66 % | too \\| dear |"), "{report}");
}

#[test]
fn a_wrong_line_of_the_input_is_named_with_the_form_to_write() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("in.jsonl");
    std::fs::write(&path, "{\"id\": \"a\", \"text\": \"x\"}\n{\"id\": 7}\n").expect("writes");
    let error = documents::read_or_generate(Some(&path)).expect_err("a wrong line");
    assert!(error.message().contains("in.jsonl:2:") && error.message().contains(r#""text": "..""#), "{error}");
}
