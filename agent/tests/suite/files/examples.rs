//! The files of `examples/agents`.

use std::{fs, path::Path};

use agent::{
    RunEnd,
    config::{Format, Loader},
    testing::{ScriptedModel, Turn},
};
use serde_json::json;

fn folder() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/agents"))
}

/// The files, by name.
fn names() -> Vec<String> {
    let entries = fs::read_dir(folder()).expect("a folder").map(|entry| entry.expect("an entry").file_name());
    let mut names: Vec<_> = entries.filter_map(|name| name.into_string().ok()).collect();
    names.retain(|name| name.ends_with(".yaml") || name.ends_with(".toml"));
    names.sort_unstable();
    names
}

/// The server of files, where `.ci/run install` fetches it to; else that is said.
fn server_of_files() -> Option<&'static str> {
    let place = concat!(env!("CARGO_MANIFEST_DIR"), "/../target/mcp-servers/node_modules/.bin/mcp-server-filesystem");
    let found = Path::new(place).exists().then_some(place);
    if found.is_none() {
        eprintln!("skipped: no server of files");
    }
    found
}

/// The examples' environment has nothing but that server, whatever the machine has.
fn at_home(loader: Loader) -> Loader {
    let server = server_of_files().unwrap_or("/no/such/server");
    loader.environment(move |name| (name == "FILES_SERVER").then(|| server.to_owned()))
}

#[tokio::test]
async fn every_file_is_one_that_editors_accept_and_answers_with_the_offline_model() {
    let loader = at_home(Loader::new());
    let schema = jsonschema::validator_for(loader.schema()).expect("a schema");
    for name in names() {
        let path = folder().join(&name);
        let text = fs::read_to_string(&path).expect("reads");
        // Files of NexAU name models of providers.
        let loader =
            if text.contains("type: agent") { loader.clone().every_model("offline:any") } else { loader.clone() };
        let loaded = loader.load(&path).unwrap_or_else(|e| panic!("{e}"));
        assert!(!loaded.description().is_empty(), "{name}: what it is good for");
        let value: serde_json::Value = if name.ends_with(".toml") {
            toml::from_str(&text).expect("TOML")
        } else {
            serde_saphyr::from_str(&text).expect("YAML")
        };
        let nexau = value.get("type").is_some();
        let errors: Vec<_> = schema.iter_errors(&value).map(|e| format!("{}: {e}", e.instance_path())).collect();
        assert!(nexau || errors.is_empty(), "{name}: {errors:?}");
        // Without its store, which would lie beside the file.
        let agent = loaded.into_builder().build().unwrap_or_else(|e| panic!("{name}: {e}"));
        let end = agent.run("What is this?").await.unwrap_or_else(|e| panic!("{name}: {e}"));
        assert!(matches!(end, RunEnd::Finished(_) | RunEnd::Interrupted(_)), "{name}: {end:?}");
    }
}

