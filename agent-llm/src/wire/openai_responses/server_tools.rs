//! Tools that the server has itself: how they are offered, and what they did.

use agent_core::{
    Block, Part, ToolCall, ToolMessage,
    message::{Origin, Raw, ServerCall},
    tool::{RemoteMcp, ServerTool},
};
use serde::Serialize;
use serde_json::{Map, Value, json, value::RawValue};

use super::messages::Manner;
use crate::wire::{
    anthropic::approximate, content::Address, json::plain, lenient::Str, open_struct::open_struct, server_tools::Lack,
};

/// The tool as the server is told of it.
pub(super) fn tool(tool: &ServerTool, model: &str) -> Result<Value, Lack> {
    Ok(match tool {
        ServerTool::WebSearch(search) => {
            let mut told = json!({"type": "web_search"});
            match search {
                _ if !search.blocked_domains.is_empty() => return Err(Lack::Option("blocked domains")),
                _ if search.max_uses.is_some() => return Err(Lack::Option("number of uses")),
                _ if search.allowed_domains.is_empty() => {}
                _ => told["filters"] = json!({"allowed_domains": search.allowed_domains}),
            }
            if let Some(place) = &search.location {
                told["user_location"] = approximate(place);
            }
            told
        }
        ServerTool::CodeExecution => json!({"type": "code_interpreter", "container": {"type": "auto"}}),
        ServerTool::FileSearch(search) => {
            let mut told = json!({"type": "file_search", "vector_store_ids": search.stores});
            if let Some(most) = search.max_results {
                told["max_num_results"] = most.into();
            }
            told
        }
        ServerTool::ImageGeneration => json!({"type": "image_generation"}),
        ServerTool::Computer(screen) if is_preview(model) => json!({
            "type": "computer_use_preview",
            "display_width": screen.width,
            "display_height": screen.height,
            "environment": "browser",
        }),
        ServerTool::Computer(_) => json!({"type": "computer"}),
        ServerTool::Mcp(server) if server.approval => return Err(Lack::Option("approval")),
        ServerTool::Mcp(server) => mcp(server),
        _ => return Err(Lack::Tool),
    })
}

/// True if the model is told of a computer as only the first of them is.
pub(super) fn is_preview(model: &str) -> bool {
    model.contains("computer-use-preview")
}

fn mcp(server: &RemoteMcp) -> Value {
    let RemoteMcp { name, url, authorization, headers, allowed_tools, .. } = server;
    let mut told = json!({"type": "mcp", "server_label": name, "server_url": url, "require_approval": "never"});
    if let Some(token) = authorization {
        told["authorization"] = token.expose().into();
    }
    if !headers.is_empty() {
        let headers = headers.iter().map(|(name, value)| (name.clone(), value.expose().into()));
        told["headers"] = Value::Object(headers.collect::<Map<_, _>>());
    }
    if !allowed_tools.is_empty() {
        told["allowed_tools"] = json!(allowed_tools);
    }
    told
}

/// What must be asked for so that the answer says what came of a tool.
pub(super) fn include(tool: &ServerTool) -> Option<&'static str> {
    match tool {
        ServerTool::WebSearch(_) => Some("web_search_call.action.sources"),
        ServerTool::FileSearch(_) => Some("file_search_call.results"),
        ServerTool::CodeExecution => Some("code_interpreter_call.outputs"),
        _ => None,
    }
}

open_struct! {
    ItemSaid {
        id: Str<'a> = "id",
        name: Str<'a> = "name",
        server: Str<'a> = "server_label",
        status: Str<'a> = "status",
        action: &'a RawValue = "action",
        queries: &'a RawValue = "queries",
        code: Str<'a> = "code",
        arguments: Str<'a> = "arguments",
        results: &'a RawValue = "results",
        outputs: &'a RawValue = "outputs",
        output: Str<'a> = "output",
        error: &'a RawValue = "error",
    }
}

/// What a tool of the server's did, if this item, which is of this kind, says that.
pub(super) fn server_call(kind: &str, json: &RawValue, origin: &Origin) -> Option<Block> {
    let name = match kind {
        "web_search_call" | "file_search_call" | "code_interpreter_call" => kind.strip_suffix("_call")?,
        "mcp_call" => "",
        _ => return None,
    };
    let said: ItemSaid<'_> = serde_json::from_str(json.get()).ok()?;
    let named = if name.is_empty() { said.name?.0 } else { name.into() };
    let mut call = ServerCall::new(&*said.id.unwrap_or_default().0, &*named, Raw::new(origin.clone(), json.to_owned()));
    let json = |said: Option<&RawValue>| said.map(plain);
    let text = |said: Option<Str<'_>>| said.map(|text| text.0.into_owned());
    call.server = text(said.server);
    call.input = json(said.action.or(said.queries)).or(text(said.code)).or(text(said.arguments));
    call.output = json(said.error).or(json(said.results.or(said.outputs))).or(text(said.output));
    call.failed = said.error.is_some() || said.status.is_some_and(|status| status.0 == "failed");
    Some(Block::Server(call))
}

/// The type of a call to use a computer.
const COMPUTER: &str = "computer_call";

/// What a computer is to be used for, which is a call of the application's own tool.
#[derive(Serialize)]
struct Actions<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    action: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    actions: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pending_safety_checks: Option<&'a RawValue>,
}

open_struct! {
    ComputerSaid {
        call_id: Str<'a> = "call_id",
        action: &'a RawValue = "action",
        actions: &'a RawValue = "actions",
        checks: &'a RawValue = "pending_safety_checks",
    }
}

/// The call in an item that is one of a computer.
pub(super) fn computer_call(kind: &str, json: &RawValue, origin: &Origin) -> Option<Block> {
    if kind != COMPUTER {
        return None;
    }
    let said: ComputerSaid<'_> = serde_json::from_str(json.get()).ok()?;
    let checks = said.checks.filter(|checks| checks.get() != "[]");
    let actions = Actions { action: said.action, actions: said.actions, pending_safety_checks: checks };
    Some(Block::ToolCall(ToolCall {
        id: said.call_id?.0.into(),
        name: "computer".into(),
        arguments: serde_json::to_string(&actions).ok()?,
        raw: Some(Raw::new(origin.clone(), json.to_owned())),
    }))
}

/// The screen after a computer was used.
#[derive(Serialize)]
pub(super) struct Screen<'a> {
    r#type: &'static str,
    call_id: &'a str,
    output: Screenshot<'a>,
}

#[derive(Serialize)]
struct Screenshot<'a> {
    r#type: &'static str,
    image_url: Address<'a>,
}

impl<'a> Screen<'a> {
    /// None if the call is not one to use a computer, by the provider's own account, or the result shows no screen.
    pub(super) fn of(manner: &Manner, call: &ToolCall, result: &'a ToolMessage) -> Option<Self> {
        let is_computer = manner.own(call.raw.as_ref()).is_some_and(|own| super::read::kind(own).0 == COMPUTER);
        let image = result.parts().iter().rev().find_map(|part| match part {
            Part::Image(image) if is_computer => Some(image),
            _ => None,
        })?;
        let output = Screenshot { r#type: "computer_screenshot", image_url: Address::of(image, "image/png") };
        Some(Self { r#type: "computer_call_output", call_id: result.call_id(), output })
    }
}
