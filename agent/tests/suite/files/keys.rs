//! Every key acts.

use std::{collections::BTreeSet, sync::Arc};

use agent::{
    ExitReason, RunEnd, RunRequest,
    config::{Format, Loader, Registry},
    testing::{ScriptedModel, Seen, Turn},
    tool,
};
use serde_json::{Value, json};

use super::{loader, loader_of};

/// Text of a key, the answers of the model, and the evidence of the key in two runs.
struct Row {
    key: &'static str,
    file: &'static str,
    turns: Vec<Turn>,
    seen: fn(&Ran) -> bool,
}

/// Two runs in one session, one after the other.
struct Ran {
    /// Definition of the agent, and the composition of its stacks.
    about: String,
    ends: [agent::Result<RunEnd>; 2],
    requests: Vec<Seen>,
}

impl Ran {
    fn system(&self) -> &str {
        self.requests[0].system.as_deref().unwrap_or_default()
    }

    fn told(&self) -> String {
        self.requests.iter().flat_map(Seen::texts).collect::<Vec<_>>().join("\n")
    }

    /// The part of the network that the first run failed at.
    fn failed_part(&self) -> Option<&str> {
        self.ends[0].as_ref().err()?.context("part")
    }

    fn finished(&self) -> &agent::Finished {
        match &self.ends[0] {
            Ok(RunEnd::Finished(end)) => end,
            other => panic!("it finishes: {other:?}"),
        }
    }
}