#[tokio::test]
async fn the_model_behind_one_that_cannot_be_reached_answers() {
    let there = "name = \"openai:gpt-5\"\napi_key = \"${env.SECRET}\"\nbase_url = \"http://127.0.0.1:1/v1\"";
    let text = fs::read_to_string(folder().join("fallbacks.toml")).expect("reads");
    let text = text.replace("name = \"offline:first\"", there).replace("retries = 3", "retries = 0");
    let text = text.replace("offline:second", "small");
    let model = ScriptedModel::new([Turn::text("The second answers.")]);
    let loaded = super::loader_of(&model).read(text, Format::Toml).unwrap_or_else(|e| panic!("{e}"));
    let end = loaded.into_builder().build().expect("builds").run("Hello?").await.expect("runs");
    assert_eq!(end.finished().expect("finishes").answer, "The second answers.");
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_refund_of_the_support_desk_waits_for_a_person_and_looking_up_does_not() {
    let text =
        fs::read_to_string(folder().join("support-desk.yaml")).expect("reads").replace("offline:support", "small");
    let copy = tempfile::tempdir().expect("a folder");
    fs::create_dir(copy.path().join("tools")).expect("makes it");
    for name in ["look_up.sh", "refund.sh"] {
        fs::copy(folder().join("tools").join(name), copy.path().join("tools").join(name)).expect("copies");
    }
    fs::write(copy.path().join("agent.yaml"), text).expect("writes");
    let model = ScriptedModel::new([
        Turn::calls([("1", "look_up", json!({"number": "A-17"}))]),
        Turn::calls([("2", "refund", json!({"number": "A-17"}))]),
    ]);
    let loaded = super::loader_of(&model).load(copy.path().join("agent.yaml")).unwrap_or_else(|e| panic!("{e}"));
    let agent = loaded.into_builder().build().expect("builds");
    let names: Vec<_> = agent.tools().iter().map(|spec| spec.name.as_str()).collect();
    assert_eq!(names, ["look_up", "refund"]);
    let RunEnd::Interrupted(stopped) = agent.run("A-17 came broken.").await.expect("runs") else { panic!("it waits") };
    assert_eq!(stopped.questions.len(), 1);
    let told = format!("{:?}", model.requests()[1].messages);
    assert!(told.contains("delivered"), "{told}");
}

/// The examples, each with a call that its model makes and what comes of it.
fn calls() -> Vec<(&'static str, &'static str, serde_json::Value, &'static str)> {
    let asked = json!({"questions": [{"question": "Which?", "options": ["a", "b"]}]});
    let mut calls = vec![
        ("careful-assistant.yaml", "ask_user", asked.clone(), ""),
        ("code-reviewer.yaml", "read_file", json!({"path": "LICENSE-MIT"}), "WITHOUT WARRANTY"),
        ("fallbacks.toml", "read_file", json!({"path": "LICENSE-MIT"}), "WITHOUT WARRANTY"),
        ("librarian.yaml", "list_files", json!({}), "architecture.md"),
        ("nexau-quick-start.yaml", "write_todos", json!({"todos": [{"content": "Look", "status": "pending"}]}), "Look"),
        ("planner.yaml", "delegate", json!({"agent": "reader", "message": "What is here?"}), "said by the model"),
        ("repository-guide.yaml", "read_file", json!({"path": "LICENSE-MIT"}), "WITHOUT WARRANTY"),
        ("web-researcher.yaml", "web_fetch", json!({"url": "http://127.0.0.1:1/"}), "127.0.0.1"),
    ];
    calls.push(match server_of_files() {
        Some(_) => ("file-organiser.yaml", "files_list_directory", json!({"path": "."}), "Cargo.toml"),
        None => ("file-organiser.yaml", "ask_user", asked, ""),
    });
    if cfg!(target_os = "linux") {
        calls.extend([
            ("data-analyst.yaml", "query", json!({"sql": "select sum(total_cents) as cents from orders"}), "20440"),
            ("release-notes.yaml", "load_skill", json!({"name": "release-notes"}), "what was mended"),
            ("support-desk.yaml", "look_up", json!({"number": "A-17"}), "delivered"),
        ]);
    }
    calls
}

#[tokio::test]
async fn each_example_calls_a_tool_that_does_what_it_is_for() {
    let mut tried: Vec<_> = calls().iter().map(|(file, ..)| (*file).to_owned()).collect();
    tried.sort_unstable();
    assert!(!cfg!(target_os = "linux") || tried == names(), "{tried:?}");
    for (file, tool, arguments, seen) in calls() {
        let said = Turn::text("said by the model");
        let model = ScriptedModel::new([Turn::calls([("1", tool, arguments)]), said.clone(), said]);
        let loader = at_home(super::loader_of(&model).every_model("small"));
        let loader = if server_of_files().is_some() { loader.require_servers() } else { loader };
        let loaded = loader.load(folder().join(file)).unwrap_or_else(|e| panic!("{e}"));
        let agent = loaded.into_builder().build().unwrap_or_else(|e| panic!("{file}: {e}"));
        match agent.run("Go on.").await.unwrap_or_else(|e| panic!("{file}: {e}")) {
            RunEnd::Interrupted(stopped) => assert_eq!(stopped.questions.len(), 1, "{file}"),
            RunEnd::Finished(_) => {
                let told = format!("{:?}", model.requests().last().expect("it was asked").messages);
                assert!(told.contains(seen) && !seen.is_empty(), "{file}: {told}");
            }
            other => panic!("{file}: {other:?}"),
        }
    }
}
