//! Anthropic's provider-side tools, and the beta features that they require.

use agent_core::{
    Block, ModelRequest, ToolSpec,
    message::{Origin, ServerCall},
    tool::{RemoteMcp, Secret, ServerTool},
};
use serde_json::{Value, json, value::RawValue};

use crate::wire::{
    claude::Claude,
    content::{is_file, parts_of},
    json::{present, raw},
    server_tools::Lack,
};

/// Returns the MCP servers among the tools, which the API expects alongside the list of tools.
pub(super) fn mcp_servers(specs: &[ToolSpec]) -> Vec<Value> {
    let servers = specs.iter().filter(|spec| spec.raw.is_none()).filter_map(|spec| {
        let Some(ServerTool::Mcp(RemoteMcp { name, url, authorization, .. })) = &spec.server else { return None };
        let token = authorization.as_ref().map(Secret::expose);
        Some(present(json!({"type": "url", "name": name, "url": url, "authorization_token": token})))
    });
    servers.collect()
}

/// Encodes a tool in Anthropic's format.
pub(super) fn tool(tool: &ServerTool, claude: &Claude) -> Result<Value, Lack> {
    Ok(match tool {
        ServerTool::WebSearch(search) => {
            let place = search.location.as_ref().map(approximate);
            let told = json!({"type": "web_search_20250305", "name": "web_search", "user_location": place});
            limited(told, &search.allowed_domains, &search.blocked_domains, json!(search.max_uses))?
        }
        ServerTool::WebFetch(fetch) => {
            let told = json!({"type": "web_fetch_20250910", "name": "web_fetch", "citations": {"enabled": true}});
            limited(told, &fetch.allowed_domains, &fetch.blocked_domains, json!(fetch.max_uses))?
        }
        ServerTool::CodeExecution => json!({"type": "code_execution_20250825", "name": "code_execution"}),
        ServerTool::Computer(screen) => json!({
            "type": claude.computer().0, "name": "computer",
            "display_width_px": screen.width, "display_height_px": screen.height,
        }),
        ServerTool::Mcp(server) if !server.headers.is_empty() => return Err(Lack::Option("headers")),
        ServerTool::Mcp(server) if server.approval => return Err(Lack::Option("approval")),
        ServerTool::Mcp(server) => {
            let mut told = json!({"type": "mcp_toolset", "mcp_server_name": server.name});
            if !server.allowed_tools.is_empty() {
                told["default_config"] = json!({"enabled": false});
                let allowed = server.allowed_tools.iter().map(|tool| (tool.clone(), json!({"enabled": true})));
                told["configs"] = Value::Object(allowed.collect());
            }
            told
        }
        _ => return Err(Lack::Tool),
    })
}

/// Adds domain filters and a maximum number of uses to a tool.
fn limited(mut told: Value, allowed: &[String], blocked: &[String], uses: Value) -> Result<Value, Lack> {
    if !allowed.is_empty() && !blocked.is_empty() {
        return Err(Lack::Option("blocked domains beside allowed ones"));
    }
    for (name, domains) in [("allowed_domains", allowed), ("blocked_domains", blocked)] {
        told[name] = json!(Some(domains).filter(|domains| !domains.is_empty()));
    }
    told["max_uses"] = uses;
    Ok(present(told))
}

/// Encodes a user's approximate location in the format of Anthropic and OpenAI.
pub(crate) fn approximate(place: &agent_core::tool::Location) -> Value {
    let mut said = json!(place);
    said["type"] = "approximate".into();
    said
}

/// Returns the beta features that this request requires.
pub(super) fn betas(req: &ModelRequest, claude: &Claude) -> Vec<&'static str> {
    let has = |is: fn(&ServerTool) -> bool| {
        req.tools.iter().any(|spec| spec.raw.is_none() && spec.server.as_ref().is_some_and(is))
    };
    let has_file = req.messages.iter().flat_map(parts_of).any(is_file);
    let needed = [
        has(|tool| matches!(tool, ServerTool::Mcp(_))).then_some("mcp-client-2025-11-20"),
        has(|tool| matches!(tool, ServerTool::Computer(_))).then_some(claude.computer().1),
        has_file.then_some(FILES),
    ];
    needed.into_iter().flatten().collect()
}

/// Beta feature of files by id.
pub(crate) const FILES: &str = "files-api-2025-04-14";

/// Suffix of the types of results.
const RESULT: &str = "_tool_result";

/// Decodes a block about a provider-side tool, if it is one.
pub(super) fn server_call(kind: &str, json: &RawValue, origin: &Origin) -> Option<Block> {
    let is_call = matches!(kind, "server_tool_use" | "mcp_tool_use");
    let of = kind.strip_suffix(RESULT).filter(|of| !of.is_empty());
    if !is_call && of.is_none() {
        return None;
    }
    let said: Value = serde_json::from_str(json.get()).ok()?;
    let text = |name: &str| said[name].as_str();
    let (id, name) = match of {
        Some(of) => (text("tool_use_id")?, of),
        None => (text("id")?, text("name")?),
    };
    let field = |name: &str| said.get(name).filter(|json| !json.is_null()).map(Value::to_string);
    let mut call = ServerCall::new(id, name, raw(json, origin));
    call.server = text("server_name").map(str::to_owned);
    call.input = field("input").filter(|_| is_call);
    call.output = field("content").filter(|_| !is_call);
    let is_error = |kind: &str| kind.ends_with("_error");
    call.failed = said["is_error"] == true || said["content"]["type"].as_str().is_some_and(is_error);
    Some(Block::Server(call))
}