fn rows() -> Vec<Row> {
    let said = |key, file, seen| Row { key, file, turns: Vec::new(), seen };
    let called = |key, file, tool: &'static str, args: serde_json::Value, seen| Row {
        key,
        file,
        turns: vec![Turn::calls([("1", tool, args)])],
        seen,
    };
    let add = || json!({"a": 1, "b": 2});
    vec![
        said("name", "name: clerk", |ran| ran.about.contains("agent clerk on")),
        said("model", "model: other", |ran| ran.finished().answer == "from other"),
        said("extends", "extends: base.yaml", |ran| ran.about.contains("limits: 7 steps")),
        said("description", "description: Helps.", |ran| ran.about.contains("Helps.")),
        said("variables", "variables: {city: Bern}\nsystem: In ${variables.city}.", |ran| ran.system() == "In Bern."),
        said("models", "models: {fast: {name: other}}\nmodel: fast", |ran| ran.finished().answer == "from other"),
        called("budget", "tools: [add]\nbudget: {model_calls: 1}", "add", add(), |ran| {
            ran.finished().reason == ExitReason::Budget
        }),
        called("globals", "tools: [look]\nglobals: {city: Bern}", "look", json!({}), |ran| ran.told().contains("Bern")),
        said("store", "store: sqlite:kept/runs.db", |ran| {
            ran.about.contains("kept/runs.db") && ran.requests[1].texts().len() == 3
        }),
        said("offer_sub_agents", "offer_sub_agents: false\nsub_agents: {b: b.yaml}", |ran| {
            ran.requests[0].tools.is_empty()
        }),
        said("telemetry", "telemetry: {service: shop, endpoint: 'http://collector:4318'}", |ran| {
            ran.about.contains("shop") && ran.about.contains("collector") && ran.about.contains("-> telemetry")
                || ran.about.contains("once per call: telemetry")
        }),
        said(
            "providers",
            "providers: [{name: corp, wires: [chat], keyless: true, openai: {base_url: 'http://127.0.0.1:1/v1'}}]\n\
             model: {name: 'corp:x', retries: 0}",
            |ran| ran.failed_part() == Some("connection"),
        ),
        said(
            "transport",
            "transport: {proxy: 'http://127.0.0.1:1', connect_timeout: 5}\n\
             model: {name: 'openai:x', api_key: '${env.NO_SUCH_KEY:-k}', retries: 0}",
            |ran| ran.failed_part() == Some("proxy"),
        ),
        said("system", "system: Be kind.", |ran| ran.system() == "Be kind."),
        said(
            "system_prompt",
            "system_prompt: Be {{ tone }}.\ninputs: {tone: {schema: {type: string}, default: kind}}",
            |ran| ran.system() == "Be kind.",
        ),
        said(
            "user_prompt",
            "user_prompt: Say {{ word }}.\ninputs: {word: {schema: {type: string}, default: 'yes'}}",
            |ran| ran.told().contains("Say yes."),
        ),
        said("required_variables", "system_prompt: Be {{ tone }}.\nrequired_variables: none", |ran| {
            ran.system() == "Be ."
        }),
        said(
            "inputs",
            "system_prompt: Be {{ tone }}.\ninputs: {tone: {schema: {type: string}, default: brief}}",
            |ran| ran.system() == "Be brief.",
        ),
        said("state", "state: {notes: {schema: {type: array}, default: [here]}}", |ran| {
            ran.finished().state["notes"] == json!(["here"])
        }),
        said("tools", "tools: [add]", |ran| ran.requests[0].tools == ["add"]),
        said("toolsets", "toolsets: [shelf]", |ran| ran.requests[0].tools == ["look"]),
        said("server_tools", "server_tools: [{web_search: {}}]", |ran| ran.requests[0].tools == ["web_search"]),
        said("middleware", "middleware: [logging]", |ran| ran.about.contains("logging")),
        said("sub_agents", "sub_agents: {b: b.yaml}", |ran| {
            ran.about.contains("sub-agents: b") && ran.requests[0].tools == ["delegate"]
        }),
        called(
            "exit_on",
            "tools: [add]\nexit_on: [add]",
            "add",
            add(),
            |ran| matches!(&ran.finished().reason, ExitReason::Tool(tool) if &**tool == "add"),
        ),
        called("max_steps", "tools: [add]\nmax_steps: 1", "add", add(), |ran| {
            ran.finished().steps == 1 && ran.finished().answer.is_empty()
        }),
        called("final_answer", "tools: [add]\nmax_steps: 1\nfinal_answer: true", "add", add(), |ran| {
            ran.finished().answer == "done"
        }),
        said("tool_concurrency", "tool_concurrency: 3", |ran| ran.about.contains("3 tools at once")),
        called(
            "max_tool_output",
            "tools: [look]\nglobals: {city: 0123456789abcdef}\nmax_tool_output: 9",
            "look",
            json!({}),
            |ran| !ran.told().contains("abcdef"),
        ),
        called("raise_tool_errors", "tools: [fail]\nraise_tool_errors: true", "fail", json!({}), |ran| {
            ran.ends[0].is_err()
        }),
        said("streaming", "streaming: true", |ran| ran.requests[0].stream),
        said("params", "params: {temperature: 0.25}", |ran| ran.requests[0].params.temperature == Some(0.25)),
        called("deadlines", "tools: [slow]\ndeadlines: {tool: 2}", "slow", json!({}), |ran| {
            ran.told().contains("timed out after 2000 ms") && !ran.told().contains("slept")
        }),
        Row {
            key: "when_busy",
            file: "tools: [slow]\nwhen_busy: {queue: {limit: 1}}",
            turns: vec![Turn::calls([("1", "slow", json!({}))])],
            seen: |ran| ran.ends.iter().all(Result::is_ok),
        },
        called("when_waiting", "tools: [ask_user]\nwhen_waiting: supersede", "ask_user", asked(), |ran| {
            matches!(ran.ends[0], Ok(RunEnd::Interrupted(_))) && matches!(ran.ends[1], Ok(RunEnd::Finished(_)))
        }),
    ]
}

fn asked() -> serde_json::Value {
    json!({"questions": [{"question": "Which?", "options": ["a", "b"]}]})
}

/// Tells what the shared storage has of a city.
fn look() -> impl agent::Tool {
    let look =
        async |_: serde_json::Value, req: agent::ToolRequest| format!("{:?}", req.cx.globals().get_value("city"));
    agent::tools::from_schema("look", "Looks.", json!({"type": "object"}), look)
}

/// Fails.
#[tool]
async fn fail() -> agent::Result<String> {
    Err(agent::Error::new(agent::ErrorKind::Tool, "it broke"))
}

/// Takes its time.
#[tool]
async fn slow() -> String {
    tokio::time::sleep(std::time::Duration::from_secs(10)).await;
    "slept".to_owned()
}

struct Shelf(Arc<dyn agent::Tool>);

