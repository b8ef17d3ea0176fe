//! Plugins: loading, rejection, and the parts of a trusted plugin.

#![cfg(target_os = "linux")]

use std::{fs, os::unix::fs::PermissionsExt, path::Path, sync::Arc};

use agent_core::{Effect, Resources, Toolset};
use agent_tools::{
    Skill, Skills,
    plugin::{Parts, Plugin, TrustStore},
    sandbox::{Isolation, LocalSandbox, MemorySandbox},
};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::{call_in, run};

const EXAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/plugins/library");
const HEAD: &str = "name: p\nversion: 1.0.0\nframework: '*'\n";

/// Creates a plugin folder with this manifest after the three required keys.
fn folder(manifest: &str) -> TempDir {
    let dir = tempfile::tempdir().expect("a directory");
    fs::write(dir.path().join("plugin.yaml"), format!("{HEAD}{manifest}")).expect("is written");
    dir
}

fn pipe_at(path: &Path) {
    let made = std::process::Command::new("mkfifo").arg(path).status().expect("runs");
    assert!(made.success());
}

fn refusal(dir: &Path) -> String {
    Plugin::load(dir).expect_err("is refused").to_string()
}

fn trust(plugin: &Plugin, config: &Value) -> agent_core::Result<Parts> {
    plugin.trust(plugin.digest(), config, &(Arc::new(MemorySandbox::new()) as _))
}

/// Returns the output for `{}` of a plugin's script tool, which runs this line with a secret in its
/// environment.
async fn script(line: &str) -> agent_core::ToolOutput {
    let dir = folder(&format!(
        "config: {{key: {{type: string, secret: true}}}}\nscripts:\n  t:\n    description: d\n    command: [sh, -c, {line:?}]\n    env: {{KEY: '${{config.key}}'}}\n    parameters: {{type: object}}\n"
    ));
    let secrets = tempfile::tempdir().expect("a directory");
    let file = secrets.path().join("key");
    fs::write(&file, "hush-hush\n").expect("is written");
    let plugin = Plugin::load(dir.path()).expect("is one");
    let work = tempfile::tempdir().expect("a directory");
    let sandbox = LocalSandbox::builder(work.path()).isolation(Isolation::None).build().expect("a sandbox");
    let parts =
        plugin.trust(plugin.digest(), &json!({"key": {"file": file}}), &(Arc::new(sandbox) as _)).expect("is trusted");
    assert!(!format!("{parts:?}").contains("hush-hush"));
    let tools = parts.tools.into_tools().expect("one");
    call_in(run(Resources::default()).cx(), &tools[0], json!({})).await.expect("gives")
}

