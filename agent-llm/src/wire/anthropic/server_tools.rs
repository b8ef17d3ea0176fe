//! Tools that Anthropic has itself, and the features that must be asked for.

use agent_core::{
    Block, Message, ModelRequest, Part, ToolSpec,
    message::{MediaSource, Origin, Raw, ServerCall},
    tool::{RemoteMcp, Secret, ServerTool},
};
use serde::Serialize;
use serde_json::{Map, Value, json, value::RawValue};

use super::claude::Claude;
use crate::wire::{json::plain, lenient::Str, open_struct::open_struct, server_tools::Lack};

/// A server of the Model Context Protocol, beside the list of tools.
#[derive(Serialize)]
pub(super) struct McpServer<'a> {
    r#type: &'static str,
    name: &'a str,
    url: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    authorization_token: Option<&'a str>,
}

/// The servers of the Model Context Protocol among the tools.
pub(super) fn mcp_servers(specs: &[ToolSpec]) -> Vec<McpServer<'_>> {
    let servers = specs.iter().filter(|spec| spec.raw.is_none()).filter_map(|spec| match &spec.server {
        Some(ServerTool::Mcp(RemoteMcp { name, url, authorization, .. })) => {
            let authorization_token = authorization.as_ref().map(Secret::expose);
            Some(McpServer { r#type: "url", name, url, authorization_token })
        }
        _ => None,
    });
    servers.collect()
}

/// The tool as Anthropic writes it.
pub(super) fn tool(tool: &ServerTool, claude: &Claude) -> Result<Value, Lack> {
    let own =
        |kind: &str, name: &str| Map::from_iter([("type".to_owned(), kind.into()), ("name".to_owned(), name.into())]);
    let fields = match tool {
        ServerTool::WebSearch(search) => {
            let mut fields = own("web_search_20250305", "web_search");
            domains(&mut fields, &search.allowed_domains, &search.blocked_domains)?;
            fields.extend(search.max_uses.map(|most| ("max_uses".to_owned(), most.into())));
            fields.extend(search.location.as_ref().map(|place| ("user_location".to_owned(), approximate(place))));
            fields
        }
        ServerTool::WebFetch(fetch) => {
            let mut fields = own("web_fetch_20250910", "web_fetch");
            domains(&mut fields, &fetch.allowed_domains, &fetch.blocked_domains)?;
            fields.extend(fetch.max_uses.map(|most| ("max_uses".to_owned(), most.into())));
            fields.insert("citations".to_owned(), json!({"enabled": true}));
            fields
        }
        ServerTool::CodeExecution => own("code_execution_20250825", "code_execution"),
        ServerTool::Computer(screen) => {
            let mut fields = own(claude.computer().0, "computer");
            fields.insert("display_width_px".to_owned(), screen.width.into());
            fields.insert("display_height_px".to_owned(), screen.height.into());
            fields
        }
        ServerTool::Mcp(server) if !server.headers.is_empty() => return Err(Lack::Option("headers")),
        ServerTool::Mcp(server) if server.approval => return Err(Lack::Option("approval")),
        ServerTool::Mcp(server) => {
            let mut fields = Map::new();
            fields.insert("type".to_owned(), "mcp_toolset".into());
            fields.insert("mcp_server_name".to_owned(), server.name.as_str().into());
            if !server.allowed_tools.is_empty() {
                fields.insert("default_config".to_owned(), json!({"enabled": false}));
                let allowed = server.allowed_tools.iter().map(|tool| (tool.clone(), json!({"enabled": true})));
                fields.insert("configs".to_owned(), Value::Object(allowed.collect()));
            }
            fields
        }
        _ => return Err(Lack::Tool),
    };
    Ok(Value::Object(fields))
}

/// Where a user is, in the words of Anthropic and of OpenAI.
pub(crate) fn approximate(place: &agent_core::tool::Location) -> Value {
    let mut said = json!(place);
    said["type"] = "approximate".into();
    said
}

fn domains(fields: &mut Map<String, Value>, allowed: &[String], blocked: &[String]) -> Result<(), Lack> {
    match (allowed.is_empty(), blocked.is_empty()) {
        (false, false) => return Err(Lack::Option("blocked domains beside allowed ones")),
        (false, true) => drop(fields.insert("allowed_domains".to_owned(), allowed.into())),
        (true, false) => drop(fields.insert("blocked_domains".to_owned(), blocked.into())),
        (true, true) => {}
    }
    Ok(())
}

/// The features that this request must ask for in a header.
pub(super) fn betas(req: &ModelRequest, claude: &Claude) -> Vec<&'static str> {
    let has = |is: fn(&ServerTool) -> bool| {
        req.tools.iter().any(|spec| spec.raw.is_none() && spec.server.as_ref().is_some_and(is))
    };
    let mut betas = Vec::new();
    betas.extend(has(|tool| matches!(tool, ServerTool::Mcp(_))).then_some("mcp-client-2025-11-20"));
    betas.extend(has(|tool| matches!(tool, ServerTool::Computer(_))).then_some(claude.computer().1));
    betas.extend(req.messages.iter().any(has_file).then_some(FILES));
    betas
}

/// The feature of files by their ids.
pub(crate) const FILES: &str = "files-api-2025-04-14";

fn has_file(message: &Message) -> bool {
    let parts = match message {
        Message::System(message) => message.parts(),
        Message::User(message) => message.parts(),
        Message::Tool(message) => message.parts(),
        Message::Assistant(_) => &[],
    };
    parts.iter().any(|part| {
        matches!(part, Part::Image(media) | Part::Document(media) if matches!(media.source, MediaSource::File(_)))
    })
}

open_struct! {
    CallSaid {
        id: Str<'a> = "id",
        name: Str<'a> = "name",
        server: Str<'a> = "server_name",
        input: &'a RawValue = "input",
        call: Str<'a> = "tool_use_id",
        content: &'a RawValue = "content",
        failed: bool = "is_error",
    }
}

open_struct! {
    ContentSaid { kind: Str<'a> = "type", }
}

/// How the types of results end.
const RESULT: &str = "_tool_result";

/// What a tool of the provider's did, if this block, which is of this kind, says that.
pub(super) fn server_call(kind: &str, json: &str, origin: &Origin) -> Option<Block> {
    let is_call = matches!(kind, "server_tool_use" | "mcp_tool_use");
    let of = kind.strip_suffix(RESULT).filter(|of| !of.is_empty());
    if !is_call && of.is_none() {
        return None;
    }
    let said: CallSaid<'_> = serde_json::from_str(json).ok()?;
    let raw = Raw::parse(origin.clone(), json).ok()?;
    let (id, name) = match of {
        Some(of) => (said.call?.0, of.into()),
        None => (said.id?.0, said.name?.0),
    };
    let mut call = ServerCall::new(&*id, &*name, raw);
    call.server = said.server.map(|server| server.0.into_owned());
    call.input = said.input.filter(|_| is_call).map(plain);
    call.output = said.content.filter(|_| !is_call).map(plain);
    let content: ContentSaid<'_> =
        said.content.and_then(|content| serde_json::from_str(content.get()).ok()).unwrap_or_default();
    call.failed = said.failed == Some(true) || content.kind.is_some_and(|kind| kind.0.ends_with("_error"));
    Some(Block::Server(call))
}