#[agent::async_trait]
impl agent::tool::Toolset for Shelf {
    async fn tools(&self, _: &agent::RunCx) -> agent::Result<Vec<Arc<dyn agent::Tool>>> {
        Ok(vec![self.0.clone()])
    }
}

fn registry(model: &ScriptedModel) -> Registry {
    Registry::builtin()
        .model("small", model.clone())
        .model("other", ScriptedModel::new(vec![Turn::text("from other"); 9]))
        .tool(super::add)
        .tool(look())
        .tool(fail)
        .tool(slow)
        .toolset("shelf", Shelf(Arc::new(look())))
}

#[test]
fn the_table_of_keys_is_that_of_the_schema() {
    let loader = loader();
    let keys: BTreeSet<_> =
        loader.schema()["properties"].as_object().expect("keys").keys().map(String::as_str).collect();
    let tabled: BTreeSet<_> = rows().iter().map(|row| row.key).collect();
    assert_eq!(keys, tabled);
}

#[tokio::test(start_paused = true)]
async fn every_key_acts() {
    for Row { key, file, turns, seen } in rows() {
        let folder = tempfile::tempdir().expect("a folder");
        let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).expect("writes");
        write("base.yaml", "max_steps: 7\n");
        write("b.yaml", "{name: b, description: d, model: small}");
        let text = whole(file);
        write("agent.yaml", &text);
        let model = ScriptedModel::new(turns.into_iter().chain(vec![Turn::text("done"); 9]));
        let loaded = Loader::new().registry(registry(&model)).load(folder.path().join("agent.yaml"));
        let loaded = loaded.unwrap_or_else(|e| panic!("{key}: {e}"));
        let about = format!("{} {:?} {:?}", loaded.description(), loaded.store(), loaded.exporter());
        let store = loaded.store().cloned().unwrap_or_default().open().await.expect("opens");
        let agent = loaded.into_builder().store(store).build().unwrap_or_else(|e| panic!("{key}: {e}"));
        let about = format!("{about} {}", agent.explain());
        let run = |text: &str| agent.start(RunRequest::user(text).session("s"));
        let (first, second) = match key {
            "when_busy" => tokio::join!(run("Hi"), run("Hi again")),
            _ => (run("Hi").await, run("Hi again").await),
        };
        let ran = Ran { about, ends: [first, second], requests: model.requests() };
        assert!(seen(&ran), "{key}: {} {:?} {:?}", ran.about, ran.ends, ran.requests);
    }
}

/// A value that a schema takes.
fn sample(schema: &Value, root: &Value) -> Value {
    if let Some(path) = schema["$ref"].as_str() {
        return sample(root.pointer(path.trim_start_matches('#')).expect("a definition"), root);
    }
    if let Some(value) = schema.get("const").or_else(|| schema["enum"].get(0)) {
        return value.clone();
    }
    for choice in ["anyOf", "oneOf"] {
        if let Some(first) = schema[choice].as_array().and_then(|all| all.iter().find(|one| one["type"] != "null")) {
            return sample(first, root);
        }
    }
    let kind = schema["type"].as_str().or_else(|| schema["type"][0].as_str());
    match kind {
        Some("boolean") => json!(true),
        Some("integer" | "number") => json!(schema["minimum"].as_f64().unwrap_or(0.0).max(1.0) as u64),
        Some("array") => json!([sample(&schema["items"], root)]),
        Some("string") => json!(match schema["format"].as_str() {
            Some("secret") => "${env.SECRET}",
            Some("store") => "memory",
            _ => ".",
        }),
        _ => {
            let required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
            required.map(|key| (key.to_owned(), sample(&schema["properties"][key], root))).collect()
        }
    }
}

