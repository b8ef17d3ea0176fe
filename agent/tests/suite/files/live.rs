//! Parts that need a store, a model or a folder by name.

use std::{fs, path::Path};

use agent::{
    Agent, ErrorKind, Part, RunEnd, RunRequest,
    config::{Format, Loaded, Loader, Registry},
    message::Cache,
    testing::{ScriptedModel, Turn},
};
use serde_json::json;

use super::{loader_of, wrong};

fn done() -> ScriptedModel {
    ScriptedModel::new(vec![Turn::text("done"); 9])
}

fn file(dir: &Path, text: &str) -> std::path::PathBuf {
    let path = dir.join("agent.yaml");
    fs::write(&path, format!("name: a\nmodel: small\n{text}")).expect("writes");
    path
}

fn load(model: &ScriptedModel, dir: &Path, text: &str) -> Agent {
    loaded(model, dir, text).into_builder().build().unwrap_or_else(|e| panic!("{e}"))
}

fn loaded(model: &ScriptedModel, dir: &Path, text: &str) -> Loaded {
    loader_of(model).load(file(dir, text)).unwrap_or_else(|e| panic!("{e}"))
}

async fn answer(agent: &Agent, text: &str) -> String {
    match agent.start(RunRequest::user(text).session("s").on_behalf_of("ada")).await {
        Ok(RunEnd::Finished(end)) => end.answer,
        other => panic!("it finishes: {other:?}"),
    }
}

#[tokio::test]
async fn a_chat_that_a_file_keeps_in_sqlite_is_there_for_the_next_process() {
    let dir = tempfile::tempdir().expect("a folder");
    let text = "middleware:\n  - chat_history: {store: 'sqlite:chats.db', last_k: 1}\n";
    let model = done();
    answer(&load(&model, dir.path(), text), "I am Ada.").await;
    answer(&load(&model, dir.path(), text), "Who am I?").await;
    assert_eq!(model.requests()[1].texts(), ["I am Ada.", "done", "Who am I?"]);
    assert!(dir.path().join("chats.db").is_file(), "beside the file that names it");
    let told = wrong("name: a\nmodel: small\nmiddleware:\n  - chat_history: {store: 'postgres://db/chats'}\n");
    assert!(told.contains("agent:4:5: the store of chats is"), "{told}");
}

