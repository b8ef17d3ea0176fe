//! Encoding of requests: for this wire, and for those whose messages and tools are in lists of the
//! same names.

use agent_core::{
    Message, ModelRequest, SystemMessage, ToolSpec,
    tool::{ServerTool, WebSearch, WireKey},
};

use super::{
    OpenAiChatCodec,
    messages::{MessageStyle, write_message, write_spoken},
    profile::Profile,
    settings::Settings,
};
use serde_json::json;

use crate::wire::{
    body::Draft,
    check::{ToolText, text_of},
    json::{Json, present, write, write_with},
    server_tools::Lack,
};

/// Wire-specific parts of the encoding.
pub(in crate::wire) trait Words {
    fn manner(&self) -> &MessageStyle;

    /// Returns true if the tool is offered. Default: true.
    fn offers(&self, req: &ModelRequest, spec: &ToolSpec) -> bool {
        let _ = (req, spec);
        true
    }

    /// Writes an object with everything but the messages and the tools.
    fn write_settings(&self, req: &ModelRequest, has_tools: bool, out: &mut Vec<u8>);

    /// Writes the instructions. Default: as in Chat Completions.
    fn write_system(&self, system: &SystemMessage, out: &mut Vec<u8>) {
        write_spoken(self.manner(), self.manner().system_role(), system.raw(), system.parts(), out);
    }

    /// Writes `message`, at index `at` in the request's history, followed by a comma. Default: as in
    /// Chat Completions.
    fn write_message(&self, req: &ModelRequest, at: usize, message: &Message, out: &mut Vec<u8>) {
        write_message(self.manner(), req, at, message, out);
    }
}

/// Writes the request's body to `out`; the encoded tools are cached under `key`.
pub(in crate::wire) fn encode(req: &ModelRequest, words: &impl Words, key: WireKey, out: &mut Draft) {
    let (extra, manner, mut tools) = (&req.params.extra, words.manner(), None);
    if !req.tools.is_empty() && !extra.contains_key("tools") {
        let offered: Vec<_> = req.tools.iter().filter(|spec| words.offers(req, spec)).collect();
        tools = Some(match offered.len() == req.tools.len() {
            true => req.tools.written(key, |specs| write_tools(manner, specs)),
            false => write_tools(manner, &offered.into_iter().cloned().collect::<Vec<_>>()).into(),
        });
    }
    let tools = tools.filter(|tools| **tools != *b"[]");
    words.write_settings(req, extra.contains_key("tools") || tools.is_some(), out);
    out.pop(); // the closing brace
    if !extra.contains_key("messages") {
        out.extend_from_slice(b",\"messages\":[");
        if let Some(system) = &req.system {
            words.write_system(system, out);
            out.push(b',');
        }
        // Each message has a comma after it, so that its encoding does not depend on the next.
        out.messages(&req.messages, |at, message, out| words.write_message(req, at, message, out));
        out.pop_if(|last| *last == b',');
        out.push(b']');
    }
    if let Some(tools) = tools {
        out.extend_from_slice(b",\"tools\":");
        out.extend_from_slice(&tools);
    }
    out.push(b'}');
}

impl Words for OpenAiChatCodec {
    fn manner(&self) -> &MessageStyle {
        &self.manner
    }

    fn write_settings(&self, req: &ModelRequest, has_tools: bool, out: &mut Vec<u8>) {
        let (model, params) = (self.manner.origin.model(), &req.params);
        // The last web search among the tools applies.
        let search = req.tools.iter().rev().find_map(|spec| match &spec.server {
            Some(ServerTool::WebSearch(search)) if spec.raw.is_none() && spec.is_server_side() => Some(search),
            _ => None,
        });
        let settings = Settings { model, params, profile: &self.manner.profile, has_tools, stream: req.stream, search };
        write_with(&settings.fields(), &params.extra, out);
    }
}

/// Writes the list of tools. Tools other than functions may belong to another provider, or be a
/// setting.
fn write_tools(manner: &MessageStyle, specs: &[ToolSpec]) -> Vec<u8> {
    let mut out = Vec::new();
    write(&specs.iter().filter_map(|spec| tool_json(manner, spec)).collect::<Vec<_>>(), &mut out);
    out
}

pub(super) fn tool_json<'a>(manner: &MessageStyle, spec: &'a ToolSpec) -> Option<Json<'a>> {
    let function = || {
        let ToolText { description, parameters } = text_of(spec, &manner.rules);
        let function = json!({"name": spec.name, "description": description, "parameters": parameters});
        let mark = manner.cache_control(spec.cache);
        Json::Made(present(json!({"type": "function", "function": function, "cache_control": mark})))
    };
    let own = manner.own(spec.raw.as_ref()).map(Json::Own);
    own.or_else(|| (!spec.is_server_side()).then(function))
}

/// Returns the feature of a tool that the server does not support, if any.
pub(super) fn lack(tool: &ServerTool, profile: &Profile) -> Option<Lack> {
    match tool {
        ServerTool::WebSearch(search) if profile.web_search_options => {
            let WebSearch { allowed_domains, blocked_domains, max_uses, .. } = search;
            let says_more = !allowed_domains.is_empty() || !blocked_domains.is_empty() || max_uses.is_some();
            says_more.then_some(Lack::Option("domains and number of uses"))
        }
        _ => Some(Lack::Tool),
    }
}
