use agent::testing::{ScriptedModel, Turn};
use serde_json::{Value, json};
use tempfile::{NamedTempFile, TempDir};

use super::*;

/// The sample database, and an empty folder for charts.
fn sample() -> (NamedTempFile, Database, TempDir) {
    let file = database::sample().expect("creates");
    let database = Database::open(file.path()).expect("opens");
    (file, database, tempfile::tempdir().expect("a folder"))
}

/// Runs the agent with one call, and returns the text of its result.
async fn result_of(tool: &str, arguments: Value) -> (String, TempDir) {
    let (_file, database, folder) = sample();
    let model = ScriptedModel::new([Turn::call("c1", tool, arguments), Turn::text("Done.")]);
    let charts = Charts::open(folder.path()).expect("opens");
    let agent = analyst::build(model.clone(), database, charts).expect("builds");
    agent.run("How many?").await.expect("runs");
    (model.requests()[1].results()[0].1.clone(), folder)
}

#[tokio::test]
async fn the_script_answers_with_figures_of_the_database_and_writes_two_charts() {
    let (_file, database, folder) = sample();
    let model = script::about_the_sample(&database).await.expect("a script");
    let charts = Charts::open(folder.path()).expect("opens");
    let agent = analyst::build(model.clone(), database, charts).expect("builds");

    let end = agent.run("How did revenue develop?").await.expect("runs").into_result().expect("finishes");

    assert_eq!((end.tool_calls["query"], end.tool_calls["draw_chart"]), (1, 2));
    let line = std::fs::read_to_string(folder.path().join("revenue-by-month-in-francs.svg")).expect("a chart");
    assert!(line.contains("<polyline") && line.contains(">2025-12</text>"), "{line}");
    let bars = std::fs::read_to_string(folder.path().join("revenue-by-city-in-francs.svg")).expect("a chart");
    assert_eq!(bars.matches("fill=\"#2f6f9f\"").count(), 4, "one bar for each city");
    model.assert_finished();
}

#[tokio::test]
async fn the_model_receives_the_schema_and_the_rows() {
    let (_file, database, folder) = sample();
    let call = Turn::call("c1", "query", json!({"sql": "select count(*) as orders from orders"}));
    let model = ScriptedModel::new([call, Turn::text("720.")]);
    let charts = Charts::open(folder.path()).expect("opens");
    let agent = analyst::build(model.clone(), database, charts).expect("builds");

    agent.run("How many orders are there?").await.expect("runs");

    let requests = model.requests();
    assert!(requests[0].system.as_deref().is_some_and(|prompt| prompt.to_lowercase().contains("create table orders")));
    let table: Value = serde_json::from_str(&requests[1].results()[0].1).expect("JSON");
    assert_eq!(table, json!({"columns": ["orders"], "rows": [[720]], "is_truncated": false}));
}

#[tokio::test]
async fn a_result_has_at_most_200_rows_and_says_so() {
    let (_file, database, _) = sample();
    let table = database.query("select id from orders").await.expect("runs");
    assert_eq!((table.rows.len(), table.is_truncated), (database::MOST_ROWS, true));
}

#[tokio::test]
async fn no_statement_of_the_model_changes_the_database_or_opens_another_file() {
    for sql in ["delete from orders", "drop table orders", "attach '/tmp/other.db' as other", "create table t (x)"] {
        let (_file, database, _) = sample();
        database.query(sql).await.expect_err(sql);
        let left = database.query("select count(*) from orders").await.expect("counts");
        assert_eq!(left.rows, [[json!(720)]], "after {sql}");
    }
}

#[tokio::test]
async fn a_wrong_query_is_a_message_that_the_model_can_correct() {
    let (text, _) = result_of("query", json!({"sql": "select revenue from orders"})).await;
    assert!(text.contains("no such column: revenue"), "{text}");
}

#[tokio::test]
async fn a_chart_has_escaped_texts_and_a_file_name_without_a_path() {
    let sql = "select '<b>' as label, 3 as value union all select 'b', -1";
    let (text, folder) = result_of("draw_chart", json!({"title": "../../A & B", "kind": "bar", "sql": sql})).await;
    assert!(text.contains("a-b.svg has 2 points."), "{text}");
    let svg = std::fs::read_to_string(folder.path().join("a-b.svg")).expect("a chart");
    assert!(svg.contains("../../A &amp; B") && svg.contains("&lt;b&gt;"), "{svg}");
}

#[tokio::test]
async fn a_chart_of_too_many_points_or_of_texts_is_refused_with_what_to_do() {
    for (sql, reason) in [
        ("select id, pieces from orders", "group or limit the rows"),
        ("select name, city from customers", "select a label and a value"),
        ("select name, id from customers where id > 99", "nothing to draw"),
    ] {
        let (text, _) = result_of("draw_chart", json!({"title": "t", "kind": "line", "sql": sql})).await;
        assert!(text.contains(reason), "{sql}: {text}");
    }
}

#[test]
fn a_file_that_is_no_database_is_refused_with_the_option_to_set() {
    let error = Database::open(std::path::Path::new("Cargo.toml")).expect_err("no database");
    assert!(error.message().contains("--database"), "{error}");
}