#[tokio::test]
async fn memories_are_found_by_words_or_by_vectors_and_facts_are_said_by_a_model_of_the_table() {
    let dir = tempfile::tempdir().expect("a folder");
    for text in [
        "middleware:\n  - long_term_memory: {store: 'sqlite:words.db', top_k: 2}\n",
        "middleware:\n  - long_term_memory: {store: 'sqlite:vectors.db', embedder: {name: hashed, dimensions: 64}}\n",
    ] {
        let model = done();
        answer(&load(&model, dir.path(), text), "I am allergic to nuts.").await;
        answer(&load(&model, dir.path(), text), "Which nuts may I eat?").await;
        let told = model.requests()[1].texts().join("\n");
        assert!(told.contains("allergic to nuts"), "{text}: {told}");
    }
    let facts = ScriptedModel::new(vec![Turn::text(r#"{"facts": ["Ada keeps bees."]}"#); 2]);
    let registry = Registry::builtin().model("small", done()).model("quick", facts.clone());
    let text =
        "name: a\nmodel: small\nmodels: {cheap: {name: quick}}\nmiddleware:\n  - long_term_memory: {facts: cheap}\n";
    let agent = Loader::new().registry(registry).read(text, Format::Yaml).expect("reads").into_builder().build();
    answer(&agent.expect("builds"), "I keep bees.").await;
    assert_eq!(facts.calls(), 1);
    let told = wrong("name: a\nmodel: small\nmiddleware:\n  - long_term_memory: {store: 'postgres://db/m'}\n");
    assert!(told.contains("name an 'embedder'"), "{told}");
}

#[tokio::test]
async fn documents_are_indexed_before_the_first_search_and_found_by_the_middleware_and_the_tool() {
    let dir = tempfile::tempdir().expect("a folder");
    fs::create_dir_all(dir.path().join("menu/.git")).expect("makes it");
    fs::write(dir.path().join("menu/cakes.md"), "# Cakes\n\nThe apple cake has no nuts.\n").expect("writes");
    fs::write(dir.path().join("menu/.git/notes.md"), "The walnut cake is hidden.").expect("writes");
    fs::write(dir.path().join("menu/picture.png"), [0xff, 0xfe, 0]).expect("writes");
    let model = done();
    let agent =
        load(&model, dir.path(), "middleware:\n  - knowledge: {documents: [menu], embedder: hashed, top_k: 3}\n");
    answer(&agent, "Which cake has no nuts?").await;
    let told = model.requests()[0].texts().join("\n");
    assert!(told.contains("cakes.md:1") && told.contains("no nuts") && !told.contains("hidden"), "{told}");

    let call = Turn::calls([("1", "menu", json!({"query": "Which cake has no nuts?"}))]);
    let model = ScriptedModel::new([call, Turn::text("The apple cake.")]);
    let text = "tools:\n  - knowledge: {name: menu, about: the menu, documents: [menu], store: 'sqlite:menu.db'}\n";
    let agent = load(&model, dir.path(), text);
    assert!(!dir.path().join("menu.db").exists(), "an agent is built without I/O");
    answer(&agent, "Which cake?").await;
    assert!(model.requests()[1].texts().join("\n").contains("no nuts"), "{:?}", model.requests()[1].texts());
    assert!(dir.path().join("menu.db").is_file());
    let told = wrong("name: a\nmodel: small\ntools:\n  - knowledge: {documents: [/no/such/folder]}\n");
    assert!(told.contains("agent:4:5: there are no documents at '/no/such/folder'"), "{told}");
}

#[tokio::test]
async fn guards_are_words_and_policies_that_a_named_model_judges() {
    let judge =
        ScriptedModel::new([Turn::text(r#"{"fits": true}"#), Turn::text("no JSON"), Turn::text(r#"{"fits": false}"#)]);
    let registry = Registry::builtin().model("small", done()).model("judge", judge.clone());
    let text = "name: a\nmodel: small\nmiddleware:\n  - guardrails:\n      guards:\n        weapons: {words: {violence: [stab]}, answer: Not that.}\n        weather: {policy: It is about the weather., model: judge, stages: [input], answer: The weather alone.}\n";
    let loaded = Loader::new().registry(registry).read(text, Format::Yaml).unwrap_or_else(|e| panic!("{e}"));
    let agent = loaded.into_builder().build().expect("builds");
    let say = async |text: &str| agent.run(text).await.expect("runs").finished().expect("finishes").answer;
    assert_eq!(say("Will it rain?").await, "done");
    assert_eq!(say("Who wins the election?").await, "The weather alone.");
    assert_eq!(judge.calls(), 3, "it is asked a second time if it cannot be understood");
    assert_eq!(say("Whom shall I STAB?").await, "Not that.");
    let told = wrong("name: a\nmodel: small\nmiddleware:\n  - guardrails: {guards: {empty: {}}}\n");
    assert!(told.contains("the guard 'empty' has either 'words' or a 'policy'"), "{told}");
}

#[tokio::test]
async fn a_middleware_that_asks_a_model_asks_the_one_that_the_file_names() {
    let judge = ScriptedModel::new([Turn::text(r#"{"verdict": "stop", "feedback": ""}"#)]);
    let registry = Registry::builtin().model("small", done()).model("strict", judge.clone());
    let text = "name: a\nmodel: small\nmiddleware:\n  - judge: {max_rounds: 1, model: {name: strict}}\n";
    let loaded = Loader::new().registry(registry).read(text, Format::Yaml).unwrap_or_else(|e| panic!("{e}"));
    answer(&loaded.into_builder().build().expect("builds"), "Hi").await;
    assert_eq!(judge.calls(), 1);
    let told = wrong("name: a\nmodel: small\nmiddleware:\n  - limits: {model: small}\n");
    assert!(told.contains("unknown key 'model'"), "a middleware that asks none: {told}");
    let told = wrong("name: a\nmodel: small\nmiddleware:\n  - judge: {model: none}\n");
    assert!(told.contains("agent:4:5: unknown model 'none'"), "{told}");
    assert!(told.contains("a model is PROVIDER:MODEL"), "{told}");
}

#[test]
fn parts_of_a_system_prompt_have_their_marks_and_are_written_down_again() {
    let text = "name: a\nmodel: small\nsystem:\n  - {text: The rules., cache: long}\n  - Today is Monday.\n";
    let loaded = super::read(text).unwrap_or_else(|e| panic!("{e}"));
    let definition = loaded.definition().clone();
    let agent = loaded.into_builder().build().expect("builds");
    assert_eq!(agent.definition().expect("is data"), definition);
    let written = agent::config::to_yaml(&definition).expect("writes");
    assert_eq!(super::read(&written).expect("reads").definition(), &definition, "{written}");
    let told = wrong("name: a\nmodel: small\nsystem:\n  - {text: The rules., cache: forever}\n");
    assert!(told.contains("4:31: 'forever' is not known here"), "{told}");
}

#[tokio::test]
async fn the_marks_of_a_system_prompt_reach_the_model() {
    struct Marks;
    #[agent::async_trait]
    impl agent::Middleware for Marks {
        fn name(&self) -> &str {
            "marks"
        }
        async fn before_model(
            &self,
            _: &agent::RunCx,
            req: &mut agent::ModelRequest,
        ) -> agent::Result<agent::Flow<agent::ModelResponse>> {
            let marks = req.system.as_ref().into_iter().flat_map(agent::core::SystemMessage::parts);
            let cache = |part: &Part| if let Part::Text(text) = part { text.cache } else { None };
            let said = format!("{:?}", marks.map(cache).collect::<Vec<Option<Cache>>>());
            Ok(agent::Flow::Answer(agent::ModelResponse::new(said.as_str())))
        }
    }
    let registry = Registry::builtin().model("small", done()).middleware("marks", Marks);
    let text =
        "name: a\nmodel: small\nmiddleware: [marks]\nsystem: [{text: The rules., cache: long}, Today is Monday.]\n";
    let agent = Loader::new().registry(registry).read(text, Format::Yaml).expect("reads").into_builder().build();
    assert_eq!(answer(&agent.expect("builds"), "Hi").await, "[Some(Long), None]");
}

#[tokio::test]
async fn what_is_said_of_a_tools_permission_is_a_rule_of_approval() {
    let dir = tempfile::tempdir().expect("a folder");
    let text = "tools:\n  - add: {name: plus, permission: ask}\n  - workspace: {root: ., prefix: fs_, change: {write_file: {permission: deny}, read_file: {name: look, permission: allow}}}\n  - mcp: {name: files, command: [none], permission: ask}\nmiddleware:\n  - limits: {model_calls: 9}\n  - tool_retry\n";
    let model = ScriptedModel::new([Turn::calls([("1", "plus", json!({"a": 1, "b": 2}))]), Turn::text("done")]);
    let loaded = loaded(&model, dir.path(), text);
    let written = serde_json::to_value(loaded.definition()).expect("data");
    let approval = &written["middleware"][1]["approval"]["permissions"];
    assert_eq!(
        approval,
        &json!({"default": "allow", "rules": [
            {"policy": "ask", "tool": "plus"},
            {"policy": "deny", "tool": "fs_write_file"},
            {"policy": "allow", "tool": "fs_look"},
            {"policy": "ask", "tool": "files_*"},
        ]}),
        "outside of what repeats calls: {written}"
    );
    let agent = loaded.into_builder().build().expect("builds");
    assert!(matches!(agent.run("Add.").await, Ok(RunEnd::Interrupted(_))));
    let own = "name: a\nmodel: small\ntools: [{add: {permission: deny}}]\nmiddleware: [{approval: {permissions: {default: ask}}}]\n";
    let own = super::read(own).expect("reads");
    let written = serde_json::to_value(own.definition()).expect("data");
    assert_eq!(
        written["middleware"],
        json!([{"approval": {"permissions": {"default": "ask", "rules": [{"policy": "deny", "tool": "add"}]}}}])
    );
}

#[test]
fn tools_of_the_web_are_there_by_their_own_names() {
    let text = "name: a\nmodel: small\ntools:\n  - web_search\n  - web_fetch: {allow: [docs.rs]}\n";
    let agent = super::read(text).unwrap_or_else(|e| panic!("{e}")).into_builder().build().expect("builds");
    let names: Vec<_> = agent.tools().iter().map(|spec| spec.name.as_str()).collect();
    assert_eq!(names, ["web_search", "web_fetch"]);
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_plugin_brings_its_tools_skills_sub_agents_and_rules() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/plugins/library");
    let digest = agent::tools::plugin::Plugin::load(folder).expect("a plugin").digest().to_owned();
    let plugin = |digest: &str| {
        format!(
            "tools:\n  - plugin: {{folder: '{folder}', digest: '{digest}', config: {{branch: north, card: {{env: PATH}}}}}}\n"
        )
    };
    let dir = tempfile::tempdir().expect("a folder");
    let model =
        ScriptedModel::new([Turn::calls([("1", "library_find_shelf", json!({"title": "Bees"}))]), Turn::text("done")]);
    let loaded = loaded(&model, dir.path(), &plugin(&digest));
    assert!(loaded.definition().sub_agents.contains_key("library_finder"));
    let written = serde_json::to_value(loaded.definition()).expect("data");
    assert_eq!(
        written["middleware"][0]["approval"]["permissions"]["rules"],
        json!([{"policy": "ask", "tool": "library_*"}])
    );
    let agent = loaded.into_builder().build().unwrap_or_else(|e| panic!("{e}"));
    assert!(
        matches!(agent.run("Where are books on bees?").await, Ok(RunEnd::Interrupted(_))),
        "the plugin wants it asked"
    );
    let tools = model.requests()[0].tools.clone();
    for tool in ["delegate", "library_find_shelf", "load_skill"] {
        assert!(tools.iter().any(|name| name == tool), "{tool} of {tools:?}");
    }
    let told = loader_of(&model).load(file(dir.path(), &plugin("sha256:0"))).expect_err("is not trusted").to_string();
    assert!(told.contains("agent.yaml:4:5: "), "{told}");
}

#[tokio::test]
async fn a_server_that_cannot_be_reached_fails_a_run_if_servers_are_required() {
    let text = "name: a\nmodel: small\ntools:\n  - mcp: {name: files, command: [/no/such/program]}\n";
    let of = |loader: Loader| loader.read(text, Format::Yaml).expect("reads").into_builder().build().expect("builds");
    let model = done();
    assert_eq!(answer(&of(loader_of(&model)), "Hi").await, "done");
    let error = of(loader_of(&model).require_servers()).run("Hi").await.expect_err("is required");
    assert_ne!(error.kind(), ErrorKind::Config, "{error}");
}

/// A server of tools whose tool asks the model of its client.
const ASKS: &str = r#"
while read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  case "$line" in
    *'"initialize"'*) echo '{"jsonrpc":"2.0","id":'$id',"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}}' ;;
    *'"tools/list"'*) echo '{"jsonrpc":"2.0","id":'$id',"result":{"tools":[{"name":"think","inputSchema":{"type":"object"}}]}}' ;;
    *'"tools/call"'*) call=$id; echo '{"jsonrpc":"2.0","id":99,"method":"sampling/createMessage","params":{"messages":[{"role":"user","content":{"type":"text","text":"What is 6 x 7?"}}],"maxTokens":5000}}' ;;
    *'"id":99'*) echo '{"jsonrpc":"2.0","id":'$call',"result":{"content":[{"type":"text","text":"thought"}]}}' ;;
  esac
done
"#;

#[cfg(unix)]
#[tokio::test]
async fn a_server_of_tools_asks_the_model_that_the_file_gives_it_and_no_more_than_it_says() {
    let dir = tempfile::tempdir().expect("a folder");
    fs::write(dir.path().join("server.sh"), ASKS).expect("writes");
    for (sampling, tokens) in [("{model: judge, max_tokens: 40}", 40), ("{model: {name: judge}}", 5000)] {
        let judge = ScriptedModel::new([Turn::text("42")]);
        let model = ScriptedModel::new([Turn::calls([("1", "s_think", json!({}))]), Turn::text("done")]);
        let registry = Registry::builtin().model("small", model.clone()).model("judge", judge.clone());
        let text = format!(
            "tools:\n  - mcp: {{name: s, command: [sh, server.sh], directory: ., required: true, sampling: {sampling}}}\n"
        );
        let loaded = Loader::new().registry(registry).load(file(dir.path(), &text)).unwrap_or_else(|e| panic!("{e}"));
        answer(&loaded.into_builder().build().expect("builds"), "Think.").await;
        assert!(model.requests()[1].texts().join("\n").contains("thought"), "{:?}", model.requests()[1]);
        assert_eq!(judge.requests()[0].texts(), ["What is 6 x 7?"]);
        assert_eq!(judge.requests()[0].params.max_tokens, Some(tokens));
    }
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn what_a_file_says_of_the_limits_of_commands_holds() {
    let dir = tempfile::tempdir().expect("a folder");
    let command = json!({"command": "head -c 100000 /dev/zero > big; wc -c < big"});
    let model = ScriptedModel::new([Turn::calls([("1", "bash", command)]), Turn::text("done")]);
    let text = "tools:\n  - shell: {root: ., isolation: landlock, limits: {file: 4096}}\n";
    answer(&load(&model, dir.path(), text), "Write.").await;
    assert!(model.requests()[1].texts().join("\n").contains("4096"), "{:?}", model.requests()[1]);
}
