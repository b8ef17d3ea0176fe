//! Tools, as the API writes them.

use agent_core::ToolSpec;
use serde::{Serialize, Serializer};
use serde_json::{Value, value::RawValue};

use super::message::Manner;
use crate::wire::{cache_control::CacheControl, json::write};

#[derive(Serialize)]
#[serde(untagged)]
pub(in crate::wire) enum ToolJson<'a> {
    Raw(&'a RawValue),
    Tool {
        r#type: &'static str,
        function: Function<'a>,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Option<CacheControl>,
    },
}

#[derive(Serialize)]
pub(in crate::wire) struct Function<'a> {
    name: &'a str,
    description: &'a str,
    parameters: &'a Value,
}

/// True if the server is told of the tool among the others: it may be another provider's own, or a setting.
pub(in crate::wire) fn is_told(manner: &Manner, spec: &ToolSpec) -> bool {
    !spec.is_server_side() || manner.own(spec.raw.as_ref()).is_some()
}

/// The list of tools that the server is told of.
pub(in crate::wire) fn write_tools(manner: &Manner, specs: &[ToolSpec]) -> Vec<u8> {
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

pub(in crate::wire) fn tool_json<'a>(manner: &Manner, spec: &'a ToolSpec) -> ToolJson<'a> {
    match manner.own(spec.raw.as_ref()) {
        Some(own) => ToolJson::Raw(own),
        None => ToolJson::Tool {
            r#type: "function",
            function: Function { name: &spec.name, description: &spec.description, parameters: &spec.parameters },
            cache_control: manner.cache_control(spec.cache),
        },
    }
}
