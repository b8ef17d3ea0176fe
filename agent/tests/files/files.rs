//! Files of files.

use std::{fs, path::Path};

use agent::{
    ErrorKind, RunEnd,
    config::StoreAddress,
    testing::{ScriptedModel, Turn},
};

use super::{loader, loader_of};

fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, text) in files {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("makes it");
        fs::write(path, text).expect("writes");
    }
    folder
}

fn wrong(dir: &Path) -> String {
    loader().load(dir.join("agent.yaml")).expect_err("is wrong").to_string()
}

#[test]
fn a_file_begins_with_another_and_replaces_what_it_says_itself() {
    let files = folder(&[
        ("agent.yaml", "extends: shared/base.yaml\nname: clerk\nparams: {temperature: 0.5}\ntools: [add]\n"),
        ("shared/base.yaml", "extends: lowest.yaml\nname: base\nparams: {max_tokens: 10}\nsystem: ${file.prompt.md}\n"),
        ("shared/lowest.yaml", "model: small\nmax_steps: 7\ntools: [ask_user]\n"),
        ("shared/prompt.md", "Be kind.\n"),
    ]);
    let loaded = loader().load(files.path().join("agent.yaml")).expect("reads");
    let definition = loaded.definition();
    assert_eq!((definition.name.as_str(), definition.max_steps), ("clerk", 7));
    assert_eq!(definition.system, Some("Be kind.".into()), "of the folder of the file in which it stands");
    assert_eq!((definition.params.temperature, definition.params.max_tokens), (Some(0.5), Some(10)));
    assert_eq!(definition.tools.len(), 1, "lists are replaced");
    assert_eq!(loaded.files().len(), 3);
}

#[tokio::test]
async fn a_sub_agent_is_a_file_of_its_own_with_its_own_description_and_variables() {
    let files = folder(&[
        (
            "agent.yaml",
            "name: clerk\nmodel: small\nmiddleware: [delegation]\nvariables: {tone: kind}\nsub_agents:\n  helper: agents/helper.yaml\n",
        ),
        (
            "agents/helper.yaml",
            "name: helper\ndescription: Helps.\nmodel: small\nvariables: {tone: strict}\nsystem: Be ${variables.tone}.\n",
        ),
    ]);
    let model = ScriptedModel::new([Turn::text("done")]);
    let loaded = loader_of(&model).load(files.path().join("agent.yaml")).expect("reads");
    let helper = &loaded.definition().sub_agents["helper"];
    assert_eq!((helper.description.as_str(), helper.agent.system.clone()), ("Helps.", Some("Be strict.".into())));
    let agent = loaded.into_agent().await.expect("builds");
    assert!(matches!(agent.run("Hi").await, Ok(RunEnd::Finished(_))));
    assert_eq!(model.requests()[0].tools, ["delegate"], "the sub-agents are offered to the model");
    assert!(agent.definition().expect("is data").sub_agents.contains_key("helper"));
    let told = loader_of(&model).variable("tone", "brief").load(files.path().join("agent.yaml")).expect("reads");
    assert_eq!(
        told.definition().sub_agents["helper"].agent.system,
        Some("Be brief.".into()),
        "what the program says wins"
    );
}

#[test]
fn files_that_are_part_of_themselves_or_not_there_are_named() {
    let files = folder(&[
        ("agent.yaml", "name: a\nmodel: small\nsub_agents: {b: {description: d, agent: b.yaml}}\n"),
        ("b.yaml", "name: b\nmodel: small\nsub_agents: {a: {description: d, agent: agent.yaml}}\n"),
    ]);
    let told = wrong(files.path());
    assert!(told.contains("b.yaml:3:41: ") && told.contains("is part of itself"), "{told}");
    let files = folder(&[("agent.yaml", "extends: agent.yaml\nname: a\n")]);
    assert!(wrong(files.path()).contains("is part of itself"));
    let files = folder(&[("agent.yaml", "extends: none.yaml\nname: a\n")]);
    let told = wrong(files.path());
    assert!(told.contains("agent.yaml:1:10: ") && told.contains("cannot be read"), "{told}");
}

