//! Reading requests, so that encoding them again loses nothing.

mod contents;
mod params;
mod results;
mod tools;

use std::collections::BTreeMap;

use agent_core::{Error, ErrorKind, History, Result, Retry, SystemMessage};
use serde_json::{Map, Value, value::RawValue};

use super::{
    encode::SYSTEM,
    manner::Manner,
    part::{raw, user_part},
    profile::GeminiProfile,
    settings::Terms,
    wrapper::Wrapper,
};
use crate::{ParsedRequest, error::bounded};

type Fields<'a> = BTreeMap<String, &'a RawValue>;

/// Reads the body of a request. Fields that no message, tool or parameter holds are kept in `extra`.
pub(super) fn decode(body: &str, profile: &GeminiProfile, manner: &Manner) -> Result<ParsedRequest> {
    let mut fields: Fields<'_> = serde_json::from_str(body).map_err(|e| not_a_request(body).with_source(e))?;
    let mut request = ParsedRequest::default();
    let contents = fields.get("contents").ok_or_else(|| not_a_request(body))?;
    if let Some(messages) = contents::read(contents, manner) {
        request.messages = History::import(messages).0;
        fields.remove("contents");
    }
    if let Some(specs) = fields.get("tools").and_then(|tools| tools::read(tools, manner)) {
        request.tools = specs.into_iter().collect();
        fields.remove("tools");
    }
    request.system = system(&mut fields, manner);
    let fields = fields.into_iter().map(|(name, json)| (name, serde_json::from_str(json.get()).unwrap_or_default()));
    let fields: Map<String, Value> = fields.collect();
    if let Some(model) = fields.get("model").and_then(Value::as_str) {
        request.model = model.strip_prefix("models/").unwrap_or(model).to_owned();
    }
    let calls = request.tools.iter().any(|spec| !spec.is_server_side());
    let terms = Terms { profile, generation: manner.generation, model: manner.origin.model() };
    request.params = params::read(fields, calls, terms);
    Ok(request)
}

/// The system prompt, with the spelling of its field.
fn system(fields: &mut Fields<'_>, manner: &Manner) -> Option<SystemMessage> {
    let name = *SYSTEM.iter().find(|name| fields.contains_key(**name))?;
    let json = *fields.get(name)?;
    let parts = Wrapper::read(json.get(), &["parts"])?.items;
    fields.remove(name);
    let parts = parts.into_iter().map(|part| user_part(part, &manner.origin)).collect();
    let field = format!("{{\"{name}\":{}}}", json.get());
    Some(SystemMessage::new(parts).with_raw(raw(&field, &manner.origin)))
}

fn not_a_request(body: &str) -> Error {
    let message = format!("the body is not a request of generateContent: {}", bounded(body.trim(), 200));
    Error::new(ErrorKind::InvalidRequest, message).with_retry(Retry::Permanent)
}
