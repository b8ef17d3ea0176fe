//! Agents' files on the command line, and JSON output, through the program itself.

use crate::support;

use std::{fs, io::Write, process::Stdio};

use serde_json::{Value, json};
use support::{Model, Reply, agent, agent_on, end};

fn json_lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_file_of_any_format_is_run_with_other_variables_and_inputs() {
    let dir = tempfile::tempdir().unwrap();
    let file = "name = 'keeper'\nmodel = 'openai:scripted@chat'\nsystem_prompt = 'Speak of ${variables.what} in {{ tone }}, {{ n }} times.'\n\
        tools = ['ask_user']\n[variables]\nwhat = 'cats'\n[inputs.tone]\nschema = {type = 'string'}\n[inputs.n]\nschema = {type = 'integer'}\n";
    fs::write(dir.path().join("keeper.toml"), file).unwrap();
    let model = Model::new([Reply::Text("They hum.")]);
    let args = ["run", "keeper.toml", "--set", "what=bees", "--input", "tone=rhymes", "--input", "n=3", "Hi"];
    let (code, out, err) = end(&mut agent_on(dir.path(), &model), &args);
    assert_eq!((code, out.as_str()), (0, "They hum.\n"), "{err}");
    assert!(model.last().contains("Speak of bees in rhymes, 3 times."), "{}", model.last());
    let (code, out, err) = end(&mut agent(dir.path()), &["tools", "keeper.toml"]);
    assert!(code == 0 && out.contains("ask_user"), "{err}");
    let (code, _, err) = end(&mut agent(dir.path()), &["run", "--set", "what", "Hi"]);
    assert!(code == 2 && err.contains("a name and a value"), "{err}");
}

#[test]
fn what_was_is_looked_at_without_the_keys_of_the_models() {
    let dir = tempfile::tempdir().unwrap();
    let file = "name: keeper\nmodel: {name: 'openai:gpt-5', api_key: '${env.NO_SUCH_KEY}'}\nstore: sqlite:bees.db\n";
    fs::write(dir.path().join("keeper.yaml"), file).unwrap();
    let agent = || {
        let mut agent = agent(dir.path());
        agent.env_remove("AGENT_STORE");
        agent
    };
    let with_key = |command: &mut std::process::Command| {
        end(command.env("NO_SUCH_KEY", "k"), &["run", "keeper.yaml", "-m", "offline:any", "-s", "garden", "Hi"])
    };
    let (code, _, err) = with_key(&mut agent());
    assert_eq!(code, 0, "{err}");
    for command in [&["sessions"][..], &["inspect", "garden"], &["export", "garden"], &["diff", "garden", "garden"]] {
        let (code, _, err) = end(agent().args(["--file", "keeper.yaml"]), command);
        assert_eq!(code, 0, "{command:?}: {err}");
    }
}

#[test]
fn programs_are_told_in_json_what_went_wrong_before_a_run() {
    let dir = tempfile::tempdir().unwrap();
    for args in [
        &["run", "--json", "--model", "nobody:x", "hi"][..],
        &["inspect", "none", "--json"],
        &["run", "--json", "--max-steps", "many"],
    ] {
        let (code, out, _) = end(&mut agent(dir.path()), args);
        let lines = json_lines(&out);
        assert_eq!((code, lines.len(), &lines[0]["end"]), (2, 1, &json!("failed")), "{args:?}: {out}");
        assert!(lines[0]["error"].as_str().is_some_and(|error| !error.is_empty()), "{out}");
    }
    let args = ["serve", "--json", "--keys", "keys.json", "--new-key", "ada"];
    let (code, out, _) = end(&mut agent(dir.path()), &args);
    let line = &json_lines(&out)[0];
    assert_eq!((code, &line["name"], line["key"].is_string()), (0, &json!("ada"), true), "{out}");
}

#[test]
fn tools_that_a_file_denies_are_not_served() {
    let dir = tempfile::tempdir().unwrap();
    let file = "name: keeper\nmodel: offline:any\ntools:\n  - workspace: {root: ., change: {write_file: {permission: deny}}}\n\
        middleware:\n  - approval: {permissions: {default: allow, rules: [{policy: deny, tool: read_file, when: {path: {path: ['secret*']}}}]}}\n";
    fs::write(dir.path().join("keeper.yaml"), file).unwrap();
    fs::write(dir.path().join("secret.txt"), "hush").unwrap();
    let call = |id: i64, method: &str, params: Value| {
        json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string()
    };
    let hello =
        json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}});
    let said = [
        call(1, "initialize", hello),
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}).to_string(),
        call(2, "tools/list", json!({})),
        call(3, "tools/call", json!({"name": "read_file", "arguments": {"path": "secret.txt"}})),
    ];
    let mut child = agent(dir.path())
        .args(["mcp", "keeper.yaml", "--tools"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(child.stdout.take().unwrap()));
    let mut heard = Vec::new();
    for line in said {
        let is_asked = line.contains("\"id\"");
        stdin.write_all(format!("{line}\n").as_bytes()).unwrap();
        if is_asked {
            heard.push(lines.next().unwrap().unwrap());
        }
    }
    drop(stdin);
    child.wait().unwrap();
    assert!(heard[1].contains("read_file") && !heard[1].contains("write_file"), "{}", heard[1]);
    assert!(heard[2].contains("not allowed") && !heard[2].contains("hush"), "{}", heard[2]);
}

