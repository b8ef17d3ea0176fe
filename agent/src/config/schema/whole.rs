//! The schema of a whole file.

use agent_exec::AgentDefinition;
use schemars::{JsonSchema, SchemaGenerator, generate::SchemaSettings};
use serde_json::{Map, Value, json};

#[cfg(feature = "team")]
use crate::config::team;
use crate::config::{
    file::{FileKeys, ModelRef},
    registry::{Naming, Registry, SchemaOf},
    settle::PEER,
};

/// The JSON Schema of files that name the parts of this registry.
pub(in crate::config) fn whole(registry: &Registry) -> Value {
    let mut generator = SchemaSettings::draft2020_12().into_generator();
    let definition = object(AgentDefinition::json_schema(&mut generator).to_value());
    let keys = object(FileKeys::json_schema(&mut generator).to_value());
    let mut properties = object(definition.get("properties").cloned().unwrap_or_default());
    properties.extend(object(keys.get("properties").cloned().unwrap_or_default()));
    let described = |key: &str, mut schema: Value, properties: &Map<String, Value>| {
        if let Some(about) = properties.get(key).and_then(|old| old.get("description")) {
            schema["description"] = about.clone();
        }
        schema
    };
    let tools = registry.tools.iter().chain(&registry.toolsets);
    let list = |items: Vec<Value>| json!({"type": "array", "items": {"anyOf": items}});
    let peers = registry.tools.iter().filter(|(name, _)| registry.naming.get(*name) == Some(&Naming::Tool));
    let peers = entries(peers, &mut generator);
    let tools = list(entries(tools, &mut generator));
    let toolsets = list(entries(registry.toolsets.iter(), &mut generator));
    let middleware = list(entries(registry.middlewares.iter(), &mut generator));
    for (key, schema) in [
        ("tools", tools),
        ("toolsets", toolsets),
        ("middleware", middleware),
        ("model", generator.subschema_for::<ModelRef>().to_value()),
        ("sub_agents", sub_agents(&peers)),
    ] {
        let schema = described(key, schema, &properties);
        properties.insert(key.to_owned(), schema);
    }
    let agent = json!({
        "type": "object",
        "description": "An agent.",
        "properties": properties,
        "required": ["name", "model"],
        "additionalProperties": false,
    });
    let mut within = agent.clone();
    within["description"] = json!("A sub-agent. Store, budget and models are those of the agent above.");
    if let Some(properties) = within["properties"].as_object_mut() {
        properties
            .retain(|key, _| !FileKeys::ALL.contains(&key.as_str()) || FileKeys::OF_SUB_AGENTS.contains(&key.as_str()));
    }
    #[cfg(feature = "team")]
    let (team, member) = {
        let team = team::file_schema(agent["properties"].as_object().unwrap_or(&Map::new()), &mut generator);
        (team, team::member_schema(&agent))
    };
    let mut definitions = generator.take_definitions(true);
    #[cfg(feature = "team")]
    definitions.extend([("TeamFile".to_owned(), team), (team::AGENT_OF_TEAM.to_owned(), member)]);
    definitions.insert("SubAgent".to_owned(), within);
    definitions.values_mut().for_each(close);
    let mut whole = object(agent);
    whole.insert("$schema".to_owned(), json!("https://json-schema.org/draft/2020-12/schema"));
    whole.insert("title".to_owned(), json!("Agent file"));
    whole.insert("$defs".to_owned(), Value::Object(definitions));
    Value::Object(whole)
}

/// Refuses keys that no property has, in all maps below: serde would leave them out in silence.
fn close(schema: &mut Value) {
    match schema {
        Value::Object(map) => {
            let is_open = map.contains_key("properties") && !map.contains_key("additionalProperties");
            let is_whole = !["$ref", "allOf", "anyOf", "oneOf"].iter().any(|key| map.contains_key(*key));
            map.values_mut().for_each(close);
            if is_open && is_whole {
                map.insert("additionalProperties".to_owned(), Value::Bool(false));
            }
        }
        Value::Array(schemas) => schemas.iter_mut().for_each(close),
        _ => {}
    }
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}

/// An entry of a list of parts: a name, or the name with its configuration.
fn entries<'a>(parts: impl Iterator<Item = (&'a String, &'a SchemaOf)>, generator: &mut SchemaGenerator) -> Vec<Value> {
    let mut names = Vec::new();
    let mut entries = Vec::new();
    for (name, schema) in parts {
        names.push(name.as_str());
        let config = schema(generator).to_value();
        entries.push(json!({
            "type": "object",
            "properties": {name: config, "for_all": {"type": "boolean", "description": "Whether it covers every run below, too."}},
            "required": [name],
            "additionalProperties": false,
        }));
    }
    entries.insert(0, json!({"type": "string", "enum": names}));
    entries
}

fn sub_agents(peers: &[Value]) -> Value {
    let description = json!({"type": "string", "description": "What it is good for."});
    json!({
        "type": "object",
        "additionalProperties": {"anyOf": [
            {"type": "string", "description": "The path of the sub-agent's file, which has a description."},
            {
                "type": "object",
                "properties": {
                    "description": description,
                    "agent": {"anyOf": [
                        {"type": "string", "description": "The path of the sub-agent's file."},
                        {"$ref": "#/$defs/SubAgent"},
                    ]},
                },
                "required": ["description", "agent"],
                "additionalProperties": false,
            },
            {
                "type": "object",
                "properties": {
                    "description": description,
                    PEER: {
                        "anyOf": peers,
                        "description": "The tool that speaks with it, where it is an agent elsewhere: a2a, acp, or another that takes a `message`.",
                    },
                },
                "required": ["description", PEER],
                "additionalProperties": false,
            },
        ]},
    })
}
