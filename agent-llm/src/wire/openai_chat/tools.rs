//! Tools, as the API writes them, and from there to their specifications.

use agent_core::ToolSpec;
use serde::Serialize;
use serde_json::{Value, value::RawValue};

use super::messages::Manner;
use crate::wire::{cache_control::CacheControl, json::write};

#[derive(Serialize)]
#[serde(untagged)]
enum ToolJson<'a> {
    Raw(&'a RawValue),
    Tool {
        r#type: &'static str,
        function: Function<'a>,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Option<CacheControl>,
    },
}

#[derive(Serialize)]
struct Function<'a> {
    name: &'a str,
    description: &'a str,
    parameters: &'a Value,
}

/// True if the server is told of the tool among the others: it may be another provider's own, or a setting.
pub(super) fn is_told(manner: &Manner, spec: &ToolSpec) -> bool {
    !spec.is_server_side() || manner.own(spec.raw.as_ref()).is_some()
}

/// The list of tools that the server is told of.
pub(super) fn write_tools(manner: &Manner, specs: &[ToolSpec]) -> Vec<u8> {
    let told = specs.iter().filter(|spec| is_told(manner, spec));
    let mut out = Vec::new();
    write(&told.map(|spec| tool_json(manner, spec)).collect::<Vec<_>>(), &mut out);
    out
}

fn tool_json<'a>(manner: &Manner, spec: &'a ToolSpec) -> ToolJson<'a> {
    match manner.own(spec.raw.as_ref()) {
        Some(own) => ToolJson::Raw(own),
        None => ToolJson::Tool {
            r#type: "function",
            function: Function { name: &spec.name, description: &spec.description, parameters: &spec.parameters },
            cache_control: manner.cache_control(spec.cache),
        },
    }
}

#[cfg(feature = "requests")]
pub(super) mod back {
    use agent_core::ToolSpec;
    use serde_json::{json, value::RawValue};

    use super::{Manner, tool_json};
    use crate::wire::{
        json::{raw, same},
        lenient::{Str, lenient},
        open_struct::open_struct,
        openai_chat::parts::cache,
    };

    open_struct! {
        ToolSaid {
            kind: Str<'a> = "type",
            function: FunctionSaid<'a> = "function" | "custom",
        }
    }

    open_struct! {
        FunctionSaid {
            name: Str<'a> = "name",
            description: Str<'a> = "description",
            parameters: &'a RawValue = "parameters",
        }
    }

    /// Reads one tool. It keeps its JSON if that says more than the tool, or otherwise.
    pub(in super::super) fn read(manner: &Manner, json: &RawValue) -> serde_json::Result<ToolSpec> {
        let ToolSaid { kind, function, .. } = serde_json::from_str(json.get())?;
        let raw = raw(json, &manner.origin);
        let Some(FunctionSaid { name: Some(name), description, parameters, .. }) = function else {
            return Ok(ToolSpec::server_side(kind.unwrap_or_default().0, raw));
        };
        // A function without parameters takes none, and a tool that is given free text any.
        let parameters = match parameters {
            Some(schema) => serde_json::from_str(schema.get())?,
            None => json!({"type": "object"}),
        };
        let mut spec = ToolSpec::new(name.0, description.unwrap_or_default().0, parameters);
        spec.cache = cache(&lenient(json));
        let is_exact = same(&tool_json(manner, &spec), json);
        Ok(if is_exact { spec } else { spec.with_raw(raw) })
    }
}