#[test]
fn a_new_file_names_a_provider_that_there_is() {
    let dir = tempfile::tempdir().unwrap();
    for (model, why) in [("anthropc:claude", "there is no provider 'anthropc'"), ("claude", "say PROVIDER:NAME")] {
        let (code, _, err) = end(&mut agent(dir.path()), &["new", "helper", "--model", model]);
        assert!(code == 2 && err.contains(why), "{err}");
        assert!(!dir.path().join("helper.yaml").exists());
    }
    assert_eq!(
        end(&mut agent(dir.path()), &["new", "helper", "--model", "anthropic:claude-opus-4-5"]).0,
        0,
        "its key may come later"
    );
}

#[test]
fn other_arguments_are_for_one_of_the_questions_that_are_open() {
    let dir = tempfile::tempdir().unwrap();
    let file = "name: keeper\nmodel: openai:scripted@chat\ntools:\n  - workspace: {root: ., change: {read_file: {permission: ask}}}\n";
    fs::write(dir.path().join("keeper.yaml"), file).unwrap();
    let read = |path: &str| ("read_file", json!({"path": path}));
    let model = Model::new([Reply::Calls(vec![read("a.md"), read("b.md")]), Reply::Text("Done.")]);
    let (code, _, err) = end(&mut agent_on(dir.path(), &model), &["run", "keeper.yaml", "-s", "s", "Read."]);
    assert!(code == 3 && err.contains("waits for 2 answers"), "{err}");
    let edit = |more: &[&str]| {
        let args = [&["approve", "s", "--file", "keeper.yaml", "--edit", "{\"path\": \"c.md\"}"], more].concat();
        end(&mut agent_on(dir.path(), &model), &args)
    };
    let (code, _, err) = edit(&[]);
    assert!(code == 2 && err.contains("say for which question"), "{err}");
    let id = err.split(", of ").nth(1).unwrap().split(',').next().unwrap().trim().to_owned();
    assert_eq!(edit(&[&id]).0, 3, "the other is open still");
}

#[test]
fn the_doctor_starts_the_servers_of_sub_agents_too() {
    let dir = tempfile::tempdir().unwrap();
    let below =
        "name: b\ndescription: Helps.\nmodel: offline:any\ntools:\n  - mcp: {name: far, command: [/no/such/server]}\n";
    fs::write(dir.path().join("b.yaml"), below).unwrap();
    let file = "name: a\ndescription: Asks.\nmodel: offline:any\nsub_agents: {b: b.yaml}\n";
    fs::write(dir.path().join("a.yaml"), file).unwrap();
    let (code, out, _) = end(&mut agent(dir.path()), &["doctor", "a.yaml"]);
    assert!(code == 1 && out.contains("server of b"), "{out}");
}

/// A server with a tool without problems, one with alternatives at the root, and one with a long description.
const SERVER: &str = r#"
import json, sys
text = {"type": "string"}
tools = [
    {"name": "plain", "inputSchema": {"type": "object", "properties": {"q": text}}},
    {"name": "choice", "inputSchema": {"type": "object", "anyOf": [{"properties": {"a": text}}, {"properties": {"b": text}}]}},
    {"name": "long", "description": "d" * 1500, "inputSchema": {"type": "object", "properties": {}}},
]
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    result = {}
    if asked["method"] == "initialize":
        result = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}}
    if asked["method"] == "tools/list":
        result = {"tools": tools}
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}), flush=True)
"#;

#[test]
fn the_doctor_lists_the_tools_that_the_model_takes_only_in_another_form() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("s.py"), SERVER).unwrap();
    let file = |model: &str| {
        format!(
            "name: a\nmodel: {model}\ntools:\n  - mcp: {{name: s, prefix: '', command: [python3, s.py], pass: [PATH]}}\n"
        )
    };
    let doctor = |model: &str| {
        fs::write(dir.path().join("a.yaml"), file(model)).unwrap();
        let (_, out, _) = end(
            agent(dir.path()).env("OPENAI_API_KEY", "sk-x").env("ANTHROPIC_API_KEY", "sk-x"),
            &["doctor", "a.yaml"],
        );
        out.lines().filter(|line| line.contains(" is sent in another form")).map(str::to_owned).collect::<Vec<_>>()
    };
    let found = doctor("openai:gpt-5@chat");
    assert!(
        matches!(&found[..], [choice, long] if choice.contains("choice is sent") && long.contains("long is sent")),
        "{found:?}"
    );
    assert!(found[0].contains("anyOf") && found[0].contains("Source: OpenAI"), "{found:?}");
    let found = doctor("anthropic:claude-opus-4-5");
    assert!(matches!(&found[..], [choice] if choice.contains("choice is sent")), "{found:?}");
    assert_eq!(doctor("offline:any"), Vec::<String>::new());
}
