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
