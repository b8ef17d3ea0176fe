//! Google's provider-side tools: how they are offered, and their calls.

use std::collections::BTreeMap;

use agent_core::{
    Block,
    message::{Origin, ServerCall},
    tool::ServerTool,
};
use serde_json::{Value, json, value::RawValue};

use crate::wire::{
    json::{present, raw},
    lenient::lenient,
    server_tools::Lack,
};

/// Encodes a tool. `excludes` is true if the API supports excluded domains.
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
            json!({"fileSearch": present(json!({"fileSearchStoreNames": search.stores, "topK": search.max_results}))})
        }
        ServerTool::Mcp(server) if !server.allowed_tools.is_empty() => return Err(Lack::Option("choice of tools")),
        ServerTool::Mcp(server) if server.approval => return Err(Lack::Option("approval")),
        ServerTool::Mcp(server) => {
            let headers = server.headers.iter().map(|(name, value)| (name.clone(), value.expose().to_owned()));
            let token = server.authorization.as_ref().map(|token| format!("Bearer {}", token.expose()));
            let token = token.map(|token| ("Authorization".to_owned(), token));
            let headers = Some(headers.chain(token).collect::<BTreeMap<_, _>>()).filter(|headers| !headers.is_empty());
            let transport = present(json!({"url": server.url, "headers": headers}));
            json!({"mcpServers": [{"name": server.name, "streamableHttpTransport": transport}]})
        }
        _ => return Err(Lack::Tool),
    })
}

/// Decodes a part about a provider-side tool, if it is one. Clients write its fields in two
/// spellings.
pub(super) fn server_call(json: &RawValue, origin: &Origin) -> Option<Block> {
    let part: Value = lenient(json);
    let field = |spellings: [&str; 2]| spellings.into_iter().map(|name| &part[name]).find(|said| said.is_object());
    let text = |said: &Value, name: &str| said[name].as_str().map(str::to_owned);
    let tool = |said: &Value| text(said, "toolType").or(text(said, "tool_type")).unwrap_or_default().to_lowercase();
    let object = |said: &Value| Some(if said.is_null() { "{}".to_owned() } else { said.to_string() });
    let code = || "code_execution".to_owned();
    let (said, name, input, output) = if let Some(said) = field(["executableCode", "executable_code"]) {
        (said, code(), text(said, "code"), None)
    } else if let Some(said) = field(["codeExecutionResult", "code_execution_result"]) {
        (said, code(), None, Some(text(said, "output").unwrap_or_default()))
    } else if let Some(said) = field(["toolCall", "tool_call"]) {
        (said, tool(said), object(&said["args"]), None)
    } else {
        let said = field(["toolResponse", "tool_response"])?;
        (said, tool(said), None, object(&said["response"]))
    };
    let mut call = ServerCall::new(text(said, "id").unwrap_or_default(), name, raw(json, origin));
    (call.input, call.output) = (input, output);
    call.failed = text(said, "outcome").is_some_and(|outcome| outcome != "OUTCOME_OK");
    Some(Block::Server(call))
}
