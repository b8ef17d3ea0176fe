//! Tests of invalid files.

use std::{env, panic, time::Instant};

use agent::config::Format;
use proptest::{prelude::*, test_runner::TestRunner};

use super::{loader, read, wrong};

#[test]
fn what_is_wrong_is_said_in_words_of_the_file() {
    let told = wrong("name: a\nname: b\nmodel: quick\n");
    assert!(told.contains("agent:2:1: the key 'name' is written twice") && !told.contains("Policy"), "{told}");
    let told = wrong("name: a\nmodel: quick\ntools:\n  - shell: {permission: ask}\n");
    assert!(told.contains("unknown key 'permission'") && told.contains("below 'change'"), "{told}");
}

#[test]
fn all_problems_are_told_at_once_each_with_its_place_and_what_to_do() {
    let text = "\
name: clerk
modle: small            # a slip of the pen
max_steps: many
tools:
  - ad
  - workspace: {rot: .}
middleware:
  - limits: {model_calls: -1}
  - lmits
deadlines: {run: 3}
";
    let told = wrong(text);
    for expected in [
        "agent:2:1: unknown key 'modle'",
        "did you mean 'model'?",
        "2 | modle: small",
        "agent:3:12: a whole number is expected here, not a text",
        "agent:5:5: 'ad' is not known here",
        "did you mean 'add'?",
        "agent:6:17: unknown key 'rot'",
        "did you mean 'root'?",
        "agent:8:27: -1 is too small; the least is 0",
        "agent:9:5: 'lmits' is not known here",
        "did you mean 'limits'?",
    ] {
        assert!(told.contains(expected), "'{expected}' is not in:\n{told}");
    }
    assert!(!told.contains("'model' is missing"), "the misspelt key is the missing one:\n{told}");
}

#[test]
fn what_a_part_says_of_its_configuration_has_the_place_of_the_part() {
    let told = wrong(
        "name: a\nmodel: small\ntools:\n  - add\n  - mcp: {name: files}\n  - workspace: {root: /no/such/folder}\n",
    );
    assert!(told.contains("agent:5:5: a server has either a 'command' or a 'url'"), "{told}");
    assert!(told.contains("agent:6:5: "), "{told}");
    let told = wrong(
        "name: a\nmodel: small\nsub_agents:\n  b:\n    description: Helps.\n    agent: {name: b, model: large}\n",
    );
    assert!(told.contains("agent:6:29: ") && told.contains("large"), "{told}");
}

#[test]
fn a_secret_is_taken_by_reference_alone_and_shown_nowhere() {
    let told = wrong("name: a\nmodel: {name: 'openai:gpt-5', api_key: sk-written}\n");
    assert!(told.contains("a secret is not written into a file") && told.contains("${env.NAME}"), "{told}");
    let told = wrong("name: a\nmax_steps: ${env.NONE}\nmodel: {name: 'openai:gpt-5', api_key: '${env.NONE}'}\n");
    assert!(
        told.contains("NONE is not set") && !told.contains("a secret is") && !told.contains("a whole number"),
        "{told}"
    );
    let text = "name: a\nmodel: {name: 'openai:gpt-5', api_key: '${env.SECRET}'}\ntools:\n  - mcp: {name: m, command: [echo], env: {KEY: '${env.SECRET}'}}\n";
    let loaded = read(text).expect("reads");
    assert!(!format!("{loaded:?}").contains("SECRET123"));
    let written = agent::config::to_yaml(loaded.definition()).expect("writes");
    assert!(written.contains("${env.SECRET}") && !written.contains("SECRET123"), "{written}");
    let told = wrong("name: a\nmodel: {name: 'openai:gpt-5', api_key: '${env.SECRET}', retires: 3}\n");
    assert!(!told.contains("SECRET123"), "{told}");
}

#[test]
fn a_permission_of_a_server_without_a_prefix_is_no_rule_about_all_tools() {
    let told =
        wrong("name: a\nmodel: small\ntools:\n  - mcp: {name: m, command: [x], prefix: '', permission: allow}\n");
    assert!(told.contains("agent:4:58: without a prefix") && told.contains("approval"), "{told}");
}

