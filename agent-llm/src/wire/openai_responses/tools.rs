//! Tools in both directions, including provider-side tools and their calls.

use std::{borrow::Cow, collections::BTreeMap};

use agent_core::{
    Block, ToolCall, ToolSpec,
    message::{Origin, ServerCall},
    tool::{RemoteMcp, Secret, ServerTool, WebSearch},
};
use serde_json::{Map, Value, json, value::RawValue};

use super::MessageStyle;
use crate::wire::{
    anthropic::approximate,
    check::{ToolText, text_of},
    json::{Json, present, raw, write},
    lenient::{self, Str, lenient},
    server_tools::Lack,
};

/// Writes the list of tools, without those of other providers.
pub(super) fn write_tools(specs: &[ToolSpec], manner: &MessageStyle) -> Vec<u8> {
    let mut out = Vec::new();
    write(&specs.iter().filter_map(|spec| tool_json(spec, manner)).collect::<Vec<_>>(), &mut out);
    out
}

pub(super) fn tool_json<'a>(spec: &'a ToolSpec, manner: &MessageStyle) -> Option<Json<'a>> {
    if let Some(own) = manner.own(spec.raw.as_ref()) {
        return Some(Json::Own(own));
    }
    let strict = manner.profile.responses.strict_tools;
    let function = || {
        let (name, ToolText { description, parameters }) = (&spec.name, text_of(spec, &manner.rules));
        json!({"type": "function", "name": name, "description": description, "parameters": parameters, "strict": strict})
    };
    let native = spec.server.as_ref().and_then(|tool| own_tool(tool, manner.origin.model()).ok());
    native.or_else(|| (!spec.is_server_side()).then(function)).map(Json::Made)
}

/// Returns the type of a tool, such as `function`.
pub(super) fn kind(spec: &ToolSpec, manner: &MessageStyle) -> Option<String> {
    let kind = match tool_json(spec, manner)? {
        Json::Own(own) => lenient::kind(own),
        Json::Made(made) => made["type"].as_str()?.to_owned(),
    };
    Some(kind).filter(|kind| !kind.is_empty())
}

/// Encodes a provider-side tool.
pub(super) fn own_tool(tool: &ServerTool, model: &str) -> Result<Value, Lack> {
    Ok(present(match tool {
        ServerTool::WebSearch(search) if !search.blocked_domains.is_empty() => {
            return Err(Lack::Option("blocked domains"));
        }
        ServerTool::WebSearch(search) if search.max_uses.is_some() => return Err(Lack::Option("number of uses")),
        ServerTool::WebSearch(WebSearch { allowed_domains, location, .. }) => {
            let filters = (!allowed_domains.is_empty()).then(|| json!({"allowed_domains": allowed_domains}));
            json!({"type": "web_search", "filters": filters, "user_location": location.as_ref().map(approximate)})
        }
        ServerTool::CodeExecution => json!({"type": "code_interpreter", "container": {"type": "auto"}}),
        ServerTool::FileSearch(search) => {
            json!({"type": "file_search", "vector_store_ids": search.stores, "max_num_results": search.max_results})
        }
        ServerTool::ImageGeneration => json!({"type": "image_generation"}),
        ServerTool::Computer(screen) if is_preview(model) => {
            let (width, height) = (screen.width, screen.height);
            let (kind, environment) = ("computer_use_preview", "browser");
            json!({"type": kind, "display_width": width, "display_height": height, "environment": environment})
        }
        ServerTool::Computer(_) => json!({"type": "computer"}),
        ServerTool::Mcp(server) if server.approval => return Err(Lack::Option("approval")),
        ServerTool::Mcp(server) => mcp(server),
        _ => return Err(Lack::Tool),
    }))
}

/// Returns true if the model uses the preview version of the computer tool.
pub(super) fn is_preview(model: &str) -> bool {
    model.contains("computer-use-preview")
}

fn mcp(server: &RemoteMcp) -> Value {
    let RemoteMcp { name, url, authorization, headers, allowed_tools, .. } = server;
    let headers: Map<_, Value> = headers.iter().map(|(name, value)| (name.clone(), value.expose().into())).collect();
    json!({
        "type": "mcp",
        "server_label": name,
        "server_url": url,
        "require_approval": "never",
        "authorization": authorization.as_ref().map(Secret::expose),
        "headers": Some(headers).filter(|headers| !headers.is_empty()),
        "allowed_tools": Some(allowed_tools).filter(|names| !names.is_empty()),
    })
}

/// Returns the `include` value that makes the answer contain a tool's results.
pub(super) fn include(tool: &ServerTool) -> Option<&'static str> {
    match tool {
        ServerTool::WebSearch(_) => Some("web_search_call.action.sources"),
        ServerTool::FileSearch(_) => Some("file_search_call.results"),
        ServerTool::CodeExecution => Some("code_interpreter_call.outputs"),
        _ => None,
    }
}

/// Decodes an item about a provider-side tool, if it is one.
pub(super) fn server_call(kind: &str, json: &RawValue, origin: &Origin) -> Option<Block> {
    let said: Value = lenient(json);
    let first = |names: &[&str]| names.iter().map(|name| &said[*name]).find(|value| !value.is_null());
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let name = match kind {
        "web_search_call" | "file_search_call" | "code_interpreter_call" => kind.strip_suffix("_call")?,
        "mcp_call" => said["name"].as_str()?,
        _ => return None,
    };
    let mut call = ServerCall::new(said["id"].as_str().unwrap_or_default(), name, raw(json, origin));
    call.server = first(&["server_label"]).map(text);
    call.input = first(&["action", "queries", "code", "arguments"]).map(text);
    call.output = first(&["error", "results", "outputs", "output"]).map(text);
    call.failed = !said["error"].is_null() || said["status"] == "failed";
    Some(Block::Server(call))
}

/// Decodes a computer call as a call of the application's tool.
pub(super) fn computer_call(json: &RawValue, origin: &Origin) -> Option<Block> {
    let mut said: BTreeMap<Cow<'_, str>, &RawValue> = serde_json::from_str(json.get()).ok()?;
    let id: Str<'_> = serde_json::from_str(said.get("call_id")?.get()).ok()?;
    said.retain(|name, json| {
        matches!(&**name, "action" | "actions") && json.get() != "null"
            || &**name == "pending_safety_checks" && !matches!(json.get(), "null" | "[]")
    });
    let arguments = serde_json::to_string(&said).ok()?;
    Some(Block::ToolCall(ToolCall {
        id: id.0.into(),
        name: "computer".into(),
        arguments,
        raw: Some(raw(json, origin)),
    }))
}
