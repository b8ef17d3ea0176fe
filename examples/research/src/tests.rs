use agent::testing::{ScriptedModel, Turn};
use serde_json::{Value, json};

use super::*;
use crate::library::Library;

/// Two small collections.
async fn libraries() -> Vec<Library> {
    let bees = "# Bees\n\n## Honey\n\nHoney is taken in July.\n";
    let menu = "# Menu\n\nThe honey cake has no nuts.\n";
    let mut all = Vec::new();
    for (name, id, text) in [("garden", "garden/bees.md", bees), ("kitchen", "kitchen/menu.md", menu)] {
        all.push(Library::new(name, [(id.to_owned(), text.to_owned())].into()).await.expect("indexes"));
    }
    all
}

fn report(source: &str) -> Value {
    json!({"summary": "In July.", "findings": [{"claim": "Honey is taken in July.", "sources": [source]}]})
}

/// A team whose lead asks both researchers and then gives these reports.
fn team(libraries: &[Library], reports: impl IntoIterator<Item = Value>) -> (Agent, ScriptedModel) {
    let ask = |id, agent| (id, "delegate", json!({"agent": agent, "message": "When is honey taken?"}));
    let mut turns = vec![Turn::calls([ask("d1", "garden"), ask("d2", "kitchen")])];
    turns.extend(reports.into_iter().map(|report| Turn::call("r", "final_answer", report)));
    let lead = ScriptedModel::new(turns);
    let model = |role: &str| {
        let search = Turn::call("s1", "search_knowledge", json!({"query": "honey"}));
        Ok(match role {
            "lead" => lead.clone(),
            _ => ScriptedModel::new([search, Turn::text(format!("{role} knows it."))]),
        })
    };
    (team::build(libraries, model).expect("builds"), lead)
}

#[tokio::test]
async fn the_lead_receives_what_every_researcher_found_and_cites_lines_that_exist() {
    let libraries = libraries().await;
    let (agent, lead) = team(&libraries, [report("garden/bees.md:5")]);

    let report = ask(&agent, "When is honey taken?".into()).await.expect("answers");

    let results = lead.requests()[1].results();
    assert_eq!(
        results.iter().map(|(_, text)| text.as_str()).collect::<Vec<_>>(),
        ["garden knows it.", "kitchen knows it."]
    );
    let text = report.to_markdown(&libraries).expect("cites");
    assert!(text.contains("1. Honey is taken in July.\n   garden/bees.md:5\n   > Honey is taken in July."), "{text}");
    lead.assert_finished();
}

#[tokio::test]
async fn an_invented_source_is_returned_to_the_model_which_cites_another() {
    let libraries = libraries().await;
    let (agent, lead) = team(&libraries, [report("garden/bees.md:90-95"), report("garden/bees.md:3-5 (Bees > Honey)")]);

    let report = ask(&agent, "When is honey taken?".into()).await.expect("answers");

    assert_eq!(report.findings[0].sources, ["garden/bees.md:3-5 (Bees > Honey)"]);
    let told = lead.requests()[2].texts().join("\n");
    assert!(told.contains("'garden/bees.md' has the lines 1 to 5, not 90 to 95"), "{told}");
}

#[tokio::test]
async fn a_report_whose_second_citation_is_invented_too_is_an_error_and_no_report() {
    let libraries = libraries().await;
    let (agent, _) = team(&libraries, [report("nowhere.md:1"), report("nowhere.md:2")]);

    let error = ask(&agent, "When is honey taken?".into()).await.expect_err("nothing is cited");

    assert_eq!(error.kind(), ErrorKind::InvalidAnswer);
}

#[tokio::test]
async fn a_claim_without_a_source_is_refused() {
    let libraries = libraries().await;
    let report: Report =
        serde_json::from_value(json!({"summary": "", "findings": [{"claim": "Bees hum.", "sources": []}]}))
            .expect("a report");
    assert_eq!(
        report.check(&libraries),
        Err("the claim 'Bees hum.' has no source: cite one, or remove the claim".into())
    );
}

#[tokio::test]
async fn the_script_answers_any_question_about_any_collection() {
    let libraries = libraries().await;
    let mut script = script::quoting(&libraries, "Which cake has no nuts?").await.expect("a script");
    let agent = team::build(&libraries, |role| script.take(role)).expect("builds");

    let report = ask(&agent, "Which cake has no nuts?".into()).await.expect("answers");

    assert!(report.to_markdown(&libraries).expect("cites").contains("> The honey cake has no nuts."));
}

#[tokio::test]
async fn a_collection_that_cannot_be_read_is_an_error_that_says_what_to_write() {
    for wrong in ["docs", "=docs", "notes=/does/not/exist"] {
        let error = library::open_all(&[wrong.into()]).await.expect_err(wrong);
        assert!(error.message().contains("--collection NAME=DIR"), "{error}");
    }
}
