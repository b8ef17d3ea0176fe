//! Tools, as the API writes them.

use agent_core::{ToolSpec, message::Raw};
use serde::{Serialize, Serializer};
use serde_json::{Value, json, value::RawValue};

use super::{message::Manner, read_part::cache};
use crate::wire::{
    cache_control::CacheControl,
    json::{same, write},
    lenient::Str,
    open_struct::open_struct,
};

open_struct! {
    ToolSaid {
        kind: Str<'a> = "type",
        function: FunctionSaid<'a> = "function",
        custom: FunctionSaid<'a> = "custom",
    }
}

open_struct! {
    FunctionSaid {
        name: Str<'a> = "name",
        description: Str<'a> = "description",
        parameters: &'a RawValue = "parameters",
    }
}

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

/// True if the server is told of the tool: it may be another provider's own.
pub(super) fn is_told(manner: &Manner, spec: &ToolSpec) -> bool {
    !spec.is_server_side() || manner.own(spec.raw.as_ref()).is_some()
}

/// The list of tools that the server is told of.
pub(super) fn write_tools(manner: &Manner, specs: &[ToolSpec]) -> Vec<u8> {
    let mut out = Vec::new();
    write(&Tools { manner, specs }, &mut out);
    out
}

struct Tools<'a> {
    manner: &'a Manner,
    specs: &'a [ToolSpec],
}

impl Serialize for Tools<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let told = self.specs.iter().filter(|spec| is_told(self.manner, spec));
        serializer.collect_seq(told.map(|spec| tool_json(self.manner, spec)))
    }
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

/// Reads one tool. It keeps its JSON if that says more than the tool, or otherwise.
pub(super) fn read(manner: &Manner, json: &RawValue) -> serde_json::Result<ToolSpec> {
    let said: ToolSaid<'_> = serde_json::from_str(json.get())?;
    let raw = Raw::new(manner.origin.clone(), json.to_owned());
    let kind = said.kind.map(|kind| kind.0.into_owned()).unwrap_or_default();
    let Some(FunctionSaid { name: Some(name), description, parameters, .. }) = said.function.or(said.custom) else {
        return Ok(ToolSpec::server_side(kind, raw));
    };
    // A function without parameters takes none, and a tool that is given free text any.
    let parameters = match parameters {
        Some(schema) => serde_json::from_str(schema.get())?,
        None => json!({"type": "object"}),
    };
    let mut spec = ToolSpec::new(name.0, description.unwrap_or_default().0, parameters);
    spec.cache = cache(&said.rest);
    let is_exact = same(&tool_json(manner, &spec), json);
    Ok(if is_exact { spec } else { spec.with_raw(raw) })
}
