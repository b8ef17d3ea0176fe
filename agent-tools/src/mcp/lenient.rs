//! Repairs of messages that are not valid JSON, or not valid for the protocol.

use agent_core::exact;
use rmcp::{
    RoleClient,
    model::{JsonRpcMessage, JsonRpcResponse, ServerResult},
    service::RxJsonRpcMessage,
};
use serde_json::{Map, Value, json};

/// Parses a message. A message that does not parse is repaired: half surrogate pairs become U+FFFD, `NaN` and infinities become
/// `null`, and tools of a list without a valid schema get one that takes any arguments.
///
/// # Errors
/// The error of the original message, if it cannot be repaired.
pub(super) fn parse(bytes: &[u8]) -> Result<RxJsonRpcMessage<RoleClient>, serde_json::Error> {
    let error = match serde_json::from_slice(bytes) {
        Ok(message) if !may_list_tools(bytes) => return Ok(with_exact_numbers(message, bytes)),
        Ok(_) => None,
        Err(error) => Some(error),
    };
    match value(bytes).map(repaired).and_then(serde_json::from_value) {
        Ok(message) => Ok(message),
        Err(other) => Err(error.unwrap_or(other)),
    }
}

/// Replaces the structured content of a result that has numbers of more than 64 bits.
fn with_exact_numbers(mut message: RxJsonRpcMessage<RoleClient>, bytes: &[u8]) -> RxJsonRpcMessage<RoleClient> {
    if let JsonRpcMessage::Response(JsonRpcResponse { result: ServerResult::CallToolResult(result), .. }) = &mut message
        && let Some(content) = &mut result.structured_content
        && let Some(text) = std::str::from_utf8(bytes).ok().filter(|text| !exact::is_lossless(text))
        && let Ok(mut exact) = exact::from_str(text)
        && let Some(exact) = exact.pointer_mut("/result/structuredContent")
    {
        *content = exact.take();
    }
    message
}

/// Parses any JSON, repaired.
///
/// # Errors
/// If it is not JSON after the repair.
pub(super) fn value(bytes: &[u8]) -> Result<Value, serde_json::Error> {
    serde_json::from_slice(bytes).or_else(|_| serde_json::from_str(&json_of(&String::from_utf8_lossy(bytes))))
}

/// The text with numbers and escapes that JSON has.
fn json_of(text: &str) -> String {
    let (mut out, mut rest) = (String::with_capacity(text.len()), text);
    while let Some(at) = rest.find(['"', 'N', 'I', '-']) {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        if let Some(inside) = rest.strip_prefix('"') {
            rest = string(inside, &mut out);
            continue;
        }
        let token = ["NaN", "Infinity", "-Infinity", "-NaN"].into_iter().find(|token| rest.starts_with(token));
        let length = token.map_or(1, str::len);
        out.push_str(if token.is_some() { "null" } else { &rest[..length] });
        rest = &rest[length..];
    }
    out + rest
}

/// Copies a string without its first quotation mark, repaired, and returns what follows it.
fn string<'a>(mut rest: &'a str, out: &mut String) -> &'a str {
    out.push('"');
    while let Some(at) = rest.find(|c: char| c == '"' || c == '\\' || c < ' ') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        if let Some(after) = rest.strip_prefix('"') {
            out.push('"');
            return after;
        }
        let length = match rest.as_bytes() {
            [b'\\', b'u', ..] => match (unit(rest), rest.get(6..).and_then(unit)) {
                (Some(0xd800..=0xdbff), Some(0xdc00..=0xdfff)) => 12,
                (Some(0xd800..=0xdfff), _) => {
                    out.push_str("\\ufffd");
                    rest = &rest[6..];
                    continue;
                }
                _ => 2,
            },
            [b'\\', ..] => 1 + rest[1..].chars().next().map_or(0, char::len_utf8),
            [control, ..] => {
                out.push_str(&format!("\\u{control:04x}"));
                rest = &rest[1..];
                continue;
            }
            [] => 0,
        };
        out.push_str(&rest[..length]);
        rest = &rest[length..];
    }
    out.push_str(rest);
    ""
}

/// The code unit of an escape `\uXXXX` at the beginning.
fn unit(text: &str) -> Option<u32> {
    let digits = text.strip_prefix("\\u")?.get(..4)?;
    u32::from_str_radix(digits, 16).ok()
}