#[test]
fn a_problem_of_a_sub_agents_file_has_its_place_there() {
    let files = folder(&[
        ("agent.yaml", "name: a\nmodel: small\nsub_agents: {b: b.yaml}\n"),
        ("b.yaml", "name: b\ndescription: d\nmodel: small\nstore: memory\n"),
    ]);
    let told = wrong(files.path());
    assert!(told.contains("b.yaml:4:1: unknown key 'store'"), "{told}");
}

#[tokio::test]
async fn paths_are_of_the_file_in_which_they_stand() {
    let files = folder(&[
        ("agent.yaml", "extends: shared/base.yaml\nname: a\nmodel: small\nstore: sqlite:runs.db\n"),
        ("shared/base.yaml", "tools:\n  - workspace: {root: docs}\n"),
        ("shared/docs/a.txt", "hello"),
    ]);
    let loaded = loader().load(files.path().join("agent.yaml")).expect("reads");
    assert_eq!(loaded.store(), Some(&StoreAddress::Sqlite(files.path().join("runs.db"))));
    loaded.into_agent().await.expect("builds");
    assert!(files.path().join("runs.db").is_file());
}

#[tokio::test]
async fn a_store_that_there_is_not_is_an_error_that_names_those_that_there_are() {
    let error = "redis://localhost".parse::<StoreAddress>().expect_err("no such store");
    assert_eq!(error.kind(), ErrorKind::Config);
    assert!(error.message().contains("postgres://"), "{error}");
}

#[test]
fn toml_and_json_say_the_same_as_yaml() {
    let yaml = "name: a\nmodel: small\nmax_steps: 3\ntools: [add]\nmiddleware:\n  - limits: {model_calls: 5}\n";
    let toml =
        "name = 'a'\nmodel = 'small'\nmax_steps = 3\ntools = ['add']\n[[middleware]]\nlimits = {model_calls = 5}\n";
    let json = r#"{"name": "a", "model": "small", "max_steps": 3, "tools": ["add"], "middleware": [{"limits": {"model_calls": 5}}]}"#;
    let files = folder(&[("a.yaml", yaml), ("a.toml", toml), ("a.json", json)]);
    let read = |name: &str| loader().load(files.path().join(name)).expect(name).definition().clone();
    assert_eq!(read("a.yaml"), read("a.toml"));
    assert_eq!(read("a.yaml"), read("a.json"));
}

#[tokio::test]
async fn a_file_of_nexau_is_read_as_what_it_means_here_with_what_is_different() {
    let files = folder(&[
        (
            "agent.yaml",
            "type: agent\nname: helper\nllm_config: {model: m, base_url: 'http://127.0.0.1:1', api_key: '${env.SECRET}'}\nsystem_prompt: Be kind.\nmax_iterations: 7\nsub_agents:\n  - {name: other, config_path: other.yaml}\n",
        ),
        (
            "other.yaml",
            "type: agent\nname: other\ndescription: Helps.\nllm_config: {model: m, base_url: 'http://127.0.0.1:1', api_key: k}\n",
        ),
    ]);
    let told = wrong(files.path());
    assert!(told.contains("a secret is not written into a file"), "{told}");
    let other =
        "type: agent\nname: other\ndescription: Helps.\nllm_config: {model: m, base_url: 'http://127.0.0.1:1'}\n";
    fs::write(files.path().join("other.yaml"), other).expect("writes");
    let loaded = loader().environment(|_| Some("key".to_owned())).lenient().load(files.path().join("agent.yaml"));
    let loaded = loaded.unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(loaded.definition().max_steps, 7);
    assert!(loaded.definition().sub_agents.contains_key("other"));
    loaded.into_agent().await.expect("builds");

    fs::write(files.path().join("agent.yaml"), "type: agent\nname: a\nllm_config: {model: m}\nmax_iteration: 5\n")
        .expect("writes");
    let told = wrong(files.path());
    assert!(told.contains("max_iteration"), "{told}");
}
