//! Responses.

use std::collections::HashSet;

use agent::{ErrorKind, Event, ExitReason, ToolOutput, Usage};
use serde_json::{Map, Value, json};

use super::{chat::Head, error, items::told_id};
use crate::{
    follow::Teller,
    speech::{Ending, MessageStream, Said, What, code, own_id},
    sse::Frame,
};

/// Encoder of a run as events of a response; also builds complete responses.
///
/// Calls of the agent's own tools appear as calls of a remote MCP server, calls of the client's
/// tools as function calls.
#[derive(Debug)]
pub(super) struct Told {
    head: Head,
    speech: MessageStream,
    client_tools: HashSet<String>,
    previous: Value,
    items: Vec<Item>,
    sequence: u64,
    usage: Usage,
}

#[derive(Debug)]
struct Item {
    /// Id of the message, thought or call.
    of: String,
    kind: Kind,
    /// Item in the form of the response.
    value: Value,
    is_done: bool,
    was_said: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Message,
    Thought,
    ServerCall,
    ClientCall,
}

impl Told {
    /// Creates an encoder for a client with these tools that continues from that response.
    pub(super) fn new(head: Head, client_tools: HashSet<String>, previous: Value) -> Self {
        let (speech, usage) = (MessageStream::default(), Usage::default());
        Self { head, speech, client_tools, previous, items: Vec::new(), sequence: 0, usage }
    }

    /// Builds the complete response.
    ///
    /// # Errors
    /// The reason why the run has no answer.
    pub(super) fn whole(&mut self, ending: &Ending) -> Result<Value, (ErrorKind, String)> {
        let _ = self.close(ending);
        match self.failure(ending) {
            Some(failure) => Err(failure),
            None => Ok(self.response(ending)),
        }
    }

    fn failure(&self, ending: &Ending) -> Option<(ErrorKind, String)> {
        error::failure(ending, &self.head.run).filter(|_| !ending.waits_for_client())
    }

    fn response(&self, ending: &Ending) -> Value {
        let (status, incomplete) = match ending {
            Ending::Finished { reason: ExitReason::Length, .. } => {
                ("incomplete", json!({"reason": "max_output_tokens"}))
            }
            Ending::Finished { reason: ExitReason::ContentFilter, .. } => {
                ("incomplete", json!({"reason": "content_filter"}))
            }
            Ending::Cancelled => ("cancelled", Value::Null),
            ending if self.failure(ending).is_some() => ("failed", Value::Null),
            _ => ("completed", Value::Null),
        };
        let mut response = self.head(status);
        response["incomplete_details"] = incomplete;
        response["output"] = self.items.iter().filter(|item| item.was_said).map(|item| item.value.clone()).collect();
        response["usage"] = usage(&self.usage);
        if let Some((kind, message)) = self.failure(ending) {
            response["error"] = json!({"code": code(kind), "message": message});
        }
        response
    }

    fn head(&self, status: &str) -> Value {
        json!({
            "id": format!("resp_{}", self.head.run), "object": "response", "created_at": self.head.created,
            "status": status, "model": self.head.agent, "output": [], "error": null, "incomplete_details": null,
            "instructions": null, "metadata": {}, "parallel_tool_calls": true, "tool_choice": "auto", "tools": [],
            "temperature": null, "top_p": null, "previous_response_id": self.previous,
        })
    }

    fn frame(&mut self, event: &'static str, fields: Value) -> Frame {
        let mut data = json!({"type": event, "sequence_number": self.sequence});
        self.sequence += 1;
        if let (Some(data), Value::Object(fields)) = (data.as_object_mut(), fields) {
            data.extend(fields);
        }
        Frame::with(&[("event", event)], &data)
    }

    /// Returns an event about an item: `fields` plus the item's position.
    fn about(&mut self, at: usize, event: &'static str, fields: Value) -> Frame {
        let mut all = Map::new();
        all.insert("output_index".to_owned(), at.into());
        all.insert("item_id".to_owned(), self.items[at].value["id"].clone());
        if let Value::Object(fields) = fields {
            all.extend(fields);
        }
        self.frame(event, all.into())
    }

    fn add(&mut self, of: String, kind: Kind, value: Value, told: &mut Vec<Frame>) -> usize {
        let at = self.items.len();
        told.push(self.frame("response.output_item.added", json!({"output_index": at, "item": value})));
        self.items.push(Item { of, kind, value, is_done: false, was_said: true });
        at
    }