#[tokio::test]
async fn the_example_is_shown_trusted_and_run() {
    let plugin = Plugin::load(EXAMPLE).expect("is one");
    let shown = plugin.to_string();
    for part in [
        "find_shelf.sh",
        "card",
        "secret",
        "required",
        "skills/lending/SKILL.md",
        "You are a librarian.",
        "agent finder: tools [\"library_find_*\"]",
        plugin.digest(),
        "Ask \"library_*\"",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    let (work, secrets) = (tempfile::tempdir().expect("a directory"), tempfile::tempdir().expect("a directory"));
    let card = secrets.path().join("card");
    fs::write(&card, "1234-5678").expect("is written");
    let builder = LocalSandbox::builder(work.path()).readable(plugin.dir());
    let sandbox = builder.clone().build().or_else(|_| builder.isolation(Isolation::None).build()).expect("a sandbox");
    let config = json!({"branch": "north", "card": {"file": card}});
    let parts = plugin.trust(plugin.digest(), &config, &(Arc::new(sandbox) as _)).expect("is trusted");
    assert_eq!(parts.tools.names(), ["library_find_shelf"]);
    assert_eq!(parts.skills.tools().names(), ["load_skill"]);
    assert_eq!(parts.prompts["librarian"], "You are a librarian.\n");
    assert_eq!(parts.ask, ["library_*"]);
    let [finder] = &parts.agents[..] else { panic!("one agent") };
    assert_eq!((finder.name.as_str(), finder.tools.names()), ("library_finder", vec!["library_find_shelf".to_owned()]));
    drop(plugin); // the parts keep their resources alive
    let skill = parts.skills.tools().into_tools().expect("one").remove(0);
    let lending = call_in(run(Resources::default()).cx(), &skill, json!({"name": "lending"})).await.expect("is loaded");
    assert!(!lending.is_error(), "{}", lending.to_text());
    let tools = parts.tools.into_tools().expect("one");
    assert_eq!(tools[0].options().effect, Effect::Pure);
    let output = call_in(run(Resources::default()).cx(), &tools[0], json!({"title": "Emma"})).await.expect("gives");
    assert_eq!(output.as_value(), Some(&json!({"branch": "north", "asked": {"title": "Emma"}, "shelf": 7})));
}

#[test]
fn a_folder_that_changed_by_a_byte_must_be_trusted_anew_and_what_was_trusted_stays_what_it_was() {
    let dir = folder("prompts: {a: a.md}");
    let file = dir.path().join("a.md");
    fs::write(&file, "good").expect("is written");
    let plugin = Plugin::load(dir.path()).expect("is one");
    fs::write(&file, "evil").expect("is written");
    assert_eq!(trust(&plugin, &Value::Null).expect("was looked at").prompts["a"], "good");
    assert_eq!(fs::read_to_string(plugin.dir().join("a.md")).expect("is copied"), "good");

    let again = Plugin::load(dir.path()).expect("is one");
    let old = again.trust(plugin.digest(), &Value::Null, &(Arc::new(MemorySandbox::new()) as _));
    let error = old.expect_err("an old digest").to_string();
    assert!(error.contains("is not what was trusted"), "{error}");
    assert_eq!(trust(&again, &Value::Null).expect("is trusted").prompts["a"], "evil");

    fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).expect("is set");
    assert_ne!(Plugin::load(dir.path()).expect("is one").digest(), again.digest(), "a program is no text");
}

#[test]
fn the_copy_is_there_as_long_as_somebody_may_need_it() {
    let plugin = Plugin::load(EXAMPLE).expect("is one");
    let copy = plugin.dir().to_owned();
    let config = json!({"branch": "north", "card": {"env": "PATH"}});
    let parts = trust(&plugin, &config).expect("is trusted");
    drop(plugin);
    assert!(copy.join("scripts/find_shelf.sh").exists());
    drop(parts);
    assert!(!copy.exists());
}

#[test]
fn what_was_trusted_is_kept_for_the_next_process_and_can_be_forgotten() {
    let dir = folder("");
    let plugin = Plugin::load(dir.path()).expect("is one");
    let kept = tempfile::tempdir().expect("a directory");
    let file = kept.path().join("trusted.json");
    let store = || TrustStore::new(&file);
    assert_eq!(store().digest("p").expect("is read"), None);
    store().trust(&plugin).expect("is kept");
    assert_eq!(store().digest("p").expect("is read").as_deref(), Some(plugin.digest()));
    assert_eq!(fs::metadata(&file).expect("is there").permissions().mode() & 0o777, 0o600);
    store().forget("p").expect("is written");
    assert_eq!(store().digest("p").expect("is read"), None);
    fs::write(&file, "{").expect("is written");
    let error = store().trust(&plugin).expect_err("is damaged").to_string();
    assert!(error.contains("trusted.json"), "{error}");
    assert_eq!(fs::read_to_string(&file).expect("is there"), "{", "nothing is lost");
}

#[test]
fn a_plugin_brings_no_tool_that_it_denies_and_skills_of_two_go_together() {
    let tool = |name: &str| format!("  {name}: {{description: d, command: [x], parameters: {{type: object}}}}\n");
    let scripts = format!("scripts:\n{}{}", tool("look"), tool("burn"));
    let dir = folder(&format!("{scripts}permissions: [{{policy: deny, tool: '*_burn'}}]\n"));
    let parts = trust(&Plugin::load(dir.path()).expect("is one"), &Value::Null).expect("is trusted");
    assert_eq!(parts.tools.names(), ["p_look"]);

    let dir = folder("skills: [s]");
    fs::create_dir_all(dir.path().join("s/brewing")).expect("is made");
    fs::write(dir.path().join("s/brewing/SKILL.md"), "---\ndescription: When tea is made.\n---\nBoil.\n")
        .expect("is written");
    let other = trust(&Plugin::load(dir.path()).expect("is one"), &Value::Null).expect("is trusted");
    let library =
        trust(&Plugin::load(EXAMPLE).expect("is one"), &json!({"card": {"env": "PATH"}})).expect("is trusted");
    let mut all = library.skills.iter().chain(other.skills.iter()).cloned();
    let skills = all.try_fold(Skills::new(), Skills::skill).expect("of two names");
    assert_eq!(skills.iter().map(Skill::name).collect::<Vec<_>>(), ["brewing", "lending"]);
}

