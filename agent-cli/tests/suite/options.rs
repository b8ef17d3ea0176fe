//! Every option of the command line has an effect, or is refused.

use std::{fs, path::Path};

use crate::support::{Model, Reply, agent, agent_on, end};
use serde_json::{Value, json};

fn write(dir: &Path, name: &str, text: &str) {
    fs::write(dir.join(name), text).unwrap();
}

fn wrote(dir: &Path) -> bool {
    dir.join("new.md").exists()
}

/// An agent that asks about `write_file` and never deletes.
const ASKS: &str = "name: a\nmodel: openai:scripted@chat\ntools:\n  - workspace: {root: ., change: {write_file: {permission: ask}, edit_file: {permission: deny}}}\n";

fn writes() -> Model {
    let write = Reply::Call("write_file", json!({"path": "new.md", "content": "x"}));
    let edit = Reply::Call("edit_file", json!({"path": "new.md", "old_text": "x", "new_text": "y"}));
    Model::new([write, edit, Reply::Text("Done.")])
}

#[test]
fn allow_tool_answers_what_a_file_asks_and_lifts_no_denial() {
    for pattern in ["write_file", "*"] {
        let dir = tempfile::tempdir().unwrap();
        write(dir.path(), "a.yaml", ASKS);
        let model = writes();
        assert_eq!(end(&mut agent_on(dir.path(), &writes()), &["run", "a.yaml", "Write."]).0, 3);
        assert!(!wrote(dir.path()));
        let args = ["run", "a.yaml", "--allow-tool", pattern, "Write."];
        let (code, out, err) = end(&mut agent_on(dir.path(), &model), &args);
        assert_eq!((code, out.as_str(), wrote(dir.path())), (0, "Done.\n", true), "{err}");
        assert!(model.last().contains("not allowed"), "the denial holds: {}", model.last());
    }
}

#[test]
fn allow_tool_approves_tools_of_dir_beside_a_file_and_calls_by_hand() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "b.yaml", "name: a\nmodel: openai:scripted@chat\n");
    let args = |more: &[&'static str]| [&["run", "b.yaml", "--dir", "."], more, &["Write."]].concat();
    assert_eq!(end(&mut agent_on(dir.path(), &writes()), &args(&[])).0, 3);
    let (code, _, err) = end(&mut agent_on(dir.path(), &writes()), &args(&["--allow-tool", "*"]));
    assert_eq!((code, wrote(dir.path())), (0, true), "{err}");

    write(dir.path(), "a.yaml", ASKS);
    fs::remove_file(dir.path().join("new.md")).unwrap();
    let call = |more: &[&'static str]| {
        let args =
            [&["tools", "a.yaml"], more, &["call", "write_file", r#"{"path": "new.md", "content": "x"}"#]].concat();
        end(&mut agent(dir.path()), &args)
    };
    let (code, _, err) = call(&[]);
    assert!(code == 3 && err.contains("--allow-tool") && !err.contains("Answer with"), "{err}");
    assert_eq!((call(&["--allow-tool", "write_file"]).0, wrote(dir.path())), (0, true));
}

#[cfg(target_os = "linux")]
#[test]
fn dir_asks_about_the_tools_that_it_adds_and_about_no_others() {
    let dir = tempfile::tempdir().unwrap();
    let file = "name: a\nmodel: offline:any\ntools:\n  - command: {name: now, description: Says it., run: [echo, noon], root: ., effect: at_most_once}\n";
    write(dir.path(), "a.yaml", file);
    let (code, out, err) = end(&mut agent(dir.path()), &["tools", "a.yaml", "--dir", ".", "call", "now", "{}"]);
    assert!(code == 0 && out.contains("noon"), "{code} {out}{err}");
}

#[test]
fn an_option_that_a_command_does_not_use_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "a.yaml", ASKS);
    write(dir.path(), "cases.yaml", "[]");
    for (command, option) in [
        (&["sessions"][..], &["--dir", "."][..]),
        (&["inspect", "s"], &["--allow-tool", "x"]),
        (&["models"], &["--store", "x.db"]),
        (&["schema"], &["--model", "offline:any"]),
        (&["completions", "bash"], &["--system", "x"]),
        (&["export"], &["--lenient"]),
        (&["tools", "a.yaml"], &["--store", "x.db"]),
        (&["eval", "a.yaml", "cases.yaml"], &["--store", "x.db"]),
        (&["mcp", "a.yaml", "--tools"], &["--allow-tool", "x"]),
    ] {
        for args in [[command, option].concat(), [option, command].concat()] {
            let (code, _, err) = end(&mut agent(dir.path()), &args);
            assert!(code == 2 && err.contains(&format!("{} has no effect", option[0])), "{args:?}: {code} {err}");
        }
    }
    let (code, _, err) = end(agent(dir.path()).env("AGENT_MODEL", "offline:any"), &["schema"]);
    assert_eq!(code, 0, "a default of the environment is not refused: {err}");
}

