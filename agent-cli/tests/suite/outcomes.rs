//! Effects happen once, and the exit code says whether a command did what it was asked to.

use std::{fs, path::Path};

use crate::support::{Model, agent, agent_on, end};
use serde_json::{Value, json};

fn write(dir: &Path, name: &str, text: &str) {
    fs::write(dir.join(name), text).unwrap();
}

fn lines(dir: &Path, name: &str) -> usize {
    fs::read_to_string(dir.join(name)).map_or(0, |text| text.lines().count())
}

/// An agent whose tool notes each of its calls, and then fails.
const CHARGES: &str = "name: a
description: Charges cards.
model: openai:scripted@chat
tools:
  - command:
      name: charge
      description: Charges a card.
      run: [sh, -c, 'echo charged >> charged.txt; echo no credit >&2; exit 1']
      root: .
      parameters: {type: object, properties: {cents: {type: integer}}, additionalProperties: false}
";

#[cfg(target_os = "linux")]
#[test]
fn a_tool_called_by_hand_runs_once_and_its_failure_is_the_exit_code() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "a.yaml", CHARGES);
    let (code, out, err) = end(&mut agent(dir.path()), &["tools", "a.yaml", "call", "charge", "{}"]);
    assert_eq!((code, out.as_str(), lines(dir.path(), "charged.txt")), (1, "", 1), "{err}");
    assert!(err.contains("no credit") && !err.contains("step limit"), "{err}");

    let wrong = ["tools", "a.yaml", "call", "charge", r#"{"cents": "many"}"#];
    let (code, out, err) = end(&mut agent(dir.path()), &wrong);
    assert_eq!((code, out.as_str(), lines(dir.path(), "charged.txt")), (1, "", 1), "{err}");
    assert!(err.contains("cents"), "{err}");

    let (code, out, _) = end(&mut agent(dir.path()), &["tools", "a.yaml", "call", "charge", "{}", "--json"]);
    let last: Value = serde_json::from_str(out.lines().last().unwrap()).unwrap();
    assert_eq!((code, &last["end"], lines(dir.path(), "charged.txt")), (1, &json!("failed"), 2), "{out}");
}

#[test]
fn a_tool_that_is_denied_when_it_is_called_by_hand_fails_the_command() {
    let dir = tempfile::tempdir().unwrap();
    let file =
        "name: a\nmodel: offline:any\ntools:\n  - workspace: {root: ., change: {write_file: {permission: deny}}}\n";
    write(dir.path(), "a.yaml", file);
    let call = ["tools", "a.yaml", "call", "write_file", r#"{"path": "b.md", "content": "x"}"#];
    let (code, out, err) = end(&mut agent(dir.path()), &call);
    assert_eq!((code, out.as_str()), (1, ""), "{err}");
    assert!(err.contains("not allowed"), "{err}");
}

#[test]
fn a_run_that_ends_without_an_answer_fails() {
    let dir = tempfile::tempdir().unwrap();
    let file = "name: a\nmodel: openai:scripted@chat\nbudget: {model_calls: 0}\n";
    write(dir.path(), "a.yaml", file);
    let model = Model::new([]);
    for args in [&["run", "a.yaml", "hi"][..], &["run", "--max-steps", "0", "hi"]] {
        let (code, out, err) = end(&mut agent_on(dir.path(), &model), args);
        assert_eq!((code, out.as_str()), (1, ""), "{args:?}: {err}");
        assert!(err.contains("ended without an answer"), "{err}");
    }
    let (code, out, _) = end(&mut agent_on(dir.path(), &model), &["run", "a.yaml", "--json", "hi"]);
    let last: Value = serde_json::from_str(out.lines().last().unwrap()).unwrap();
    assert_eq!((code, &last["end"], &last["answer"]), (1, &json!("finished"), &json!("")), "{out}");
}