#[test]
fn a_sandbox_for_each_session_is_of_one_kind_with_its_key_by_reference() {
    let file = |config: &str| format!("name: a\nmodel: small\ntools:\n  - sandbox: {config}\n");
    for right in [
        "{container: {image: 'debian:12', cpus: 0.5, limits: {memory: 1000000}}, idle: 60, tools: [bash, read_file], change: {bash: {permission: ask}}}",
        "{e2b: {template: base, api_key: '${env.SECRET}'}, network: true, env: {A: b}}",
    ] {
        read(&file(right)).unwrap_or_else(|e| panic!("{e}")).into_builder().build().expect("nothing is started yet");
    }
    assert!(wrong(&file("{idle: 60}")).contains("either a 'container' or a machine of 'e2b'"));
    assert!(wrong(&file("{e2b: {template: base, api_key: k}}")).contains("a secret is not written into a file"));
    assert!(wrong(&file("{container: {image: a, limits: {memry: 1}}}")).contains("did you mean 'memory'?"));
}

#[test]
fn agents_elsewhere_are_tools_with_a_name_a_token_by_reference_and_a_permission() {
    let file = |tool: &str| format!("name: a\nmodel: small\ntools:\n  - {tool}\n");
    for (right, name) in [
        (
            "a2a: {name: travel, description: Plans trips., url: 'https://a.example', bearer: '${env.SECRET}', permission: ask}",
            "travel",
        ),
        ("acp: {command: [my-agent], env: {A: b}, timeout: 60, permission: ask}", "acp"),
        ("served: {name: travel, service: Travel, timeout: 60, max_depth: 2, permission: ask}", "travel"),
    ] {
        let loaded = read(&file(right)).unwrap_or_else(|e| panic!("{e}"));
        let permissions = loaded.permissions().expect("a rule");
        assert_eq!(
            permissions.decide(name, &serde_json::json!({})).policy,
            agent::middleware::permissions::Policy::Ask
        );
        let agent = loaded.into_builder().build().expect("nothing is reached yet");
        assert_eq!(agent.tools()[0].name, name);
    }
    assert!(wrong(&file("a2a: {url: 'https://a.example', bearer: k}")).contains("a secret is not written into a file"));
    assert!(wrong(&file("acp: {comand: [x]}")).contains("did you mean 'command'?"));
}

#[test]
fn problems_are_told_in_the_order_of_the_file() {
    let told = wrong("name: a\nmodle: small\nsystem: ${env.NONE}\nmax_steps: many\n");
    let places: Vec<_> = ["agent:2:", "agent:3:", "agent:4:"].iter().map(|place| told.find(place)).collect();
    assert!(places.is_sorted() && places.iter().all(Option::is_some), "{told}");
}

#[test]
fn what_a_comment_says_is_nothing_and_a_value_cannot_become_a_key() {
    let model = "name: a\nmodel: small\n# ${env.NONE}\n";
    read(model).expect("a comment refers to nothing");
    let told = wrong("name: '${env.FIVE}\\n'\nmodel: small\nsystem: ${env.NONE}\n");
    assert!(told.contains("agent:3:9: the environment variable NONE is not set"), "{told}");
    let loaded = loader()
        .environment(|_| Some("x\nmax_steps: 1".to_owned()))
        .read("name: a\nmodel: small\nsystem: ${env.TEXT}", Format::Yaml);
    let loaded = loaded.expect("reads");
    assert_eq!(
        (loaded.definition().system.clone(), loaded.definition().max_steps),
        (Some("x\nmax_steps: 1".into()), 100)
    );
}

#[test]
fn a_reference_has_the_type_that_is_expected_where_it_stands() {
    let loaded = read("name: a\nmodel: small\nmax_steps: ${env.FIVE}\nstreaming: ${env.YES}\nsystem: ${env.FIVE}\n")
        .expect("reads");
    let definition = loaded.definition();
    assert_eq!((definition.max_steps, definition.streaming, definition.system.clone()), (5, true, Some("5".into())));
    let told = wrong("name: a\nmodel: small\nwhen_busy: ${env.SECRET}\nbudget: {wall_time: '${env.MINUS}'}\n");
    assert!(told.contains("agent:3:12: what this refers to is not known here"), "{told}");
    assert!(told.contains("agent:4:21: what this refers to is out of range"), "{told}");
    assert!(!told.contains("SECRET123") && !told.contains("-7"), "{told}");
    let told = wrong("name: a\nmodel: small\nmax_steps: ${env.SECRET}\n");
    assert!(told.contains("agent:3:12: a whole number is expected here") && !told.contains("SECRET123"), "{told}");
}

/// Number of inputs. `AGENT_FUZZ_ITERATIONS` sets it for a long run.
fn iterations() -> u32 {
    env::var("AGENT_FUZZ_ITERATIONS").ok().and_then(|n| n.parse().ok()).unwrap_or(400)
}