#[test]
fn a_variable_that_no_file_has_is_refused_with_the_nearest_name() {
    let dir = tempfile::tempdir().unwrap();
    write(
        dir.path(),
        "a.yaml",
        "name: a\nmodel: offline:any\nvariables: {lang: English}\nsystem: Speak ${variables.lang}.\n",
    );
    let (code, _, err) = end(&mut agent(dir.path()), &["run", "a.yaml", "--set", "lnag=German", "hi"]);
    assert!(code == 2 && err.contains("no variable 'lnag'") && err.contains("did you mean 'lang'?"), "{err}");
    let (code, _, err) = end(&mut agent(dir.path()), &["run", "a.yaml", "--set", "lang=German", "hi"]);
    assert_eq!(code, 0, "{err}");
    let (code, _, err) = end(&mut agent(dir.path()), &["run", "--set", "lang=German", "hi"]);
    assert!(code == 2 && err.contains("--set lang"), "{err}");
}

#[test]
fn with_a_schema_nothing_but_the_answer_is_written() {
    let dir = tempfile::tempdir().unwrap();
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
    write(dir.path(), "schema.json", &schema.to_string());
    let args = ["run", "--output-schema", "schema.json", "How many?"];
    let model = Model::new([Reply::Text("Let me think."), Reply::Text("{\"n\": 7}")]);
    let (code, out, err) = end(&mut agent_on(dir.path(), &model), &args);
    assert_eq!(code, 0, "{err}");
    assert_eq!(serde_json::from_str::<Value>(&out).unwrap(), json!({"n": 7}), "{out}");
    let model = Model::new((0..9).map(|_| Reply::Text("No JSON.")));
    let (code, out, err) = end(&mut agent_on(dir.path(), &model), &args);
    assert_eq!((code, out.as_str()), (1, ""), "{err}");
}

#[test]
fn a_run_of_another_agent_is_named_where_it_waits() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "a.yaml", ASKS);
    write(dir.path(), "plain.yaml", "name: plain\nmodel: offline:any\n");
    assert_eq!(end(&mut agent_on(dir.path(), &writes()), &["run", "a.yaml", "-s", "s", "Write."]).0, 3);
    let (code, _, err) = end(&mut agent(dir.path()), &["approve", "s", "--file", "plain.yaml", "--allow"]);
    assert!(code == 2 && err.contains("agent 'a' waits for 1 answer"), "{err}");
}

#[test]
fn looking_at_an_agent_creates_no_store() {
    let dir = tempfile::tempdir().unwrap();
    let file = "name: a\ndescription: Looks.\nmodel: offline:any\nstore: sqlite:a.db\ntools: [ask_user]\nmiddleware:\n  - long_term_memory: {store: 'sqlite:memories.db', tool: true}\n";
    write(dir.path(), "a.yaml", file);
    for args in [&["tools", "a.yaml"][..], &["doctor", "a.yaml"]] {
        let (code, _, err) = end(agent(dir.path()).env_remove("AGENT_STORE"), args);
        assert_eq!(code, 0, "{args:?}: {err}");
        let made: Vec<_> = fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(made, ["a.yaml"], "{args:?}");
    }
}
