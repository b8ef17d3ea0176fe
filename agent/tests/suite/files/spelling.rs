//! Keys that are misspelt by one letter, at every depth.

use proptest::{
    prelude::*,
    strategy::ValueTree,
    test_runner::{Config, RngAlgorithm, TestRng, TestRunner},
};

use agent::config::Format;
use serde_json::Value;

use super::loader;

const TRIES: usize = 10_000;

/// The keys that a schema within another names.
fn keys(root: &Value, at: &Value) -> Vec<String> {
    if let Some(path) = at["$ref"].as_str() {
        return keys(root, root.pointer(&path[1..]).expect("it is there"));
    }
    let keys = at["properties"].as_object().expect("keys").keys();
    keys.filter(|key| !["name", "model", "command"].contains(&key.as_str())).cloned().collect()
}

/// Contexts of keys: the text around a key, and the known keys.
fn places(schema: &Value) -> Vec<(&'static str, Vec<String>)> {
    let resolved = |at: &Value| keys(schema, at);
    let part = |list: &str, name: &str| {
        let entries = schema["properties"][list]["items"]["anyOf"].as_array().expect("entries");
        resolved(entries.iter().map(|entry| &entry["properties"][name]).find(|part| part.is_object()).expect(name))
    };
    vec![
        ("KEY: 1", resolved(schema)),
        ("budget: {KEY: 1}", resolved(&schema["properties"]["budget"])),
        ("tools: [{workspace: {KEY: 1}}]", part("tools", "workspace")),
        ("tools: [{mcp: {name: m, command: [x], KEY: 1}}]", part("tools", "mcp")),
        ("middleware: [{limits: {KEY: 1}}]", part("middleware", "limits")),
        (
            "sub_agents: {b: {description: d, agent: {name: b, model: small, KEY: 1}}}",
            resolved(&schema["$defs"]["SubAgent"]),
        ),
    ]
}

#[test]
fn a_key_that_is_misspelt_by_one_letter_is_named_and_the_right_one_suggested() {
    let loader = loader();
    let places = places(loader.schema());
    let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    let slip =
        (any::<prop::sample::Index>(), any::<prop::sample::Index>(), any::<prop::sample::Index>(), 0..4_u8, "[a-z]");
    let (mut tried, mut suggested) = (0, 0);
    while tried < TRIES {
        let (place, key, at, kind, letter) = slip.new_tree(&mut runner).expect("a value").current();
        let (around, keys) = &places[place.index(places.len())];
        let key = &keys[key.index(keys.len())];
        let misspelt = misspelt(key, at, kind, &letter);
        if keys.contains(&misspelt) || ["", "name", "model", "command"].contains(&misspelt.as_str()) {
            continue;
        }
        tried += 1;
        let text = format!("name: a\nmodel: small\n{}\n", around.replace("KEY", &misspelt));
        let problems = loader.read(text, Format::Yaml).expect_err("unknown");
        let named = problems.iter().find(|problem| problem.message() == format!("unknown key '{misspelt}'"));
        let named = named.unwrap_or_else(|| panic!("'{misspelt}' is not named: {problems}"));
        assert_eq!((named.line(), named.column()), (3, around.find("KEY").expect("a key") + 1), "{named}");
        let meant = format!("did you mean '{key}'?");
        suggested += usize::from(named.advice().is_some_and(|advice| advice.starts_with(&meant)));
    }
    assert!(suggested * 100 >= TRIES * 95, "{suggested} of {TRIES} had the right key suggested");
}

fn misspelt(key: &str, at: prop::sample::Index, kind: u8, letter: &str) -> String {
    let mut letters: Vec<char> = key.chars().collect();
    let at = at.index(letters.len());
    let letter = letter.chars().next().unwrap_or('x');
    match kind {
        0 => drop(letters.remove(at)),
        1 => letters.insert(at, letter),
        2 => letters[at] = letter,
        _ if at + 1 < letters.len() => letters.swap(at, at + 1),
        _ => letters[at] = letter,
    }
    letters.into_iter().collect()
}
