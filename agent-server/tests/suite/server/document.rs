//! The OpenAPI document, compared with the routes.

use std::collections::BTreeSet;

use http::Method;
use http_body_util::Full;
use serde_json::Value;

use super::support::{Serving, support};

/// Returns the routes in the sources, with the prefix of their mount point.
fn routes() -> BTreeSet<String> {
    let mut routes = BTreeSet::new();
    let protocols = ["src/ag_ui", "src/ui_stream", "src/openai", "src/a2a", "src/auth", "src/teams", "src"]
        .map(|folder| (folder, ""));
    for (folder, prefix) in protocols.into_iter().chain([("src/api", "/api")]) {
        let mut folders = vec![std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(folder)];
        while let Some(at) = folders.pop() {
            for entry in std::fs::read_dir(at).expect("a folder") {
                let path = entry.expect("an entry").path();
                if path.is_dir() {
                    folders.extend((folder != "src").then_some(path));
                } else {
                    let text = std::fs::read_to_string(path).expect("a file");
                    let named = text.split(".route(\"").skip(1).filter_map(|rest| rest.split('"').next());
                    routes.extend(named.map(|route| format!("{prefix}{route}")));
                }
            }
        }
    }
    routes
}

#[tokio::test]
async fn the_document_has_every_route_and_every_route_of_it_is_there() {
    let serving = Serving::of(support([])).await;
    let client = serving.client();
    let document = client.get("/openapi.json").await.json();
    assert_eq!(document["openapi"], "3.1.0");
    let paths = document["paths"].as_object().expect("paths");
    assert_eq!(paths.keys().cloned().collect::<BTreeSet<_>>(), routes());
    for (path, operations) in paths {
        for method in operations.as_object().expect("operations").keys() {
            let method: Method = method.to_uppercase().parse().expect("a method");
            let path = path.replace(['{', '}'], "");
            let answer =
                client.answer(client.request(method.clone(), &path).body(Full::default()).expect("a request")).await;
            assert_ne!(answer.status, 405, "{method} {path}");
            let is_unknown = answer.status == 404 && answer.text.contains("unknown path");
            assert!(!is_unknown, "{method} {path}");
        }
    }
}

#[tokio::test]
async fn what_the_document_refers_to_is_in_it() {
    let document = Serving::of(support([])).await.client().get("/openapi.json").await.json();
    fn references<'a>(value: &'a Value, found: &mut Vec<&'a str>) {
        match value {
            Value::Object(fields) => {
                found.extend(fields.get("$ref").and_then(Value::as_str));
                fields.values().for_each(|value| references(value, found));
            }
            Value::Array(values) => values.iter().for_each(|value| references(value, found)),
            _ => {}
        }
    }
    let mut found = Vec::new();
    references(&document, &mut found);
    assert!(found.len() > 20);
    for reference in found {
        assert!(document.pointer(reference.trim_start_matches('#')).is_some(), "{reference}");
    }
}

#[tokio::test]
async fn every_operation_shows_an_example_of_what_is_sent_and_answered() {
    let document = Serving::of(support([])).await.client().get("/openapi.json").await.json();
    let mut examples = 0;
    let mut shows = |content: &Value| {
        let kinds = content.as_object().into_iter().flat_map(|kinds| kinds.values());
        kinds.inspect(|_| examples += 1).all(|kind| kind.get("example").is_some())
    };
    for (path, operations) in document["paths"].as_object().expect("paths") {
        for (method, operation) in operations.as_object().expect("operations") {
            assert!(shows(&operation["requestBody"]["content"]), "{method} {path}: what is sent");
            let answers = operation["responses"].as_object().expect("responses");
            for (status, answer) in answers.iter().filter(|(status, _)| *status != "default") {
                assert!(shows(&answer["content"]), "{method} {path}: {status}");
            }
        }
    }
    assert!(examples > 30, "{examples}");
}
