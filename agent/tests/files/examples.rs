//! The files of `examples/agents`.

use std::{fs, path::Path};

use agent::{
    RunEnd,
    config::Loader,
    testing::{ScriptedModel, Turn},
};
use serde_json::json;

fn folder() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/agents"))
}

#[tokio::test]
async fn every_file_is_one_that_editors_accept_and_answers_with_the_offline_model() {
    let loader = Loader::new();
    let schema = jsonschema::validator_for(loader.schema()).expect("a schema");
    let mut seen = 0;
    for entry in fs::read_dir(folder()).expect("a folder") {
        let path = entry.expect("an entry").path();
        let Some(extension) = path.extension().filter(|extension| *extension == "yaml" || *extension == "toml") else {
            continue;
        };
        seen += 1;
        let text = fs::read_to_string(&path).expect("reads");
        // Files of NexAU name models of providers.
        let loader =
            if text.contains("type: agent") { loader.clone().every_model("offline:any") } else { loader.clone() };
        let loaded = loader.load(&path).unwrap_or_else(|e| panic!("{e}"));
        assert!(!loaded.description().is_empty(), "{}: what it is good for", path.display());
        let value: serde_json::Value = if extension == "toml" {
            toml::from_str(&text).expect("TOML")
        } else {
            serde_saphyr::from_str(&text).expect("YAML")
        };
        let nexau = value.get("type").is_some();
        let errors: Vec<_> = schema.iter_errors(&value).map(|e| format!("{}: {e}", e.instance_path())).collect();
        assert!(nexau || errors.is_empty(), "{}: {errors:?}", path.display());
        // Without its store, which would lie beside the file.
        let agent = loaded.into_builder().build().unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        let end = agent.run("What is this?").await.unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        assert!(matches!(end, RunEnd::Finished(_) | RunEnd::Interrupted(_)), "{}: {end:?}", path.display());
    }
    assert!(seen >= 10, "{seen} files");
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

fn has_npm() -> bool {
    std::process::Command::new("npm").arg("--version").output().is_ok_and(|output| output.status.success())
}

/// The examples, each with a call that its model makes and what comes of it.
fn calls() -> Vec<(&'static str, &'static str, serde_json::Value, &'static str)> {
    let asked = json!({"questions": [{"question": "Which?", "options": ["a", "b"]}]});
    let mut calls = vec![
        ("careful-assistant.yaml", "ask_user", asked.clone(), ""),
        ("code-reviewer.yaml", "read_file", json!({"path": "LICENSE-MIT"}), "WITHOUT WARRANTY"),
        ("librarian.yaml", "list_files", json!({}), "architecture.md"),
        ("nexau-quick-start.yaml", "write_todos", json!({"todos": [{"content": "Look", "status": "pending"}]}), "Look"),
        ("planner.yaml", "delegate", json!({"agent": "reader", "message": "What is here?"}), "said by the model"),
        ("repository-guide.yaml", "read_file", json!({"path": "LICENSE-MIT"}), "WITHOUT WARRANTY"),
        ("web-researcher.yaml", "web_fetch", json!({"url": "http://127.0.0.1:1/"}), "127.0.0.1"),
    ];
    calls.push(match has_npm() {
        true => ("file-organiser.yaml", "files_list_directory", json!({"path": "."}), "Cargo.toml"),
        false => ("file-organiser.yaml", "ask_user", asked, ""),
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
    for (file, tool, arguments, seen) in calls() {
        let said = Turn::text("said by the model");
        let model = ScriptedModel::new([Turn::calls([("1", tool, arguments)]), said.clone(), said]);
        let loader = super::loader_of(&model).every_model("small");
        let loader = if has_npm() { loader.require_servers() } else { loader };
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
