//! Rewrites complete content: messages, tool outputs, JSON. `None` means unchanged.

use std::borrow::Cow;

use agent_core::{
    AssistantMessage, Block, Error, ErrorKind, Message, Part, Result, Text, ToolCall, ToolOutput,
    message::{Raw, Reasoning, ServerCall},
};
use serde_json::{Map, Value};

use super::Rewrite;

/// Rewrites a message. If it changes, the provider's raw JSON is dropped.
pub(crate) fn message(rewrite: &dyn Rewrite, message: &Message) -> Result<Option<Message>> {
    let mut changed = message.clone();
    let parts = match &mut changed {
        Message::Assistant(said) => return Ok(assistant(rewrite, said)?.map(Message::Assistant)),
        Message::System(m) => parts(rewrite, m.parts())?.map(|new| *m.parts_mut() = new),
        Message::User(m) => parts(rewrite, m.parts())?.map(|new| *m.parts_mut() = new),
        Message::Tool(m) => parts(rewrite, m.parts())?.map(|new| *m.parts_mut() = new),
    };
    Ok(parts.map(|()| changed))
}

/// Rewrites a model's message.
pub(crate) fn assistant(rewrite: &dyn Rewrite, said: &AssistantMessage) -> Result<Option<AssistantMessage>> {
    Ok(list(said.blocks(), |one| block(rewrite, one))?.map(AssistantMessage::new))
}

/// Rewrites a tool's output, for the model and for programs.
pub(crate) fn output(rewrite: &dyn Rewrite, output: &ToolOutput) -> Result<Option<ToolOutput>> {
    let shown = parts(rewrite, output.content())?;
    let value = output.as_value().map(|value| json(rewrite, value)).transpose()?.flatten();
    if shown.is_none() && value.is_none() {
        return Ok(None);
    }
    let shown = shown.unwrap_or_else(|| output.content().to_vec());
    let mut changed = match value {
        Some(value) => ToolOutput::value(value).shown_as(shown),
        None => output.clone().shown_as(shown),
    };
    if output.is_error() {
        changed = changed.failed();
    }
    Ok(Some(changed))
}

/// Rewrites one block of a model's message, and its arguments if the rewriter covers them. Changed
/// reasoning loses its signature, which would no longer be valid.
pub(super) fn block(rewrite: &dyn Rewrite, block: &Block) -> Result<Option<Block>> {
    Ok(match block {
        Block::Text(said) if rewrite.rewrites_words() => text(rewrite, said)?.map(Block::Text),
        Block::Reasoning(r) if rewrite.rewrites_words() => changed(rewrite.text(&r.text)?)
            .map(|text| Block::Reasoning(Reasoning { text, signature: None, encrypted: None, raw: None })),
        Block::ToolCall(call) => match rewrite.of_arguments() {
            Some(rewrite) => changed(rewrite.arguments(&call.arguments)?)
                .map(|arguments| Block::ToolCall(ToolCall { arguments, raw: None, ..call.clone() })),
            None => None,
        },
        Block::Server(call) if rewrite.rewrites_words() => server_call(rewrite, call)?.map(Block::Server),
        _ => None,
    })
}

/// Rewrites the input and output of a provider's own tool, and its raw JSON.
fn server_call(rewrite: &dyn Rewrite, call: &ServerCall) -> Result<Option<ServerCall>> {
    let field = |said: &Option<String>| -> Result<Option<String>> {
        Ok(said.as_deref().map(|said| rewrite.text(said)).transpose()?.and_then(changed))
    };
    let (input, output) = (field(&call.input)?, field(&call.output)?);
    if input.is_none() && output.is_none() {
        return Ok(None);
    }
    let mut new = call.clone();
    (new.input, new.output) = (input.or(new.input), output.or(new.output));
    let sent = serde_json::from_str(call.raw.json()).unwrap_or_default();
    let sent = json(rewrite, &sent)?.unwrap_or(sent);
    new.raw = Raw::parse(call.raw.origin().clone(), sent.to_string())
        .map_err(|e| Error::new(ErrorKind::Unexpected, "what was rewritten is no JSON").with_source(e))?;
    Ok(Some(new))
}

fn parts(rewrite: &dyn Rewrite, parts: &[Part]) -> Result<Option<Vec<Part>>> {
    list(parts, |part| match part {
        Part::Text(said) => Ok(text(rewrite, said)?.map(Part::Text)),
        _ => Ok(None),
    })
}

fn text(rewrite: &dyn Rewrite, said: &Text) -> Result<Option<Text>> {
    let words = changed(rewrite.text(&said.text)?);
    let citations = list(&said.citations, |citation| {
        let field = |field: &Option<String>| -> Result<Option<String>> {
            Ok(field.as_deref().map(|words| rewrite.text(words)).transpose()?.and_then(changed))
        };
        let new = (field(&citation.url)?, field(&citation.title)?, field(&citation.quote)?);
        if new == (None, None, None) {
            return Ok(None);
        }
        let mut changed = citation.clone();
        changed.url = new.0.or(changed.url);
        changed.title = new.1.or(changed.title);
        changed.quote = new.2.or(changed.quote);
        Ok(Some(changed))
    })?;
    if words.is_none() && citations.is_none() {
        return Ok(None);
    }
    let is_rewritten = words.is_some();
    let mut new = Text::new(words.unwrap_or_else(|| said.text.clone()));
    new.citations = citations.unwrap_or_else(|| said.citations.clone());
    if is_rewritten {
        // The byte ranges referred to the original text.
        new.citations.iter_mut().for_each(|citation| citation.bytes = None);
    }
    new.cache = said.cache;
    Ok(Some(new))
}

/// Rewrites the strings, field names and numbers of a JSON value; a number with a finding becomes a
/// string.
pub(crate) fn json(rewrite: &dyn Rewrite, value: &Value) -> Result<Option<Value>> {
    Ok(match value {
        Value::String(text) => changed(rewrite.text(text)?).map(Value::String),
        Value::Number(number) => changed(rewrite.text(&number.to_string())?).map(Value::String),
        Value::Array(items) => list(items, |item| json(rewrite, item))?.map(Value::Array),
        Value::Object(fields) => {
            let fields: Vec<(String, Value)> = fields.iter().map(|(k, v)| (k.clone(), v.clone())).collect();
            let new = list(&fields, |(name, value)| {
                let new = (changed(rewrite.text(name)?), json(rewrite, value)?);
                Ok((new != (None, None))
                    .then(|| (new.0.unwrap_or_else(|| name.clone()), new.1.unwrap_or_else(|| value.clone()))))
            })?;
            new.map(|fields| Value::Object(Map::from_iter(fields)))
        }
        Value::Null | Value::Bool(_) => None,
    })
}

/// Returns the whole list if any of its elements changes.
fn list<T: Clone>(all: &[T], mut change: impl FnMut(&T) -> Result<Option<T>>) -> Result<Option<Vec<T>>> {
    let mut new: Option<Vec<T>> = None;
    for (at, one) in all.iter().enumerate() {
        match (change(one)?, &mut new) {
            (Some(changed), Some(list)) => list.push(changed),
            (Some(changed), None) => new = Some(all[..at].iter().cloned().chain([changed]).collect()),
            (None, Some(list)) => list.push(one.clone()),
            (None, None) => {}
        }
    }
    Ok(new)
}

/// Returns the text if it was rewritten.
fn changed(text: Cow<'_, str>) -> Option<String> {
    match text {
        Cow::Owned(text) => Some(text),
        Cow::Borrowed(_) => None,
    }
}
