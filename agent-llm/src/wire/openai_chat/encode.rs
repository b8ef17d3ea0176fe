//! Writing requests.

use agent_core::{ModelRequest, tool::WireKey};

use super::{
    message::{Manner, Messages, write_spoken},
    profile::Profile,
    settings::Settings,
    tools::{is_told, write_tools},
};
use crate::wire::{body::Draft, json::write};

/// Writes the request's body to `out`.
pub(super) fn encode(
    req: &ModelRequest,
    model: &str,
    profile: &Profile,
    manner: &Manner,
    key: WireKey,
    out: &mut Draft,
) {
    let extra = &req.params.extra;
    let own_tools = extra.contains_key("tools");
    let tells_tools = !own_tools && req.tools.iter().any(|spec| is_told(manner, spec));
    let has_tools = own_tools || tells_tools;
    write(&Settings { model, params: &req.params, profile, has_tools, stream: req.stream }, out);
    out.pop(); // the closing brace
    if !extra.contains_key("messages") {
        out.extend_from_slice(b",\"messages\":[");
        if let Some(system) = &req.system {
            write_spoken(manner, manner.system_role.as_str(), system.raw(), system.parts(), out);
            out.push(b',');
        }
        let messages = Messages { manner, history: &req.messages };
        // Each has a comma after it, so that what is written of one does not depend on whether another follows.
        out.messages(&req.messages, |at, message, out| messages.write(at, message, out));
        out.pop_if(|last| *last == b',');
        out.push(b']');
    }
    if tells_tools {
        out.extend_from_slice(b",\"tools\":");
        out.extend_from_slice(&req.tools.written(key, |specs| write_tools(manner, specs)));
    }
    out.push(b'}');
}
