//! Keys that are misspelt by one letter.

use proptest::{
    prelude::*,
    strategy::ValueTree,
    test_runner::{Config, RngAlgorithm, TestRng, TestRunner},
};

use agent::config::Format;

use super::loader;

const TRIES: usize = 10_000;

#[test]
fn a_key_that_is_misspelt_by_one_letter_is_named_and_the_right_one_suggested() {
    let loader = loader();
    let properties = loader.schema()["properties"].as_object().expect("keys");
    let keys: Vec<String> = properties.keys().filter(|key| *key != "name" && *key != "model").cloned().collect();
    let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    let slip = (prop::sample::select(keys), any::<prop::sample::Index>(), 0..4_u8, "[a-z]");
    let (mut tried, mut named, mut suggested) = (0, 0, 0);
    while tried < TRIES {
        let (key, at, kind, letter) = slip.new_tree(&mut runner).expect("a value").current();
        let misspelt = misspelt(&key, at, kind, &letter);
        if properties.contains_key(&misspelt) || misspelt.is_empty() {
            continue;
        }
        tried += 1;
        let problems =
            loader.read(format!("name: a\nmodel: small\n{misspelt}: 1\n"), Format::Yaml).expect_err("unknown");
        let problem = problems.iter().next().expect("a problem");
        assert_eq!((problem.line(), problem.column()), (3, 1), "{problem}");
        named += usize::from(problem.message() == format!("unknown key '{misspelt}'"));
        let meant = format!("did you mean '{key}'?");
        suggested += usize::from(problem.advice().is_some_and(|advice| advice.starts_with(&meant)));
    }
    assert_eq!(named, TRIES);
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
