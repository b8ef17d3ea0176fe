//! Writing the tools.

use agent_core::ToolSpec;
use serde::Serialize;
use serde_json::{Value, value::RawValue};

use super::{
    manner::Manner,
    profile::{GeminiProfile, GeminiSchemas},
    schema::open_api,
    server_tools,
    wrapper::{Wrapper, write_items},
};
use crate::wire::json::write as write_json;

/// The names of the list in a tool.
pub(super) const DECLARATIONS: [&str; 2] = ["functionDeclarations", "function_declarations"];

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Declaration<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    description: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    parameters_json_schema: Option<&'a Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parameters: Option<Value>,
}

/// Writes the tools; nothing if there are none.
///
/// Functions are declared together. The provider's own JSON of a function is its declaration, or a whole tool, which the
/// functions after it then join. A tool that runs at another provider is not told of.
pub(super) fn write(manner: &Manner, profile: &GeminiProfile, specs: &[ToolSpec]) -> Vec<u8> {
    let schemas = profile.schemas;
    // With each tool, whether its declarations are still open.
    let mut tools: Vec<(Vec<u8>, bool)> = Vec::new();
    for spec in specs {
        let own = manner.own(spec.raw.as_ref());
        let native = || server_tools::tool(spec.server.as_ref()?, profile.exclude_domains).ok();
        if let Some(native) = Some(own).filter(Option::is_none).and_then(|_| native()) {
            tools.push((native.to_string().into_bytes(), false));
        } else if spec.is_server_side() {
            tools.extend(own.map(|own| (own.get().into(), false)));
        } else if let Some(tool) = own.and_then(|own| Wrapper::read(own.get(), &DECLARATIONS)) {
            let mut json = Vec::new();
            tool.open(&mut json);
            write_items(&tool.items, &mut json);
            tools.push((json, true));
        } else if let Some((json, _)) = tools.iter_mut().rfind(|(_, open)| *open) {
            json.push(b',');
            declare(own, schemas, spec, json);
        } else {
            let mut json = br#"{"functionDeclarations":["#.to_vec();
            declare(own, schemas, spec, &mut json);
            tools.push((json, true));
        }
    }
    let tools = tools.into_iter().map(|(json, open)| if open { [&json, &b"]}"[..]].concat() } else { json });
    let tools = tools.collect::<Vec<_>>().join(&b","[..]);
    if tools.is_empty() { tools } else { [b"[", &tools[..], b"]"].concat() }
}

fn declare(own: Option<&RawValue>, schemas: GeminiSchemas, spec: &ToolSpec, out: &mut Vec<u8>) {
    if let Some(own) = own {
        return out.extend_from_slice(own.get().as_bytes());
    }
    let (parameters_json_schema, parameters) = match schemas {
        GeminiSchemas::JsonSchema => (Some(&spec.parameters), None),
        // The API refuses an object without properties.
        GeminiSchemas::OpenApi => (None, Some(open_api(&spec.parameters)).filter(|s| s.get("properties").is_some())),
    };
    let (name, description) = (&*spec.name, &*spec.description);
    write_json(&Declaration { name, description, parameters_json_schema, parameters }, out);
}
