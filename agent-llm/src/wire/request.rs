//! Decoding of requests, shared by all wires with a list of messages or items.

use std::{borrow::Cow, collections::BTreeMap};

use agent_core::{Error, ErrorKind, History, Message, Result, Retry, ToolSpec};
use serde_json::{Map, Value, value::RawValue};

use super::{lenient::each, settings::with_rest};
use crate::ParsedRequest;

/// A partly decoded request.
pub(crate) struct Body<'a> {
    /// Model and tools.
    pub(crate) parsed: ParsedRequest,
    /// Raw messages, or items.
    pub(crate) conversation: Option<&'a RawValue>,
    /// All other fields.
    pub(crate) said: Map<String, Value>,
}

impl<'a> Body<'a> {
    /// Decodes a request body whose conversation is in the field `conversation`, and its tools with
    /// `read_tool`.
    ///
    /// # Errors
    /// [`InvalidRequest`](ErrorKind::InvalidRequest) if the body is not a JSON object.
    pub(crate) fn read(
        body: &'a str,
        conversation: &str,
        mut read_tool: impl FnMut(&RawValue) -> serde_json::Result<ToolSpec>,
    ) -> Result<Self> {
        let mut fields: BTreeMap<Cow<'_, str>, &RawValue> =
            serde_json::from_str(body).map_err(|e| invalid("the body is not a JSON object").with_source(e))?;
        let conversation = fields.remove(conversation);
        let mut said = Self { parsed: ParsedRequest::default(), conversation, said: Map::new() };
        if let Some(model) = fields.get("model").and_then(|json| serde_json::from_str(json.get()).ok()) {
            said.parsed.model = model;
            fields.remove("model");
        }
        let mut tools = Vec::new();
        let read = fields.get("tools").map(|json| each(json, |json| read_tool(json).map(|tool| tools.push(tool))));
        if matches!(read, Some(Ok(()))) && !tools.is_empty() {
            said.parsed.tools = tools.into_iter().collect();
            fields.remove("tools");
        }
        fields.iter().try_for_each(|(name, json)| said.keep(name, json))?;
        Ok(said)
    }

    /// Keeps a field unchanged.
    pub(crate) fn keep(&mut self, name: &str, json: &RawValue) -> Result<()> {
        let value = serde_json::from_str(json.get());
        self.said.insert(name.into(), value.map_err(|e| invalid(format!("'{name}' is not JSON")).with_source(e))?);
        Ok(())
    }

    /// Decodes the messages one by one.
    ///
    /// # Errors
    /// [`InvalidRequest`](ErrorKind::InvalidRequest) that names the message that cannot be decoded.
    pub(crate) fn read_messages(
        &mut self,
        mut read: impl FnMut(&RawValue) -> serde_json::Result<Message>,
    ) -> Result<()> {
        let json = self.conversation.ok_or_else(|| invalid("the request has no 'messages'"))?;
        let mut messages = Vec::new();
        let all = each(json, |json| read(json).map(|message| messages.push(message)));
        let unreadable = |e| invalid(format!("'messages' cannot be read at item {}", messages.len())).with_source(e);
        all.map_err(unreadable)?;
        self.parsed.messages = History::import(messages).0;
        Ok(())
    }

    /// Completes the request. `written` is its own encoding of the settings; fields that differ are
    /// kept as extra fields.
    pub(crate) fn finish(self, written: Map<String, Value>) -> ParsedRequest {
        let mut parsed = self.parsed;
        parsed.params = with_rest(parsed.params, &written.into(), &self.said.into());
        parsed
    }
}

fn invalid(what: impl Into<Cow<'static, str>>) -> Error {
    Error::new(ErrorKind::InvalidRequest, what).with_retry(Retry::Permanent)
}
