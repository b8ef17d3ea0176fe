//! Source locations of translated values.

use std::collections::BTreeMap;

use serde_json::Value;

use super::here;
use crate::config::text::{Entry, Node, Place, Tree};

/// The places of the values that stand once in a file.
type Places = BTreeMap<String, Option<Place>>;

/// Gives each value of the translation the place of the same value in the file, or else the place of the value that
/// it is in.
pub(in crate::config) fn placed(translated: &Value, file: &Node) -> Node {
    let mut places = Places::new();
    gather(file, &mut places);
    let mut agent = node(translated, &file.place, &places);
    place_model(&mut agent, file);
    agent
}

/// The model is composed of several values, none of which is written in the file: it has the place of the key that names it.
fn place_model(agent: &mut Node, file: &Node) {
    let config = file.get("llm_config");
    let Some(place) = config.map(|config| config.get("model").unwrap_or(config).place.clone()) else { return };
    let Some(model) = agent.get_mut("model") else { return };
    model.place = place.clone();
    if let Some(name) = model.get_mut("name") {
        name.place = place;
    }
}

fn gather(file: &Node, places: &mut Places) {
    file.list().iter().for_each(|node| gather(node, places));
    file.entries().iter().for_each(|entry| gather(&entry.node, places));
    if let Some(value) = file.scalar() {
        let place = |known: &mut Option<Place>| *known = None;
        let value = here(value.into()).as_str().unwrap_or_default().to_owned();
        places.entry(value).and_modify(place).or_insert_with(|| Some(file.place.clone()));
    }
}

/// Returns the place of the value, or of the first value in it that has a place.
fn found(value: &Value, places: &Places) -> Option<Place> {
    match value {
        Value::Null => None,
        Value::Array(values) => values.iter().find_map(|value| found(value, places)),
        Value::Object(map) => map.values().find_map(|value| found(value, places)),
        Value::String(text) => places.get(text)?.clone(),
        scalar => places.get(&scalar.to_string())?.clone(),
    }
}

fn node(value: &Value, above: &Place, places: &Places) -> Node {
    let place = found(value, places).unwrap_or_else(|| above.clone());
    let tree = match value {
        Value::Null => Tree::Null,
        Value::Bool(value) => Tree::Bool(*value),
        Value::Number(number) => Tree::Number(number.clone()),
        Value::String(text) => Tree::Text(text.clone()),
        Value::Array(values) => Tree::List(values.iter().map(|value| node(value, &place, places)).collect()),
        Value::Object(map) => Tree::Map(
            map.iter()
                .map(|(key, value)| {
                    let node = node(value, &place, places);
                    Entry { key: key.clone(), place: node.place.clone(), node }
                })
                .collect(),
        ),
    };
    Node::new(place, tree)
}
