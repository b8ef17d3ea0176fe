//! Offered tools, and the calls that answered a question.

use std::{io, path::Path};

use agent::core::{Block, Message, ToolSpec};
use serde::Deserialize;
use serde_json::Value;

use crate::recordings::{Exchange, WIRES, lines, response};

/// Offered tools, and the calls that answered a question.
#[derive(Debug, Deserialize)]
pub(super) struct Case {
    pub(super) id: String,
    /// Question; `None` if the calls respond to something else, such as a tool result.
    pub(super) question: Option<String>,
    pub(super) tools: Vec<ToolSpec>,
    pub(super) calls: Vec<Call>,
}

/// Call, with its arguments in the model's or the data set's form.
#[derive(Debug, Deserialize)]
pub(super) struct Call {
    pub(super) name: String,
    pub(super) arguments: Value,
}

impl Case {
    /// Reads the cases of a file, which holds exchanges or questions.
    pub(super) fn read(file: &Path) -> io::Result<Vec<Self>> {
        let mut cases = Vec::new();
        for line in lines(file)? {
            let line: Value = serde_json::from_str(&line?)?;
            cases.extend(if line["question"].is_string() {
                Some(serde_json::from_value(line)?)
            } else {
                Self::of(&serde_json::from_value(line)?)?
            });
        }
        Ok(cases)
    }

    /// Converts an exchange; `None` if it offers no tool or cannot be decoded.
    fn of(exchange: &Exchange) -> io::Result<Option<Self>> {
        let Some(wire) = WIRES.iter().find(|wire| wire.api() == exchange.api) else { return Ok(None) };
        let Some(sent) = &exchange.request.json else { return Ok(None) };
        let codec = wire.codec(exchange).map_err(io::Error::other)?;
        let Ok(parsed) = codec.decode_request(sent.to_string().as_bytes()) else { return Ok(None) };
        let tools: Vec<_> = parsed.tools.iter().filter(|tool| !tool.is_server_side()).cloned().collect();
        if tools.is_empty() {
            return Ok(None);
        }
        let answer = exchange.status().is_success().then(|| response(&*codec, exchange).ok()).flatten();
        let blocks = answer.iter().flat_map(|answer| answer.message.blocks());
        let calls = blocks.filter_map(|block| match block {
            Block::ToolCall(call) => {
                Some(Call { name: call.name.to_string(), arguments: call.arguments.clone().into() })
            }
            _ => None,
        });
        let calls: Vec<_> = calls.collect();
        let question = match parsed.messages.last() {
            Some(message @ Message::User(_)) if !calls.is_empty() => Some(message.text()),
            _ => None,
        };
        Ok(Some(Self { id: exchange.id.clone(), question, tools, calls }))
    }
}
