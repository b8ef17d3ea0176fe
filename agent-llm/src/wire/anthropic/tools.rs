//! Writing the tools on offer.

use std::borrow::Cow;

use agent_core::{ToolSpec, message::Origin};
use serde::Serialize;
use serde_json::{Value, json, value::RawValue};

use super::{claude::Claude, parts::marked, read, server_tools};
use crate::wire::{
    cache_control::CacheControl,
    json::{own, write},
};

#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum ToolJson<'a> {
    Tool {
        name: &'a str,
        #[serde(skip_serializing_if = "str::is_empty")]
        description: &'a str,
        input_schema: Cow<'a, Value>,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Option<CacheControl>,
    },
    Raw(&'a RawValue),
    /// The provider's own JSON with a cache mark, or of a tool that it has itself.
    Marked(Value),
}

/// Writes the tools as a JSON list.
pub(super) fn write_tools(origin: &Origin, claude: &Claude, specs: &[ToolSpec]) -> Vec<u8> {
    let mut out = Vec::new();
    write(&specs.iter().filter_map(|spec| tool_json(origin, claude, spec)).collect::<Vec<_>>(), &mut out);
    out
}

/// The tool in this API's form; none if another provider runs it.
pub(super) fn tool_json<'a>(origin: &Origin, claude: &Claude, spec: &'a ToolSpec) -> Option<ToolJson<'a>> {
    match own(origin, spec.raw.as_ref()) {
        Some(raw) if spec.cache.is_some() && spec.cache != read::cache(raw) => {
            Some(ToolJson::Marked(marked(raw, spec.cache)))
        }
        Some(raw) => Some(ToolJson::Raw(raw)),
        None => match spec.server.as_ref().and_then(|own| server_tools::tool(own, claude).ok()) {
            Some(mut own) => {
                if let Some(mark) = spec.cache.map(CacheControl::from) {
                    own["cache_control"] = json!(mark);
                }
                Some(ToolJson::Marked(own))
            }
            None if spec.is_server_side() => None,
            None => Some(function(spec)),
        },
    }
}

pub(super) fn function(spec: &ToolSpec) -> ToolJson<'_> {
    ToolJson::Tool {
        name: &spec.name,
        description: &spec.description,
        input_schema: input_schema(&spec.parameters),
        cache_control: spec.cache.map(CacheControl::from),
    }
}

/// The API insists on hearing that arguments are an object.
pub(crate) fn input_schema(parameters: &Value) -> Cow<'_, Value> {
    match parameters {
        Value::Object(fields) if !fields.contains_key("type") => {
            let mut fields = fields.clone();
            fields.insert("type".into(), "object".into());
            Cow::Owned(Value::Object(fields))
        }
        said => Cow::Borrowed(said),
    }
}