    fn find(&self, of: &str) -> Option<usize> {
        self.items.iter().rposition(|item| item.of == of && !item.is_done)
    }

    fn done(&mut self, at: usize, status: &str, told: &mut Vec<Frame>) {
        self.items[at].value["status"] = status.into();
        self.items[at].is_done = true;
        let item = self.items[at].value.clone();
        told.push(self.frame("response.output_item.done", json!({"output_index": at, "item": item})));
    }

    fn write(&mut self, what: What, told: &mut Vec<Frame>) {
        match what {
            What::TextStarted { message } => self.begin_text(message, told),
            What::Text { message, delta } => self.say(&message, &delta, told),
            What::TextEnded { message } => self.end_text(&message, told),
            What::ThoughtStarted { thought } => {
                let value = json!({"type": "reasoning", "id": format!("rs_{thought}"), "summary": [],
                    "content": [{"type": "reasoning_text", "text": ""}], "status": "in_progress"});
                self.add(thought, Kind::Thought, value, told);
            }
            What::Thought { thought, delta } => self.think(&thought, &delta, told),
            What::ThoughtSealed { thought, sealed } => {
                if let Some(item) = self.items.iter_mut().rfind(|item| item.of == thought) {
                    item.value["encrypted_content"] = sealed.into();
                }
            }
            What::ThoughtEnded { thought } => self.end_thought(&thought, told),
            What::CallStarted { call, name, .. } => self.begin_call(call, &name, told),
            What::Arguments { call, delta } => self.add_arguments(&call, &delta, told),
            What::CallEnded { call } => self.end_call(&call, told),
            What::CallAnswered { call, output, .. } => self.answer_call(&call, &output, told),
            // A stream cannot retract sent items; the response at the end omits them.
            What::Retracted { messages, calls } => {
                let gone = |item: &&mut Item| messages.contains(&item.of) || calls.contains(&item.of);
                self.items.iter_mut().filter(gone).for_each(|item| item.was_said = false);
            }
            _ => {}
        }
    }

    fn begin_text(&mut self, message: String, told: &mut Vec<Frame>) {
        let value = json!({"type": "message", "id": format!("msg_{message}"), "role": "assistant",
            "status": "in_progress", "content": []});
        let at = self.add(message, Kind::Message, value, told);
        let part = part("");
        self.items[at].value["content"] = json!([part]);
        told.push(self.about(at, "response.content_part.added", json!({"content_index": 0, "part": part})));
    }

    fn say(&mut self, message: &str, delta: &str, told: &mut Vec<Frame>) {
        if let Some(at) = self.find(message) {
            append(&mut self.items[at].value["content"][0]["text"], delta);
            let fields = json!({"content_index": 0, "delta": delta, "logprobs": []});
            told.push(self.about(at, "response.output_text.delta", fields));
        }
    }

    fn end_text(&mut self, message: &str, told: &mut Vec<Frame>) {
        if let Some(at) = self.find(message) {
            let part = self.items[at].value["content"][0].clone();
            let fields = json!({"content_index": 0, "text": part["text"], "logprobs": []});
            told.push(self.about(at, "response.output_text.done", fields));
            told.push(self.about(at, "response.content_part.done", json!({"content_index": 0, "part": part})));
            self.done(at, "completed", told);
        }
    }

    fn think(&mut self, thought: &str, delta: &str, told: &mut Vec<Frame>) {
        if let Some(at) = self.find(thought) {
            append(&mut self.items[at].value["content"][0]["text"], delta);
            let fields = json!({"content_index": 0, "delta": delta});
            told.push(self.about(at, "response.reasoning_text.delta", fields));
        }
    }

    fn end_thought(&mut self, thought: &str, told: &mut Vec<Frame>) {
        if let Some(at) = self.find(thought) {
            let fields = json!({"content_index": 0, "text": self.items[at].value["content"][0]["text"]});
            told.push(self.about(at, "response.reasoning_text.done", fields));
            self.done(at, "completed", told);
        }
    }

    fn begin_call(&mut self, call: String, name: &str, told: &mut Vec<Frame>) {
        let (kind, value) = match self.client_tools.contains(name) {
            true => {
                let id = told_id(own_id(&call), &self.head.run);
                let id = json!({"type": "function_call", "id": format!("fc_{call}"), "call_id": id});
                (Kind::ClientCall, id)
            }
            false => (
                Kind::ServerCall,
                json!({"type": "mcp_call", "id": format!("mcp_{call}"), "server_label": self.head.agent,
                "output": null, "error": null}),
            ),
        };
        let mut value = value;
        (value["name"], value["arguments"], value["status"]) = (name.into(), "".into(), "in_progress".into());
        let at = self.add(call, kind, value, told);
        if kind == Kind::ServerCall {
            told.push(self.about(at, "response.mcp_call.in_progress", json!({})));
        }
    }

