//! Writing requests: of this wire, and of those that have their messages and their tools in lists of the same names.

use agent_core::{
    History, Message, ModelRequest, SystemMessage, ToolSpec,
    tool::{ServerTool, WebSearch, WireKey},
};

use super::{
    messages::{Manner, Messages, write_spoken},
    profile::Profile,
    settings::Settings,
    tools::{is_told, write_tools},
};
use crate::wire::{body::Draft, json::write_with, server_tools::Lack};

/// What such a wire says in its own words.
pub(in crate::wire) trait Words {
    fn manner(&self) -> &Manner;

    /// True if the tool is offered, of those that the server is told of. Default: it is.
    fn offers(&self, spec: &ToolSpec) -> bool {
        let _ = spec;
        true
    }

    /// Writes an object of everything but the messages and the tools.
    fn write_settings(&self, has_tools: bool, out: &mut Vec<u8>);

    fn write_system(&self, system: &SystemMessage, out: &mut Vec<u8>);

    /// Writes `message`, which stands at `at` in the history, with a comma after it.
    fn write_message(&self, history: &History, at: usize, message: &Message, out: &mut Vec<u8>);
}

/// Writes the request's body to `out`; what is made of its tools is kept under `key`.
pub(in crate::wire) fn encode(req: &ModelRequest, words: &impl Words, key: WireKey, out: &mut Draft) {
    let (extra, manner) = (&req.params.extra, words.manner());
    let own_tools = extra.contains_key("tools");
    let offers = |spec: &&ToolSpec| is_told(manner, spec) && words.offers(spec);
    let tells_tools = !own_tools && req.tools.iter().any(|spec| offers(&spec));
    words.write_settings(own_tools || tells_tools, out);
    out.pop(); // the closing brace
    if !extra.contains_key("messages") {
        out.extend_from_slice(b",\"messages\":[");
        if let Some(system) = &req.system {
            words.write_system(system, out);
            out.push(b',');
        }
        // Each has a comma after it, so that what is written of one does not depend on whether another follows.
        out.messages(&req.messages, |at, message, out| words.write_message(&req.messages, at, message, out));
        out.pop_if(|last| *last == b',');
        out.push(b']');
    }
    if tells_tools {
        out.extend_from_slice(b",\"tools\":");
        if req.tools.iter().all(|spec| words.offers(spec)) {
            out.extend_from_slice(&req.tools.written(key, |specs| write_tools(manner, specs)));
        } else {
            let offered: Vec<_> = req.tools.iter().filter(offers).cloned().collect();
            out.extend_from_slice(&write_tools(manner, &offered));
        }
    }
    out.push(b'}');
}

/// A request in the words of Chat Completions.
pub(super) struct ChatWords<'a> {
    pub(super) req: &'a ModelRequest,
    pub(super) model: &'a str,
    pub(super) profile: &'a Profile,
    pub(super) manner: &'a Manner,
}

impl Words for ChatWords<'_> {
    fn manner(&self) -> &Manner {
        self.manner
    }

    fn write_settings(&self, has_tools: bool, out: &mut Vec<u8>) {
        let Self { req, model, profile, .. } = *self;
        let search = search(&req.tools);
        let params = &req.params;
        let settings = Settings { model, params, profile, has_tools, stream: req.stream, search };
        write_with(&settings.fields(), &params.extra, out);
    }

    fn write_system(&self, system: &SystemMessage, out: &mut Vec<u8>) {
        write_spoken(self.manner, self.manner.system_role.as_str(), system.raw(), system.parts(), out);
    }

    fn write_message(&self, history: &History, at: usize, message: &Message, out: &mut Vec<u8>) {
        Messages { manner: self.manner, history }.write(at, message, out);
    }
}

/// The search of the web among the tools: the last holds.
fn search(specs: &[ToolSpec]) -> Option<&WebSearch> {
    specs.iter().rev().find_map(|spec| match &spec.server {
        Some(ServerTool::WebSearch(search)) if spec.raw.is_none() && spec.is_server_side() => Some(search),
        _ => None,
    })
}

/// What the server has no word for of a tool.
pub(super) fn lack(tool: &ServerTool, profile: &Profile) -> Option<Lack> {
    match tool {
        ServerTool::WebSearch(_) if !profile.web_search_options => Some(Lack::Tool),
        ServerTool::WebSearch(WebSearch { location, .. })
            if *tool
                != ServerTool::WebSearch(
                    location.clone().map_or_else(WebSearch::new, |at| WebSearch::new().near(at)),
                ) =>
        {
            Some(Lack::Option("domains and number of uses"))
        }
        ServerTool::WebSearch(_) => None,
        _ => Some(Lack::Tool),
    }
}
