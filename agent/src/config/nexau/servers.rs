//! `mcp_servers`: servers of the Model Context Protocol.

use serde_json::{Value, json};

use super::{difference::Differences, draft::Draft, keys::Keys};

/// Translates the servers.
pub(super) fn translate(file: &mut Keys, draft: &mut Draft, differences: &mut Differences) {
    for (path, server) in file.list("mcp_servers", differences) {
        let mut server = Keys::of(path, server, differences);
        let Some(name) = server.text("name", differences) else {
            differences.missing(&server, "name", "the server is left out");
            continue;
        };
        let mut mcp = json!({"name": name});
        match server.text("type", differences).as_deref() {
            None | Some("stdio") => {
                let program = server.take("command").into_iter();
                let arguments = server.list("args", differences).into_iter().map(|(_, argument)| argument);
                mcp["command"] = program.chain(arguments).collect();
                copy("env", &mut server, &mut mcp);
            }
            // Old servers, which send events over HTTP, are found out when they are reached.
            Some("http" | "sse") => {
                copy("url", &mut server, &mut mcp);
                copy("headers", &mut server, &mut mcp);
                if server.take("env").is_some() {
                    differences.ignored(server.path("env"), "is for programs alone", "a server at an address has none");
                }
            }
            Some(_) => {
                differences.impossible(server.path("type"), "has stdio, http and sse", "the server is left out");
                continue;
            }
        }
        copy("timeout", &mut server, &mut mcp);
        if server.take("disable_parallel") == Some(true.into()) {
            mcp["serial"] = true.into();
        }
        server.skip(["source_id"]);
        permissions(&name, &mut server, draft, differences);
        draft.tools.push(json!({"mcp": mcp}));
        let nexau = format!("calls its tools mcp__{name}__ and their names");
        differences.otherwise(server.path("name"), nexau, format!("they are called {name}_ and their names"));
        server.refuse_rest(differences);
    }
}

fn copy(key: &str, server: &mut Keys, mcp: &mut Value) {
    if let Some(value) = server.take(key) {
        mcp[key] = value;
    }
}

/// Of a server as a whole, and of single tools of it, which win.
fn permissions(name: &str, server: &mut Keys, draft: &mut Draft, differences: &mut Differences) {
    let single = server.object("tool_permissions", differences);
    let whole = server.object("permissions", differences);
    if whole.is_none() && single.is_none() {
        return draft.rules.allow(format!("{name}_*"));
    }
    draft.rules.ask();
    if let Some(mut whole) = whole {
        for policy in ["allow", "deny"] {
            for (_, tool) in whole.list(policy, differences) {
                let tool = tool.as_str().unwrap_or_default();
                let of_server = format!("mcp__{name}");
                let tool = match tool.strip_prefix(&of_server).unwrap_or(tool).trim_start_matches("__") {
                    "" | "*" | "**" => "*",
                    tool => tool,
                };
                draft.rules.whole(policy, &format!("{name}_{tool}"));
            }
        }
        whole.refuse_rest(differences);
    } else {
        let here = "a tool of the server without permissions of its own is asked about";
        differences.otherwise(server.path("tool_permissions"), "lets the server's other tools run", here);
    }
    let Some(single) = single else { return };
    for (path, tool, said) in single.rest() {
        let mut entry = Keys::of(path, json!({"permissions": said}), differences);
        draft.rules.of_tool(&format!("{name}_{tool}"), &mut entry, super::permissions::Looks::Nothing, differences);
    }
}
