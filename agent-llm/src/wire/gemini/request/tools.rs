//! From tools to their specifications.

use agent_core::ToolSpec;
use serde_json::{Value, json, value::RawValue};

use crate::wire::{
    gemini::{manner::Manner, part::raw, tools::DECLARATIONS, wrapper::Wrapper},
    lenient::Str,
    open_struct::open_struct,
};

open_struct! {
    Declared {
        name: Str<'a> = "name",
        description: Str<'a> = "description",
        json_schema: Value = "parametersJsonSchema" | "parameters_json_schema",
        open_api: Value = "parameters",
    }
}

/// The tools; none if the JSON is not a list of them.
///
/// The first function of a tool that is not as tools usually are keeps the tool's JSON, which the others join.
pub(super) fn read(tools: &RawValue, manner: &Manner) -> Option<Vec<ToolSpec>> {
    let tools: Vec<&RawValue> = serde_json::from_str(tools.get()).ok()?;
    let mut specs = Vec::new();
    let mut has_functions = false;
    for tool in tools {
        let functions = Wrapper::read(tool.get(), &DECLARATIONS).filter(|functions| !functions.items.is_empty());
        let Some(functions) = functions else {
            let name = Wrapper::fields(tool.get())?.into_keys().find(|name| !DECLARATIONS.contains(&name.as_str()));
            specs.push(ToolSpec::server_side(name.unwrap_or_default(), raw(tool.get(), &manner.origin)));
            continue;
        };
        let is_plain = functions.fields.is_empty() && functions.is_named(DECLARATIONS[0]) && !has_functions;
        for (at, declaration) in functions.items.iter().enumerate() {
            let json = if at == 0 && !is_plain { functions.with(&[declaration]) } else { declaration.get().to_owned() };
            specs.push(spec(declaration)?.with_raw(raw(&json, &manner.origin)));
        }
        has_functions = true;
    }
    Some(specs)
}

fn spec(declaration: &RawValue) -> Option<ToolSpec> {
    let said: Declared<'_> = serde_json::from_str(declaration.get()).ok()?;
    let parameters = said.json_schema.or(said.open_api).unwrap_or_else(|| json!({"type": "object"}));
    Some(ToolSpec::new(said.name?.0, said.description.unwrap_or_default().0, parameters))
}