/// Hand-written MCP server, as a plugin's own program.
const SERVER: &str = r#"
import json, os, sys
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked: continue
    tool = lambda name: {"name": name, "inputSchema": {"type": "object"}}
    said = {
        "initialize": lambda: {"protocolVersion": asked["params"]["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": {"name": "bees", "version": "1"}},
        "tools/list": lambda: {"tools": [tool("count"), tool("burn")]},
        "tools/call": lambda: {"content": [{"type": "text", "text": os.environ["HIVE"]}]},
    }[asked["method"]]()
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": said}), flush=True)
"#;

/// Creates a plugin with that server and one additional manifest line about it.
fn with_server(program: &str, more: &str) -> TempDir {
    let manifest = format!(
        "config: {{hive: {{type: string, secret: true}}}}\nmcp:\n  bees:\n    command: [python3, '${{plugin.dir}}/bees.py']\n    env: {{HIVE: '${{config.hive}}'}}\n{more}permissions: [{{policy: deny, tool: 'p_bees_b*'}}]\n"
    );
    let dir = folder(&manifest);
    fs::write(dir.path().join("bees.py"), program).expect("is written");
    fs::write(dir.path().join("hive"), "seven\n").expect("is written");
    dir
}

#[tokio::test]
async fn a_server_of_tools_is_a_program_of_the_copy_and_its_denied_tools_are_not_there() {
    let dir = with_server(SERVER, "    outside_sandbox: true\n");
    let plugin = Plugin::load(dir.path()).expect("is one");
    assert!(plugin.to_string().contains("OUTSIDE ANY SANDBOX"));
    let parts = trust(&plugin, &json!({"hive": {"file": dir.path().join("hive")}})).expect("is trusted");
    drop((plugin, dir));
    let run = run(Resources::default());
    let tools = parts.servers[0].tools(run.cx()).await.expect("is started");
    let names: Vec<_> = tools.iter().map(|tool| tool.spec().name).collect();
    assert_eq!(names, ["p_bees_count"]);
    let output = call_in(run.cx(), &tools[0], json!({})).await.expect("answers");
    assert_eq!(output.to_text(), "seven");
}

#[tokio::test]
async fn a_server_of_tools_runs_in_the_sandbox_and_reaches_what_that_lets_it_reach() {
    let (work, outside) = (tempfile::tempdir().expect("a directory"), tempfile::tempdir().expect("a directory"));
    let mark = outside.path().join("mark");
    // It writes to its standard error, even within a line, and tries to write outside.
    let tries = format!(
        "import sys\nprint('half a line', end='', file=sys.stderr, flush=True)\ntry:\n    open({mark:?}, 'w').write('x')\nexcept OSError: pass\n"
    );
    let dir = with_server(&(tries + SERVER), "");
    let plugin = Plugin::load(dir.path()).expect("is one");
    assert!(plugin.to_string().contains("in the sandbox") && !plugin.to_string().contains("OUTSIDE"));
    let builder = LocalSandbox::builder(work.path()).readable(plugin.dir());
    let Ok(sandbox) = builder.clone().build() else {
        return eprintln!("skipped: nothing can be kept in here");
    };
    let keeps_files = agent_tools::sandbox::Sandbox::guarantees(&sandbox).files;
    let config = json!({"hive": {"file": dir.path().join("hive")}});
    let parts = plugin.trust(plugin.digest(), &config, &(Arc::new(sandbox) as _)).expect("is trusted");
    let run = run(Resources::default());
    let tools = parts.servers[0].tools(run.cx()).await.expect("is started");
    assert_eq!(tools.iter().map(|tool| tool.spec().name).collect::<Vec<_>>(), ["p_bees_count"]);
    for _ in 0..3 {
        assert_eq!(call_in(run.cx(), &tools[0], json!({})).await.expect("answers").to_text(), "seven");
    }
    assert!(keeps_files && !mark.exists(), "it wrote outside of the sandbox");
}

#[test]
fn what_changed_since_a_plugin_was_trusted_is_named_part_by_part_and_file_by_file() {
    let tool = |name: &str, about: &str| {
        format!("  {name}: {{description: {about}, command: [x], parameters: {{type: object}}}}\n")
    };
    let dir = folder(&format!("scripts:\n{}{}prompts: {{a: a.md}}\n", tool("look", "d"), tool("burn", "d")));
    fs::write(dir.path().join("a.md"), "one").expect("is written");
    fs::write(dir.path().join("run.sh"), "one").expect("is written");
    let kept = tempfile::tempdir().expect("a directory");
    let store = TrustStore::new(kept.path().join("trusted.json"));
    let load = || Plugin::load(dir.path()).expect("is one");
    assert_eq!(store.changes(&load()).expect("is read"), None, "nothing was trusted");
    store.trust(&load()).expect("is kept");
    assert!(store.changes(&load()).expect("is read").expect("is known").is_empty());

    let rest = format!("scripts:\n{}{}prompts: {{a: a.md}}\n", tool("look", "other"), tool("sing", "d"));
    let manifest = format!("{}{rest}", HEAD.replace("1.0.0", "2.0.0"));
    fs::write(dir.path().join("plugin.yaml"), manifest).expect("is written");
    fs::write(dir.path().join("a.md"), "two").expect("is written");
    fs::set_permissions(dir.path().join("run.sh"), fs::Permissions::from_mode(0o755)).expect("is set");
    let changes = store.changes(&load()).expect("is read").expect("is known");
    assert_eq!((&*changes.from, &*changes.to), ("1.0.0", "2.0.0"));
    assert_eq!(
        (&changes.added[..], &changes.removed[..]),
        (&["script sing".to_owned()][..], &["script burn".to_owned()][..])
    );
    let changed = ["file \"a.md\"", "file \"plugin.yaml\"", "file \"run.sh\"", "prompt \"a\"", "script look"];
    assert_eq!(changes.changed, changed);
    assert!(changes.to_string().contains("  changed script look\n"), "{changes}");
    store.trust(&load()).expect("is kept");
    assert!(store.changes(&load()).expect("is read").expect("is known").is_empty());
}

#[test]
fn the_servers_of_a_document_and_hidden_characters_are_shown() {
    let dir = folder("openapi: {a: {document: a.yaml}}\nprompts: {p: p.md}\n");
    let document = "openapi: 3.1.0\nservers: [{url: 'https://a.example'}]\npaths:\n  /x:\n    get:\n      servers: [{url: 'https://b.example'}]\n      operationId: x\n";
    fs::write(dir.path().join("a.yaml"), document).expect("is written");
    fs::write(dir.path().join("p.md"), "good\u{202e}live\u{1b}[2J").expect("is written");
    let shown = Plugin::load(dir.path()).expect("is one").to_string();
    assert!(shown.contains("https://a.example") && shown.contains("https://b.example"), "{shown}");
    assert!(shown.contains("good\\u{202e}live\\u{1b}[2J"), "{shown}");
}

#[test]
fn what_a_manifest_has_wrong_is_said_with_its_key() {
    for (manifest, said) in [
        ("tool: {}", "unknown field `tool`"),
        ("scripts: {a: {description: d, command: [], parameters: {}}}", "scripts.a"),
        ("scripts: {a b: {description: d, command: [x], parameters: {}}}", "'a b' is no name"),
        ("mcp: {s: {}}", "mcp.s: give either"),
        ("mcp: {s: {command: [x], url: 'http://x'}}", "mcp.s: give either"),
        ("config: {a: {type: text}}", "unknown variant `text`"),
        ("config: {a: {type: string, secret: true, default: x}}", "config.a: a secret"),
        ("config: {a: {type: integer, default: x}}", "config.a.default"),
        ("permissions: [{policy: allow, tool: '*'}]", "unknown variant `allow`, expected `ask` or `deny`"),
        ("prompts: {a: ../a.md}", "'../a.md' is not a file of the plugin"),
        ("prompts: {a: /etc/hostname}", "is not a file of the plugin"),
        ("skills: [..]", "'..' is not a folder of the plugin"),
        ("skills: [x/../../..]", "is not a folder of the plugin"),
    ] {
        let error = refusal(folder(manifest).path());
        assert!(error.contains(said), "{manifest}: {error}");
    }
    let dir = folder("");
    for (head, said) in [
        ("name: p\nversion: 1\nframework: '*'\n", "version"),
        ("name: p\nversion: 1.0.0\nframework: '>=9'\n", "framework: it is made for >=9"),
        ("name: p\nversion: 1.0.0\nframework: new\n", "framework"),
        ("name: ../p\nversion: 1.0.0\nframework: '*'\n", "'../p' is no name"),
    ] {
        fs::write(dir.path().join("plugin.yaml"), head).expect("is written");
        let error = refusal(dir.path());
        assert!(error.contains(said), "{head}: {error}");
    }
}

#[test]
fn links_large_folders_and_expanding_aliases_are_refused() {
    let dir = folder("");
    std::os::unix::fs::symlink("/etc", dir.path().join("etc")).expect("is linked");
    assert!(refusal(dir.path()).contains("links and special files"));

    let dir = folder("");
    pipe_at(&dir.path().join("pipe"));
    assert!(refusal(dir.path()).contains("links and special files"));

    let dir = folder("");
    fs::File::create(dir.path().join("large")).and_then(|file| file.set_len(33 << 20)).expect("is made");
    assert!(refusal(dir.path()).contains("more than 32 MiB"));

    let dir = folder("");
    fs::create_dir_all(dir.path().join("d/".repeat(20))).expect("is made");
    assert!(refusal(dir.path()).contains("16 deep"));

    let mut bomb = "a: &a [x, x, x, x, x, x, x, x, x]\n".to_owned();
    for (before, name) in ('a'..'k').zip('b'..='k') {
        bomb += &format!("  {name}: &{name} [{}]\n", vec![format!("*{before}"); 9].join(", "));
    }
    let manifest =
        format!("scripts:\n t:\n  description: d\n  command: [x]\n  parameters:\n   {}", bomb.replace("  ", "   "));
    assert!(refusal(folder(&manifest).path()).contains("repetition limit"), "a billion laughs");
}

#[test]
fn values_are_checked_and_secrets_come_by_reference_alone() {
    let dir = folder("config:\n  key: {type: string, secret: true, required: true}\n  n: {type: integer}\n");
    let plugin = Plugin::load(dir.path()).expect("is one");
    for (config, said) in [
        (json!({}), "config.key: it is required"),
        (json!({"key": "hush-hush"}), "config.key: it is a secret"),
        (json!({"key": {"env": "NO_SUCH_VARIABLE_OF_ALL"}}), "NO_SUCH_VARIABLE_OF_ALL is not set"),
        (json!({"key": {"env": "PATH"}, "n": "1"}), "config.n"),
        (json!({"key": {"env": "PATH"}, "m": 1}), "config.m: the plugin has no such value; it has: key, n"),
        (json!([]), "is an object"),
    ] {
        let error = trust(&plugin, &config).expect_err("is refused").to_string();
        assert!(error.contains(said) && !error.contains("hush-hush"), "{error}");
    }
    let seen = "config: {key: {type: string, secret: true}}\nmcp: {s: {command: [x, '${config.key}']}}";
    let dir = folder(seen);
    let plugin = Plugin::load(dir.path()).expect("is one");
    let error = trust(&plugin, &json!({"key": {"env": "PATH"}})).expect_err("others see arguments").to_string();
    assert!(error.contains("a secret may stand in env"), "{error}");
}

#[tokio::test]
async fn a_script_that_fails_or_floods_is_an_error_result_and_its_secrets_stay_hidden() {
    let failed = script("echo it is closed; exit 3").await;
    assert!(failed.is_error());
    assert_eq!(failed.to_text(), "it is closed\n[exit code 3]");
    let told = script("echo the key is $KEY").await;
    assert_eq!(told.to_text(), "the key is [secret]");
    let flood = script("yes").await;
    assert!(flood.is_error() && flood.to_text().contains("was ended"));
}