/// The message with tools that the protocol has.
fn repaired(mut message: Value) -> Value {
    if let Some(tools) = message.pointer_mut("/result/tools").and_then(Value::as_array_mut) {
        tools.retain(|tool| tool["name"].is_string());
        tools.iter_mut().filter_map(Value::as_object_mut).for_each(repair_tool);
    }
    message
}

/// Drops fields of a tool that have another type than the protocol says, and adds a schema.
fn repair_tool(tool: &mut Map<String, Value>) {
    for (field, is_valid) in [
        ("title", Value::is_string as fn(&Value) -> bool),
        ("description", Value::is_string),
        ("outputSchema", Value::is_object),
        ("_meta", Value::is_object),
        ("icons", Value::is_array),
        ("annotations", Value::is_object),
    ] {
        if tool.get(field).is_some_and(|value| !is_valid(value)) {
            tool.remove(field);
        }
    }
    if let Some(hints) = tool.get_mut("annotations").and_then(Value::as_object_mut) {
        hints.retain(|name, value| if name == "title" { value.is_string() } else { value.is_boolean() });
    }
    if !tool.get("inputSchema").is_some_and(Value::is_object) {
        tool.insert("inputSchema".to_owned(), json!({"type": "object", "properties": {}}));
    }
}

/// True if the message may be a list of tools, which parses as another result if one of its tools is not valid.
fn may_list_tools(bytes: &[u8]) -> bool {
    bytes.windows(7).any(|window| window == b"\"tools\"")
}

/// True if [`parse`] changes nothing in the message.
pub(super) fn is_whole(bytes: &[u8]) -> bool {
    !may_list_tools(bytes)
        && serde_json::from_slice::<RxJsonRpcMessage<RoleClient>>(bytes).is_ok()
        && std::str::from_utf8(bytes).is_ok_and(exact::is_lossless)
}

#[cfg(test)]
mod tests {
    use rmcp::model::{JsonRpcMessage, ServerResult};

    use super::*;

    #[test]
    fn what_json_does_not_have_is_repaired_and_nothing_else_changes() {
        for (text, wanted) in [
            (
                r#"{"a": NaN, "b": [-Infinity, Infinity, -NaN], "c": -1}"#,
                json!({"a": null, "b": [null, null, null], "c": -1}),
            ),
            (r#"{"NaN": "NaN Infinity -Infinity", "a": NaN}"#, json!({"NaN": "NaN Infinity -Infinity", "a": null})),
            (
                r#"["\ud83d", "x\udca9y", "\ud83d\ude00", "\ud83dx"]"#,
                json!(["\u{fffd}", "x\u{fffd}y", "😀", "\u{fffd}x"]),
            ),
            (r#"["\\ud83d", "\"NaN", "\\", NaN]"#, json!(["\\ud83d", "\"NaN", "\\", null])),
            ("[\"a\tb\u{1}\", NaN]", json!(["a\tb\u{1}", null])),
        ] {
            assert_eq!(value(text.as_bytes()).expect(text), wanted, "{text}");
        }
        assert_eq!(value(b"[\"\xed\xa0\xbd\", 1]").expect("is repaired")[1], 1);
        for text in ["", "{", "\"\\u", "\"\\", "[NaN", "Listening", "\"\\ud83d"] {
            assert!(value(text.as_bytes()).is_err(), "{text}");
        }
    }

    #[test]
    fn a_list_with_tools_that_are_not_valid_keeps_all_that_have_a_name() {
        let schemas = [json!(null), json!([]), json!("x"), json!({"type": "object"})];
        let mut tools: Vec<_> = schemas.iter().map(|schema| json!({"name": "a", "inputSchema": schema})).collect();
        tools.extend([json!({"name": "b"}), json!({"inputSchema": {}}), json!(7)]);
        tools
            .push(json!({"name": "c", "description": 7, "outputSchema": null, "annotations": {"readOnlyHint": "yes"}}));
        let list = json!({"jsonrpc": "2.0", "id": 1, "result": {"tools": tools}}).to_string();
        let Ok(JsonRpcMessage::Response(answer)) = parse(list.as_bytes()) else { panic!("is an answer") };
        let ServerResult::ListToolsResult(list) = answer.result else { panic!("is a list") };
        assert_eq!(list.tools.len(), 6);
    }
}
