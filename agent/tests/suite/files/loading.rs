//! Files of files.

use std::{fs, path::Path};

use agent::{
    ErrorKind, RunEnd,
    config::{Format, Loader, Registry, Reloading, StoreAddress},
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
    assert_eq!(loaded.files().len(), 4, "with the prompt");
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
    assert!(
        told.contains("b.yaml:4:1: a sub-agent has no 'store' of its own") && told.contains("extends it"),
        "{told}"
    );
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

#[test]
fn variables_refer_to_what_is_above_them_and_are_in_groups() {
    let files = folder(&[
        (
            "agent.yaml",
            "name: a\nmodel: small\nvariables:\n  city: ${env.CITY:-Bern}\n  team: {lead: '${file.lead.txt}', size: 3}\n  text: ${variables.team.lead} of ${variables.city}\nsystem: ${variables.text}, with ${variables.team.size}\n",
        ),
        ("lead.txt", "Ada\n"),
    ]);
    let loaded = loader().load(files.path().join("agent.yaml")).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(loaded.definition().system, Some("Ada of Bern, with 3".into()));
    let told = loader().variable("team.lead", "Eve").load(files.path().join("agent.yaml")).expect("reads");
    assert_eq!(told.definition().system, Some("Eve of Bern, with 3".into()));
    fs::write(files.path().join("agent.yaml"), "name: a\nmodel: small\nvariables: {a: '${variables.b}', b: x}\n")
        .expect("writes");
    assert!(wrong(files.path()).contains("agent.yaml:3:16: there is no variable 'b'"), "{}", wrong(files.path()));
}

#[test]
fn a_file_is_bounded_in_its_kind_its_size_and_its_number() {
    let files = folder(&[("agent.yaml", "name: a\nextends: /dev/zero\n")]);
    assert!(wrong(files.path()).contains("it is no file"), "{}", wrong(files.path()));
    fs::write(files.path().join("agent.yaml"), "name: a\nmodel: small\nsub_agents: {b: large.yaml}\n").expect("writes");
    fs::write(files.path().join("large.yaml"), "#".repeat(5 << 20)).expect("writes");
    assert!(wrong(files.path()).contains("agent.yaml:3:17: the file ") && wrong(files.path()).contains("the most are"));

    for level in 0..16 {
        let below: Vec<_> = (0..10).map(|n| format!("s{n}: level{}.yaml", level + 1)).collect();
        let text = format!("name: a{level}\ndescription: d\nmodel: small\nsub_agents: {{{}}}\n", below.join(", "));
        fs::write(files.path().join(if level == 0 { "agent.yaml".into() } else { format!("level{level}.yaml") }), text)
            .expect("writes");
    }
    let begun = std::time::Instant::now();
    assert!(wrong(files.path()).contains("is one too many: an agent is made of 1000 files at most"));
    assert!(begun.elapsed().as_secs() < 20, "it hangs");

    let text = format!(
        "name: a\nmodel: small\nvariables: {{x: {}}}\nsystem: '{}'\n",
        "x".repeat(500_000),
        "${variables.x}".repeat(1_000)
    );
    fs::write(files.path().join("agent.yaml"), text).expect("writes");
    assert!(wrong(files.path()).contains("is too much"), "a bomb of references");
}

#[test]
fn a_store_is_known_without_the_models_and_their_keys() {
    let files = folder(&[
        ("agent.yaml", "extends: shared/base.yaml\nname: a\nmodel: {name: 'openai:gpt-5', api_key: '${env.NONE}'}\n"),
        ("shared/base.yaml", "store: sqlite:${env.NOT_SET:-runs}.db\ntools: [nobody]\n"),
        ("none.yaml", "name: a\nmodel: small\n"),
        ("wrong.yaml", "name: a\nmodel: small\nstore: redis://a\n"),
    ]);
    let store = |name: &str| loader().store(files.path().join(name));
    assert_eq!(store("agent.yaml").expect("reads"), Some(StoreAddress::Sqlite(files.path().join("shared/runs.db"))));
    assert_eq!(store("none.yaml").expect("reads"), None);
    let told = store("wrong.yaml").expect_err("no such store").to_string();
    assert!(told.contains("wrong.yaml:3:8: ") && told.contains("postgres://"), "{told}");
}

#[tokio::test]
async fn what_an_agent_is_made_of_is_followed_though_it_came_later() {
    let files = folder(&[("agent.yaml", "name: a\nmodel: small\nsystem: ${file.p.md}\n"), ("p.md", "one")]);
    let registry = Registry::builtin().model("small", ScriptedModel::new([]));
    let reloading =
        Reloading::open(Loader::new().registry(registry), files.path().join("agent.yaml")).await.expect("opens");
    let system = async || format!("{:?}", reloading.agent().await.definition().expect("is data").system);
    fs::write(files.path().join("p.md"), "another").expect("writes");
    assert!(system().await.contains("another"));
    fs::write(files.path().join("agent.yaml"), "name: a\nmodel: small\nsystem: later\nsub_agents: {b: b.yaml}\n")
        .expect("writes");
    assert!(system().await.contains("another") && reloading.problems().is_some());
    fs::write(files.path().join("b.yaml"), "name: b\ndescription: Helps.\nmodel: small\n").expect("writes");
    assert!(system().await.contains("later"), "{:?}", reloading.problems());
    assert!(reloading.problems().is_none());
}

#[test]
fn all_that_files_say_is_one_file_that_says_the_same() {
    let files = folder(&[
        (
            "agent.yaml",
            "extends: base.yaml\nname: a\nvariables: {city: Bern}\nsystem: In ${variables.city}.\nsub_agents: {b: b.yaml}\noffer_sub_agents: false\n",
        ),
        (
            "base.yaml",
            "model: quick\nmodels: {quick: {name: small}}\nbudget: {tokens: 9}\ntools: [{add: {permission: ask}}]\nmiddleware: [{guardrails: {guards: {p: {policy: Fine., model: quick}}}}]\n",
        ),
        (
            "b.yaml",
            "name: b\ndescription: Helps.\nmodel: quick\nvariables: {tone: kind}\nsystem: Be ${variables.tone}.\n",
        ),
    ]);
    let loaded = loader().load(files.path().join("agent.yaml")).unwrap_or_else(|e| panic!("{e}"));
    let text = loaded.to_yaml().expect("writes");
    assert!(text.contains("${variables.city}") && !text.contains("extends"), "{text}");
    let again = loader().read(text.as_str(), Format::Yaml).unwrap_or_else(|e| panic!("{e}\n{text}"));
    assert_eq!(again.definition(), loaded.definition());
    assert_eq!(again.to_yaml().expect("writes"), text);
}

#[test]
fn parts_that_files_share_are_listed_once_and_their_paths_are_of_the_list() {
    let files = folder(&[
        (
            "agent.yaml",
            "name: a\nmodel: small\ntools:\n  - include: shared/tools.yaml\n  - ask_user\nmiddleware: [{include: shared/agent.yaml}]\n",
        ),
        ("shared/tools.yaml", "- add: {name: plus}\n- workspace: {root: docs, tools: [read_file]}\n"),
        ("shared/agent.yaml", "name: other\nmodel: none\nmiddleware:\n  - limits: {model_calls: 3}\n"),
        ("shared/docs/a.txt", "hello"),
    ]);
    let loaded = loader().load(files.path().join("agent.yaml")).unwrap_or_else(|e| panic!("{e}"));
    let definition = loaded.definition();
    let parts = definition.tools.iter().chain(&definition.middleware).map(|part| part.name.as_str());
    assert_eq!(parts.collect::<Vec<_>>(), ["add", "workspace", "ask_user", "limits"]);
    loaded.into_builder().build().expect("the folder is found beside the list");
    fs::write(files.path().join("shared/tools.yaml"), "- include: ../agent.yaml\n- add: {nam: x}\n").expect("writes");
    let told = wrong(files.path());
    assert!(told.contains("tools.yaml:1:12: ") && told.contains("is part of itself"), "{told}");
    assert!(told.contains("tools.yaml:2:9: unknown key 'nam'"), "{told}");
    fs::write(files.path().join("shared/tools.yaml"), "name: a\n").expect("writes");
    assert!(
        wrong(files.path()).contains("agent.yaml:4:14: the file 'shared/tools.yaml' is no list"),
        "{}",
        wrong(files.path())
    );
}