/// The schema says of each key of each part what the part reads: nothing is promised that it does not know, and nothing refused that it does.
#[test]
fn each_key_of_each_part_is_taken_as_the_schema_says() {
    let loader = loader();
    let root = loader.schema();
    let mut tried = 0;
    for list in ["tools", "middleware"] {
        for entry in root["properties"][list]["items"]["anyOf"].as_array().expect("parts").iter().skip(1) {
            let name = entry["required"][0].as_str().expect("a name");
            let mut config = &entry["properties"][name];
            if let Some(path) = config["$ref"].as_str() {
                config = root.pointer(path.trim_start_matches('#')).expect("a definition");
            }
            for (key, schema) in config["properties"].as_object().into_iter().flatten() {
                let mut value = sample(config, root);
                value[key] = sample(schema, root);
                let file = json!({"name": "a", "model": "small", list: [{name: value}]});
                tried += 1;
                let Err(problems) = loader.read(file.to_string(), Format::Yaml) else { continue };
                for problem in problems.iter() {
                    let why = problem.message();
                    let is_of_the_form = ["unknown key", "is expected here", "is wrong: ", "is missing"];
                    assert!(
                        !is_of_the_form.iter().any(|said| why.contains(said)),
                        "{list} {name}.{key}: {why}\n{file}"
                    );
                }
            }
        }
    }
    assert!(tried > 200, "{tried} keys");
}

/// A file that says this, and what it lacks.
fn whole(file: &str) -> String {
    let lacks = |key: &str| !file.lines().any(|line| line.starts_with(&format!("{key}:")));
    let mut text = format!("{file}\n");
    for (key, default) in [("name", "name: a\n"), ("model", "model: small\n")] {
        if lacks(key) {
            text += default;
        }
    }
    text
}

#[tokio::test]
async fn a_budget_ends_a_run() {
    let calls = vec![Turn::calls([("1", "add", json!({"a": 1, "b": 2}))]); 9];
    for text in ["budget: {model_calls: 2}", "budget: {tokens: 30}"] {
        let text = format!("name: a\nmodel: small\ntools: [add]\n{text}\n");
        let loaded = loader_of(&ScriptedModel::new(calls.clone())).read(text, Format::Yaml).expect("reads");
        let end = loaded.into_agent().await.expect("builds").run("Hi").await.expect("ends");
        let RunEnd::Finished(end) = end else { panic!("it finishes") };
        assert_eq!(end.reason, ExitReason::Budget);
    }
}

#[tokio::test]
async fn what_a_file_says_of_a_tool_is_what_the_model_is_told() {
    let model = ScriptedModel::new([Turn::calls([("1", "plus", json!({"b": 2}))]), Turn::text("done")]);
    let text = "name: a\nmodel: small\ntools:\n  - add: {name: plus, description: Adds forty., fixed: {a: 40}, timeout: 5, effect: pure}\n";
    let agent = loader_of(&model).read(text, Format::Yaml).expect("reads").into_agent().await.expect("builds");
    let spec = &agent.tools()[0];
    assert_eq!((spec.name.as_str(), spec.description.as_str()), ("plus", "Adds forty."));
    assert!(spec.parameters.pointer("/properties/a").is_none(), "the model does not see a fixed argument");
    agent.run("Hi").await.expect("runs");
    let told = format!("{:?}", model.requests()[1]);
    assert!(told.contains("42"), "{told}");
}

#[test]
fn the_schema_is_one_that_validators_take_and_accepts_the_same_files() {
    let loader = Loader::new().registry(registry(&ScriptedModel::new([])));
    let schema = jsonschema::validator_for(loader.schema()).expect("a schema");
    for row in rows() {
        let file: serde_json::Value = serde_saphyr::from_str(&whole(row.file)).expect("YAML");
        let wrong: Vec<_> = schema.iter_errors(&file).map(|e| format!("{}: {e}", e.instance_path())).collect();
        assert!(wrong.is_empty(), "{}: {wrong:?}", row.file);
    }
    for right in [
        json!({"name": "a", "model": "small", "max_steps": "${env.STEPS:-20}", "streaming": "${env.S}"}),
        json!({"name": "a", "model": "small", "when_busy": "${env.X}", "budget": {"tokens": "${env.X}"}}),
    ] {
        assert!(schema.is_valid(&right), "{right}");
    }
    for wrong in [
        json!({"name": "a", "model": "small", "max_steps": "many"}),
        json!({"name": "a"}),
        json!({"name": "a", "model": "small", "modle": 1}),
        json!({"name": "a", "model": "small", "tools": ["ad"]}),
    ] {
        assert!(!schema.is_valid(&wrong), "{wrong}");
    }
}