const SEEDS: [&str; 5] = [
    "name: clerk\nmodel: {name: small, fallbacks: [small]}\ntools:\n  - add: {name: plus, fixed: {a: 1}}\n  - workspace: {root: ., tools: [read_file]}\nmiddleware:\n  - limits: {model_calls: 5}\n    for_all: true\nbudget: {tokens: 100}\n",
    "name: &a clerk\nmodel: *a\nsystem: |\n  Two\n  lines ${variables.x}\nvariables: {x: 1}\nstate:\n  notes: {schema: {type: array}, merge: append, default: []}\n",
    "{\"name\": \"a\", \"model\": \"small\", \"sub_agents\": {\"b\": {\"description\": \"d\", \"agent\": {\"name\": \"b\", \"model\": \"small\"}}}}",
    "name: a\nmodel: small\nsystem:\n  - {text: Rules., cache: long}\n  - Monday.\ntelemetry: {content: off}\nmiddleware:\n  - guardrails: {guards: {w: {words: {v: [stab]}}, p: {policy: Fine., model: small}}}\n  - judge: {model: {name: small}}\ntools:\n  - add: {permission: ask}\n  - mcp: {name: m, command: [x], permission: deny}\nsub_agents: {b: {description: d, agent: {name: b, model: small, offer_sub_agents: false}}}\n",
    "type: agent\nname: a\nllm_config: {model: m, base_url: 'http://127.0.0.1:1'}\ntools:\n  - {name: add, yaml_path: t, binding: 'acme:add', extra_kwargs: {b: 1}}\nmcp_servers: [{name: s, type: http, url: 'http://127.0.0.1:1', permissions: {deny: [x]}}]\nstop_tools: [add]\nmiddlewares: [{import: 'nexau.archs.main_sub.m:LoggingMiddleware'}]\n",
];

#[test]
fn no_input_makes_the_loader_panic_or_hang_and_every_error_has_a_place() {
    let mutation = (0..SEEDS.len(), prop::collection::vec((any::<prop::sample::Index>(), 0..4_u8, piece()), 0..6));
    let input = prop_oneof![
        3 => mutation.prop_map(|(seed, changes)| changed(SEEDS[seed], &changes)),
        1 => "\\PC{0,200}",
        1 => prop::collection::vec(any::<u8>(), 0..200).prop_map(|bytes| String::from_utf8_lossy(&bytes).into_owned()),
    ];
    let loader = loader();
    loader.schema();
    let mut runner = TestRunner::new(ProptestConfig { cases: iterations(), ..ProptestConfig::default() });
    let tried = runner.run(&(input, any::<bool>()), |(text, toml)| {
        let begun = Instant::now();
        let format = if toml { Format::Toml } else { Format::Yaml };
        let read = panic::catch_unwind(panic::AssertUnwindSafe(|| loader.read(text.clone(), format)));
        let read = read.map_err(|_| TestCaseError::fail("it panics"))?;
        prop_assert!(begun.elapsed().as_secs() < 10, "it hangs");
        if let Err(problems) = read {
            prop_assert!(problems.iter().next().is_some());
            for problem in problems.iter() {
                prop_assert!(problem.line() >= 1 && problem.column() >= 1 && !problem.message().is_empty());
            }
        }
        Ok(())
    });
    tried.unwrap_or_else(|e| panic!("{e}"));
}

/// Files that are made of one another in all ways that there are.
const FILES: [(&str, &str); 4] = [
    (
        "agent.yaml",
        "extends: base.yaml\nname: a\nvariables: {x: '${file.p.md}', g: {y: '${variables.x}'}}\nsystem: ${variables.g.y}\ntools:\n  - include: parts.yaml\nsub_agents:\n  b: b.yaml\n  c: {description: d, agent: b.yaml}\n",
    ),
    ("base.yaml", "model: small\nextends: parts.yaml\nmiddleware: [{include: parts.yaml}]\n"),
    ("parts.yaml", "tools:\n  - add: {name: plus}\n  - include: base.yaml\nmiddleware: [limits: {model_calls: 1}]\n"),
    ("b.yaml", "name: b\ndescription: ${file.p.md:-x}\nmodel: small\nsub_agents: {d: agent.yaml}\nstore: memory\n"),
];