    fn add_arguments(&mut self, call: &str, delta: &str, told: &mut Vec<Frame>) {
        if let Some(at) = self.find(call) {
            append(&mut self.items[at].value["arguments"], delta);
            let event = match self.items[at].kind {
                Kind::ClientCall => "response.function_call_arguments.delta",
                _ => "response.mcp_call_arguments.delta",
            };
            told.push(self.about(at, event, json!({"delta": delta})));
        }
    }

    /// Completes the arguments; the result of a tool on the server still follows.
    fn end_call(&mut self, call: &str, told: &mut Vec<Frame>) {
        let Some(at) = self.find(call) else { return };
        let arguments = self.items[at].value["arguments"].clone();
        match self.items[at].kind {
            Kind::ClientCall => {
                let fields = json!({"arguments": arguments, "name": self.items[at].value["name"]});
                told.push(self.about(at, "response.function_call_arguments.done", fields));
                self.done(at, "completed", told);
            }
            _ => told.push(self.about(at, "response.mcp_call_arguments.done", json!({"arguments": arguments}))),
        }
    }

    fn answer_call(&mut self, call: &str, output: &ToolOutput, told: &mut Vec<Frame>) {
        let Some(at) = self.find(call) else { return };
        let (field, event, status) = match output.is_error() {
            true => ("error", "response.mcp_call.failed", "failed"),
            false => ("output", "response.mcp_call.completed", "completed"),
        };
        self.items[at].value[field] = output.to_text().into();
        told.push(self.about(at, event, json!({})));
        self.done(at, status, told);
    }

    /// Ends all open items, and adds an answer that no model produced.
    fn close(&mut self, ending: &Ending) -> Vec<Frame> {
        let mut told = Vec::new();
        for said in self.speech.close() {
            self.take(said, &mut told);
        }
        for at in 0..self.items.len() {
            if !self.items[at].is_done {
                self.done(at, "incomplete", &mut told);
            }
        }
        if let Ending::Finished { answer, .. } = ending {
            let said = |item: &Item| item.kind == Kind::Message && item.value["content"][0]["text"] == **answer;
            let last = self.items.iter().rfind(|item| item.kind == Kind::Message && item.was_said);
            if !answer.is_empty() && !last.is_some_and(said) {
                let id = format!("{}-answer", self.head.run);
                self.begin_text(id.clone(), &mut told);
                self.say(&id, answer, &mut told);
                self.end_text(&id, &mut told);
            }
        }
        told
    }

    fn take(&mut self, said: Said, told: &mut Vec<Frame>) {
        if let What::AnswerEnded { usage, .. } = &said.what {
            self.usage += *usage;
        }
        if said.lane.is_none() {
            self.write(said.what, told);
        }
    }
}

impl Teller for Told {
    type Told = Frame;

    fn start(&mut self) -> Vec<Frame> {
        let response = self.head("in_progress");
        let created = self.frame("response.created", json!({"response": response}));
        vec![created, self.frame("response.in_progress", json!({"response": response}))]
    }

    fn event(&mut self, event: &Event) -> Vec<Frame> {
        let mut told = Vec::new();
        for said in self.speech.event(event) {
            self.take(said, &mut told);
        }
        told
    }

    fn end(&mut self, ending: &Ending) -> Vec<Frame> {
        let mut told = self.close(ending);
        let response = self.response(ending);
        let event = match response["status"].as_str() {
            Some("completed") => "response.completed",
            Some("incomplete") => "response.incomplete",
            _ => "response.failed",
        };
        told.push(self.frame(event, json!({"response": response})));
        told
    }
}

fn part(text: &str) -> Value {
    json!({"type": "output_text", "text": text, "annotations": [], "logprobs": []})
}

fn append(text: &mut Value, delta: &str) {
    if let Value::String(text) = text {
        text.push_str(delta);
    }
}

fn usage(usage: &Usage) -> Value {
    json!({
        "input_tokens": usage.prompt(),
        "input_tokens_details": {"cached_tokens": usage.cached, "cache_write_tokens": usage.cache_write},
        "output_tokens": usage.output,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning},
        "total_tokens": usage.total(),
    })
}
