//! `agent eval`, through the program itself.

use crate::support;

use std::fs;

use serde_json::{Value, json};
use support::{Model, Reply, agent_on, end};

const FILE: &str = "name: keeper\ndescription: Knows bees.\nmodel: openai:scripted@chat\ntools:\n  - workspace: {root: ., read_only: true}\n";

fn folder(cases: &str) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("keeper.yaml"), FILE).unwrap();
    fs::write(dir.path().join("bees.md"), "Bees hum.").unwrap();
    fs::write(dir.path().join("cases.yaml"), cases).unwrap();
    dir
}

#[test]
fn each_case_is_held_against_what_came_of_it() {
    let dir = folder(
        "- {name: whole, input: a, equals: They hum.}\n\
         - {name: parts, input: b, contains: [hum, sting], matches: '^They'}\n\
         - {name: form, input: c, schema: {type: object, required: [n]}}\n\
         - {name: reads, input: d, tools: [read_file], no_tools: [grep]}\n\
         - {name: lazy, input: e, tools: [read_file]}\n",
    );
    let hum = || Reply::Text("They hum.");
    let model = Model::new([
        hum(),
        hum(),
        Reply::Text("{\"n\": 1}"),
        Reply::Call("read_file", json!({"path": "bees.md"})),
        hum(),
        hum(),
    ]);
    let args = ["eval", "keeper.yaml", "cases.yaml", "--concurrency", "1", "--json", "--junit", "report.xml"];
    let (code, out, err) = end(&mut agent_on(dir.path(), &model), &args);
    assert_eq!(code, 1, "{err}");
    let lines: Vec<Value> = out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let passed: Vec<_> = lines.iter().map(|line| (line["case"].as_str().unwrap(), line["passed"] == 1)).collect();
    assert_eq!(passed, [("whole", true), ("parts", false), ("form", true), ("reads", true), ("lazy", false)], "{out}");
    assert!(lines[1]["tries"][0]["faults"][0].as_str().unwrap().contains("'sting' is not in the answer"), "{out}");
    let report = fs::read_to_string(dir.path().join("report.xml")).unwrap();
    assert!(report.contains("tests=\"5\" failures=\"2\"") && report.contains("was not called"), "{report}");
}

#[test]
fn an_evaluation_is_compared_with_an_earlier_one() {
    let dir = folder("- {name: hums, input: a, equals: They hum.}\n");
    let eval = |replies: [&'static str; 2], more: &[&str]| {
        let model = Model::new(replies.map(Reply::Text));
        let args = [&["eval", "keeper.yaml", "cases.yaml", "--repeat", "2", "--concurrency", "1"], more].concat();
        end(&mut agent_on(dir.path(), &model), &args)
    };
    let (code, out, _) = eval(["They hum.", "They sting."], &["--save", "before.json"]);
    assert!(code == 1 && out.contains("1 of 2") && out.contains("hums, try 2: the answer is another"), "{out}");
    assert_eq!(eval(["They sting.", "They hum."], &["--baseline", "before.json"]).0, 0, "no worse than before");
    let (code, _, err) = eval(["They sting.", "They sting."], &["--baseline", "before.json"]);
    assert!(code == 1 && err.contains("less often than before: hums"), "{err}");
}

#[test]
fn a_model_judges_where_a_case_says_so_and_a_budget_is_kept() {
    let dir = folder("- {name: judged, input: a, judge: It speaks of humming., budget: {model_calls: 5}}\n");
    let verdict = |good: bool| {
        if good {
            Reply::Text("{\"verdict\": \"stop\", \"feedback\": \"\"}")
        } else {
            Reply::Text("{\"verdict\": \"continue\", \"feedback\": \"It does not hum.\"}")
        }
    };
    let args = ["eval", "keeper.yaml", "cases.yaml", "--judge", "openai:scripted@chat"];
    let model = Model::new([Reply::Text("They hum."), verdict(true)]);
    let (code, out, err) = end(&mut agent_on(dir.path(), &model), &args);
    assert_eq!(code, 0, "{out}{err}");
    let model = Model::new([Reply::Text("They sting."), verdict(false)]);
    let (code, out, _) = end(&mut agent_on(dir.path(), &model), &args);
    assert!(code == 1 && out.contains("It does not hum."), "{out}");
    let (code, _, err) = end(&mut agent_on(dir.path(), &model), &args[..3]);
    assert!(code == 2 && err.contains("--judge"), "{err}");
}

#[test]
fn cases_that_are_wrong_are_told_before_anything_is_asked() {
    for (cases, why) in [
        ("- {name: a, input: a, matches: '('}\n", "case 'a'"),
        ("- {name: a, input: a, equal: x}\n", "equal"),
        ("- {name: a, input: a}\n- {name: a, input: b}\n", "two cases are called 'a'"),
        ("[]", "no case"),
    ] {
        let dir = folder(cases);
        let model = Model::new([]);
        let (code, _, err) = end(&mut agent_on(dir.path(), &model), &["eval", "keeper.yaml", "cases.yaml"]);
        assert!(code == 2 && err.contains(why) && err.contains("cases.yaml"), "{err}");
        assert!(model.asked.lock().unwrap().is_empty());
    }
}