#[test]
fn no_files_make_the_loader_panic_or_hang_however_they_name_one_another() {
    let names = prop::sample::select(vec!["agent.yaml", "b.yaml", "p.md", "/dev/zero", "..", ".", "", "${file.p.md}"]);
    let piece = prop_oneof![piece(), names.prop_map(str::to_owned)];
    let change = (any::<prop::sample::Index>(), 0..4_u8, piece);
    let changes = prop::collection::vec((0..FILES.len(), prop::collection::vec(change, 1..4)), 0..4);
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("p.md"), "${env.NONE} name: x").expect("writes");
    let (loader, path) = (loader(), folder.path().join("agent.yaml"));
    let mut runner = TestRunner::new(ProptestConfig { cases: iterations() / 2, ..ProptestConfig::default() });
    let tried = runner.run(&changes, |changes| {
        for (at, (name, seed)) in FILES.iter().enumerate() {
            let text =
                changes.iter().filter(|(of, _)| *of == at).fold((*seed).to_owned(), |text, (_, c)| changed(&text, c));
            std::fs::write(folder.path().join(name), text).expect("writes");
        }
        let begun = Instant::now();
        let read = panic::catch_unwind(panic::AssertUnwindSafe(|| drop((loader.load(&path), loader.store(&path)))));
        prop_assert!(read.is_ok(), "it panics");
        prop_assert!(begun.elapsed().as_secs() < 10, "it hangs");
        Ok(())
    });
    tried.unwrap_or_else(|e| panic!("{e}"));
}

/// Text that YAML has a meaning for.
fn piece() -> impl Strategy<Value = String> {
    prop_oneof![
        prop::sample::select(vec![
            "- ", ": ", "\n", "{", "}", "[", "]", "&a ", "*a", "!!str ", "|", ">", "'", "\"", "#", "---\n", "...",
            "<<: ", "\t", "${env.X}", "${", "null", "~", "1e999", ".nan", "0x1F", "? ",
        ])
        .prop_map(str::to_owned),
        "[a-z_]{1,8}",
    ]
}

fn changed(seed: &str, changes: &[(prop::sample::Index, u8, String)]) -> String {
    let mut text: Vec<char> = seed.chars().collect();
    for (at, kind, piece) in changes {
        if text.is_empty() {
            break;
        }
        let at = at.index(text.len());
        match kind {
            0 => drop(text.remove(at)),
            1 => drop(text.splice(at..at, piece.chars()).collect::<Vec<_>>()),
            2 => text.truncate(at.max(1)),
            _ => text.extend_from_within(at..),
        }
    }
    text.into_iter().collect()
}

#[test]
fn what_a_file_cannot_mean_is_told_with_its_place_and_what_was_meant() {
    for (keys, told) in [
        ("store: sqlit:foo.db\n", &["agent:3:8: unknown store kind 'sqlit'", "did you mean 'sqlite'?"][..]),
        (
            "models: {fast: {name: small}}\nsub_agents: {b: {description: B., agent: {name: b, model: fats}}}\n",
            &["unknown model 'fats'", "did you mean 'fast'?"],
        ),
        (
            "tools:\n  - command: {name: q, description: Q., run: [echo, '{{ q }}'], root: .}\n",
            &["agent:4:", "'{{ q }}' is not filled in", "standard input"],
        ),
    ] {
        let text = format!("name: a\nmodel: small\n{keys}");
        let problems = super::loader().read(&*text, agent::config::Format::Yaml).expect_err(keys).to_string();
        assert!(told.iter().all(|told| problems.contains(told)), "{keys}\n{problems}");
    }
}

#[test]
fn what_is_found_when_an_agent_is_built_has_a_place() {
    for (keys, told) in [
        ("exit_on: [text, finsh]\n", "agent:3:17: exit condition 'finsh'"),
        (
            "tools:\n  - ask_user\n  - workspace: {root: .}\n  - workspace: {root: .}\n",
            "agent:6:5: two tools are named",
        ),
        ("system_prompt: 'Hello {{ name'\n", "agent:3:16: "),
    ] {
        let text = format!("name: a\nmodel: small\n{keys}");
        let loaded = match super::loader().read(&*text, agent::config::Format::Yaml) {
            Ok(loaded) => loaded,
            Err(problems) => {
                assert!(problems.to_string().contains(told), "{keys}\n{problems}");
                continue;
            }
        };
        let error = loaded.builder().build().expect_err(keys);
        let located = loaded.locator().located(error);
        assert!(located.message().contains(told), "{keys}\n{located}");
    }
}
