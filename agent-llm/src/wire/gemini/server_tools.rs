//! Tools that Google has itself: how they are offered, and what they did.

use agent_core::{
    Block,
    message::{Origin, ServerCall},
    tool::ServerTool,
};
use serde_json::{Map, Value, json, value::RawValue};

use crate::wire::{
    json::{plain, raw},
    lenient::Str,
    open_struct::open_struct,
    server_tools::Lack,
};

/// The tool as the API is told of it. Not everywhere may domains be `excludes`.
pub(super) fn tool(tool: &ServerTool, excludes: bool) -> Result<Value, Lack> {
    Ok(match tool {
        ServerTool::WebSearch(search) if !search.allowed_domains.is_empty() => {
            return Err(Lack::Option("allowed domains"));
        }
        ServerTool::WebSearch(search) if search.max_uses.is_some() => return Err(Lack::Option("number of uses")),
        ServerTool::WebSearch(search) if search.location.is_some() => return Err(Lack::Option("place of the user")),
        ServerTool::WebSearch(search) if search.blocked_domains.is_empty() => json!({"googleSearch": {}}),
        ServerTool::WebSearch(_) if !excludes => return Err(Lack::Option("blocked domains")),
        ServerTool::WebSearch(search) => json!({"googleSearch": {"excludeDomains": search.blocked_domains}}),
        ServerTool::WebFetch(fetch) if fetch.max_uses.is_some() => return Err(Lack::Option("number of uses")),
        ServerTool::WebFetch(fetch) if !(fetch.allowed_domains.is_empty() && fetch.blocked_domains.is_empty()) => {
            return Err(Lack::Option("domains"));
        }
        ServerTool::WebFetch(_) => json!({"urlContext": {}}),
        ServerTool::CodeExecution => json!({"codeExecution": {}}),
        ServerTool::FileSearch(search) => {
            let mut told = json!({"fileSearchStoreNames": search.stores});
            if let Some(most) = search.max_results {
                told["topK"] = most.into();
            }
            json!({"fileSearch": told})
        }
        ServerTool::Mcp(server) if !server.allowed_tools.is_empty() => return Err(Lack::Option("choice of tools")),
        ServerTool::Mcp(server) if server.approval => return Err(Lack::Option("approval")),
        ServerTool::Mcp(server) => {
            let mut transport = json!({"url": server.url});
            let headers = server.headers.iter().map(|(name, value)| (name.clone(), value.expose().to_owned()));
            let token = server.authorization.as_ref().map(|token| format!("Bearer {}", token.expose()));
            let headers: Map<_, _> = headers
                .chain(token.map(|token| ("Authorization".to_owned(), token)))
                .map(|(name, value)| (name, Value::String(value)))
                .collect();
            if !headers.is_empty() {
                transport["headers"] = Value::Object(headers);
            }
            json!({"mcpServers": [{"name": server.name, "streamableHttpTransport": transport}]})
        }
        _ => return Err(Lack::Tool),
    })
}

open_struct! {
    Said {
        code: CodeSaid<'a> = "executableCode" | "executable_code",
        ran: ResultSaid<'a> = "codeExecutionResult" | "code_execution_result",
        call: ToolSaid<'a> = "toolCall" | "tool_call",
        response: ToolSaid<'a> = "toolResponse" | "tool_response",
    }
}

open_struct! {
    CodeSaid { id: Str<'a> = "id", code: Str<'a> = "code", }
}

open_struct! {
    ResultSaid { id: Str<'a> = "id", outcome: Str<'a> = "outcome", output: Str<'a> = "output", }
}

open_struct! {
    ToolSaid {
        id: Str<'a> = "id",
        kind: Str<'a> = "toolType" | "tool_type",
        args: &'a RawValue = "args",
        response: &'a RawValue = "response",
    }
}

/// What a tool of the provider's did, if this part says that.
pub(super) fn server_call(json: &str, origin: &Origin) -> Option<Block> {
    let made = |id: Option<Str<'_>>, name: &str| ServerCall::new(&*id.unwrap_or_default().0, name, raw(json, origin));
    let name = |kind: Option<Str<'_>>| kind.unwrap_or_default().0.to_lowercase();
    let call = match serde_json::from_str(json).ok()? {
        Said { code: Some(said), .. } => {
            let mut call = made(said.id, "code_execution");
            call.input = said.code.map(|code| code.0.into_owned());
            call
        }
        Said { ran: Some(said), .. } => {
            let mut call = made(said.id, "code_execution");
            call.failed = said.outcome.is_some_and(|outcome| outcome.0 != "OUTCOME_OK");
            call.output = Some(said.output.unwrap_or_default().0.into_owned());
            call
        }
        Said { call: Some(said), .. } => {
            let mut call = made(said.id, &name(said.kind));
            call.input = Some(said.args.map_or_else(|| "{}".to_owned(), plain));
            call
        }
        Said { response: Some(said), .. } => {
            let mut call = made(said.id, &name(said.kind));
            call.output = Some(said.response.map_or_else(|| "{}".to_owned(), plain));
            call
        }
        _ => return None,
    };
    Some(Block::Server(call))
}
