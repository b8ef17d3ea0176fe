//! Reading requests back.

pub(in crate::wire) mod message;
mod params;
mod tools;

use std::{borrow::Cow, collections::BTreeMap};

use agent_core::{Error, ErrorKind, History, Message, Result, Retry, ToolSpec};
use serde_json::{Map, Value, value::RawValue};

use self::message::Reader;
use super::{
    message::Manner,
    profile::Profile,
    settings::{LIMITS, Settings},
};
use crate::{
    ParsedRequest,
    wire::{json::lay, lenient::each},
};

/// Reads the body of a request. What the framework's own terms do not say exactly is kept as it came: messages, parts and
/// tools beside what was understood of them, and fields of the request in `extra`.
pub(super) fn decode_request(body: &str, profile: &Profile, manner: &Manner) -> Result<ParsedRequest> {
    let mut reader = Reader::new(manner);
    let (mut parsed, said) = read_body(body, manner, |json| reader.read(json))?;
    parsed.stream = said.get("stream") == Some(&Value::Bool(true));
    parsed.params = params::read(&said, profile);
    keep_the_rest(&mut parsed, said, profile);
    Ok(parsed)
}

/// The messages, as `read_message` reads them, the model and the tools of a body; and its other fields.
pub(in crate::wire) fn read_body(
    body: &str,
    manner: &Manner,
    read_message: impl FnMut(&RawValue) -> serde_json::Result<Message>,
) -> Result<(ParsedRequest, Map<String, Value>)> {
    let mut fields: BTreeMap<Cow<'_, str>, &RawValue> =
        serde_json::from_str(body).map_err(|e| invalid("the body is not a JSON object").with_source(e))?;
    let messages = fields.remove("messages").ok_or_else(|| invalid("the request has no 'messages'"))?;
    let mut parsed = ParsedRequest { messages: read_messages(messages, read_message)?, ..ParsedRequest::default() };
    if let Some(model) = fields.get("model").and_then(|json| serde_json::from_str(json.get()).ok()) {
        parsed.model = model;
        fields.remove("model");
    }
    if let Some(tools) = fields.get("tools").and_then(|json| read_tools(json, manner)) {
        parsed.tools = tools.into_iter().collect();
        fields.remove("tools");
    }
    let mut said = Map::new();
    for (name, json) in fields {
        let value = serde_json::from_str(json.get());
        said.insert(
            name.clone().into_owned(),
            value.map_err(|e| invalid(format!("'{name}' is not JSON")).with_source(e))?,
        );
    }
    Ok((parsed, said))
}

/// Puts into `extra` whatever `said` says otherwise than the request would say by itself.
fn keep_the_rest(parsed: &mut ParsedRequest, said: Map<String, Value>, profile: &Profile) {
    let has_tools = !parsed.tools.is_empty() || said.contains_key("tools");
    let settings =
        Settings { model: "", params: &parsed.params, profile, has_tools, stream: parsed.stream, search: None };
    let written = serde_json::to_value(settings).unwrap_or_default();
    // Streaming and the limit have two fields each, of which the request writes one or both by itself.
    let options = "stream_options";
    let is_own_stream = !parsed.stream || said.get(options) == written.get(options);
    let limit = profile.name_of("max_tokens");
    let is_own_limit = LIMITS
        .iter()
        .all(|name| said.contains_key(*name) == (parsed.params.max_tokens.is_some() && limit == Some(name)));
    let params = &mut parsed.params;
    for (name, value) in said {
        let own = match name.as_str() {
            "stream" | "stream_options" if !is_own_stream => None,
            "max_tokens" | "max_completion_tokens" if !is_own_limit => None,
            _ => written.get(&name),
        };
        if own.is_some_and(|own| alike(own, &value)) {
            continue;
        }
        // What would be laid over more than it says must stand alone.
        if own.is_some_and(|own| laid(own, &value) != value) {
            match name.as_str() {
                "tool_choice" => params.tool_choice = None,
                "response_format" => params.output = None,
                _ => {}
            }
        }
        params.extra.insert(name, value);
    }
}

/// Equal, numbers by value.
fn alike(a: &Value, b: &Value) -> bool {
    a == b || matches!((a, b), (Value::Number(a), Value::Number(b)) if a.as_f64() == b.as_f64())
}

fn laid(base: &Value, over: &Value) -> Value {
    let mut base = base.clone();
    lay(&mut base, over);
    base
}

fn read_messages(
    json: &RawValue,
    mut read_message: impl FnMut(&RawValue) -> serde_json::Result<Message>,
) -> Result<History> {
    let (mut messages, mut at) = (Vec::new(), 0);
    let read = each(json, |json| {
        messages.push(read_message(json)?);
        at += 1;
        Ok(())
    });
    match read {
        Ok(()) => Ok(History::import(messages).0),
        Err(e) => Err(invalid(format!("'messages' cannot be read at item {at}")).with_source(e)),
    }
}

/// None for what is no list of tools, or an empty one.
fn read_tools(json: &RawValue, manner: &Manner) -> Option<Vec<ToolSpec>> {
    let mut specs = Vec::new();
    let read = each(json, |json| {
        specs.push(tools::read(manner, json)?);
        Ok(())
    });
    read.ok().filter(|()| !specs.is_empty())?;
    Some(specs)
}

fn invalid(what: impl Into<Cow<'static, str>>) -> Error {
    Error::new(ErrorKind::InvalidRequest, what).with_retry(Retry::Permanent)
}
