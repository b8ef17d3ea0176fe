//! Repair of the tools on offer: for a rejected request with one tool that the provider cannot use.

use agent_core::{Error, ErrorKind, EventKind, ModelRequest, ToolSpec};

/// Returns the request without the tool whose schema or name the provider rejects; `None` if the
/// message names no tool of the request.
pub(crate) fn without_tool(req: &ModelRequest, refused: &Error) -> Option<ModelRequest> {
    if refused.kind() != ErrorKind::InvalidRequest {
        return None;
    }
    let said = refused.message();
    let lower = said.to_lowercase();
    if !["schema", "parameters", "declaration"].iter().any(|word| lower.contains(word)) {
        return None;
    }
    let at = named(said, &req.tools).or_else(|| numbered(&lower))?;
    let tool = req.tools.get(at)?;
    let message = format!("the model does not get the tool '{}', which its provider refuses: {said}", tool.name);
    let others: Vec<ToolSpec> =
        req.tools.iter().enumerate().filter(|(n, _)| *n != at).map(|(_, spec)| spec.clone()).collect();
    let mut req = req.clone();
    req.tools = others.into_iter().collect();
    req.cx.emit(EventKind::Warning { message });
    Some(req)
}

/// Returns the index of the tool whose name is quoted in the message.
fn named(said: &str, tools: &[ToolSpec]) -> Option<usize> {
    let is_quoted = |name: &str| {
        [('\'', '\''), ('"', '"'), ('`', '`')].iter().any(|(a, b)| said.contains(&format!("{a}{name}{b}")))
    };
    tools.iter().position(|spec| is_quoted(&spec.name))
}

/// Returns the index in paths such as `tools.3.custom.input_schema`, `tools[3].function` and
/// `function_declarations[3]`.
fn numbered(said: &str) -> Option<usize> {
    ["function_declarations[", "tools.", "tools["].iter().find_map(|path| {
        let (_, rest) = said.split_once(path)?;
        rest.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
    })
}

#[cfg(test)]
mod tests {
    use agent_core::{History, Message, testing::detached_run};
    use serde_json::json;

    use super::*;

    fn left(said: &str) -> Option<Vec<String>> {
        let history = History::from_messages([Message::user("hi")]).expect("paired");
        let mut req = ModelRequest::new(detached_run(history).cx().clone());
        let spec = |name: &str| ToolSpec::new(name, "a tool", json!({"type": "object"}));
        req.tools = ["read", "write", "search"].map(spec).into_iter().collect();
        let refused = Error::new(ErrorKind::InvalidRequest, said.to_owned());
        let left = without_tool(&req, &refused)?;
        Some(left.tools.iter().map(|spec| spec.name.clone()).collect())
    }

    #[test]
    fn a_tool_whose_schema_the_provider_refuses_by_name_or_index_is_left_out() {
        for said in [
            "Invalid schema for function 'write': schema must have type 'object'",
            "tools.1.custom.input_schema: JSON schema is invalid",
            "Invalid 'tools[1].function.parameters': unsupported keyword",
            "* GenerateContentRequest.tools[0].function_declarations[1].parameters: invalid",
        ] {
            assert_eq!(left(said).expect(said), ["read", "search"], "{said}");
        }
        for said in
            ["Invalid value for 'temperature'", "Invalid schema for function 'other': no", "tools.7: bad schema"]
        {
            assert_eq!(left(said), None, "{said}");
        }
    }
}
