//! Chat Completions.

use agent::{ErrorKind, Event, ExitReason, Question, Usage};
use serde_json::{Value, json};

use super::{error, items::told_id};
use crate::{
    follow::Teller,
    speech::{Ending, MessageStream, What, own_id},
    sse::Frame,
};

/// Encoder of a run as chunks of a chat completion; also builds complete responses.
#[derive(Debug)]
pub(super) struct Chat {
    head: Head,
    speech: MessageStream,
    with_usage: bool,
    /// Text of each message.
    said: Vec<(String, String)>,
    thought: String,
    usage: Usage,
}

#[derive(Clone, Debug)]
pub(super) struct Head {
    pub(super) run: String,
    pub(super) agent: String,
    /// Creation time in seconds since 1970.
    pub(super) created: u64,
}

/// End of a response: the finish reason, and the calls that the client must make.
struct End {
    finish: &'static str,
    calls: Vec<Value>,
}

impl Chat {
    /// Creates an encoder; `with_usage` adds the usage at the end.
    pub(super) fn new(head: Head, with_usage: bool) -> Self {
        let (speech, said, thought) = (MessageStream::default(), Vec::new(), String::new());
        Self { head, speech, with_usage, said, thought, usage: Usage::default() }
    }

    /// Builds the complete response.
    ///
    /// # Errors
    /// The reason why the run has no answer.
    pub(super) fn whole(&self, ending: &Ending) -> Result<Value, (ErrorKind, String)> {
        let End { finish, calls } = self.ended(ending)?;
        let mut said: Vec<_> = self.said.iter().map(|(_, text)| text.as_str()).collect();
        said.extend(self.unsaid(ending));
        let content = if said.is_empty() { Value::Null } else { said.join("\n\n").into() };
        let mut message = json!({"role": "assistant", "content": content, "refusal": null});
        if !calls.is_empty() {
            message["tool_calls"] = calls.into();
        }
        if !self.thought.is_empty() {
            message["reasoning_content"] = self.thought.as_str().into();
        }
        let mut whole = self.frame("chat.completion");
        whole["choices"] = json!([{"index": 0, "message": message, "logprobs": null, "finish_reason": finish}]);
        whole["usage"] = usage(&self.usage);
        Ok(whole)
    }

    fn frame(&self, object: &str) -> Value {
        let Head { run, agent, created } = &self.head;
        json!({"id": format!("chatcmpl-{run}"), "object": object, "created": created, "model": agent})
    }

    fn chunk(&self, delta: &Value, finish: Option<&str>) -> Frame {
        let mut chunk = self.frame("chat.completion.chunk");
        chunk["choices"] = json!([{"index": 0, "delta": delta, "logprobs": null, "finish_reason": finish}]);
        Frame::json(&chunk)
    }

    fn ended(&self, ending: &Ending) -> Result<End, (ErrorKind, String)> {
        if let Ending::Interrupted(questions) = ending
            && ending.waits_for_client()
        {
            let calls = (0..).zip(questions).map(|(index, question)| call(index, question, &self.head.run)).collect();
            return Ok(End { finish: "tool_calls", calls });
        }
        if let Some(failure) = error::failure(ending, &self.head.run) {
            return Err(failure);
        }
        let finish = match ending {
            Ending::Finished { reason: ExitReason::Length, .. } => "length",
            Ending::Finished { reason: ExitReason::ContentFilter, .. } => "content_filter",
            _ => "stop",
        };
        Ok(End { finish, calls: Vec::new() })
    }

    /// Returns an answer that did not come from a model, but from a tool.
    fn unsaid<'a>(&self, ending: &'a Ending) -> Option<&'a str> {
        match ending {
            Ending::Finished { answer, .. } => {
                let is_said = self.said.last().is_some_and(|(_, text)| text == answer);
                (!is_said && !answer.is_empty()).then_some(answer)
            }
            _ => None,
        }
    }
}

impl Teller for Chat {
    type Told = Frame;

    fn start(&mut self) -> Vec<Frame> {
        vec![self.chunk(&json!({"role": "assistant", "content": ""}), None)]
    }

    fn event(&mut self, event: &Event) -> Vec<Frame> {
        let mut told = Vec::new();
        for said in self.speech.event(event) {
            if let What::AnswerEnded { usage, .. } = &said.what {
                self.usage += *usage;
            }
            if said.lane.is_some() {
                continue;
            }
            match said.what {
                What::TextStarted { message } => {
                    if !self.said.is_empty() {
                        told.push(self.chunk(&json!({"content": "\n\n"}), None));
                    }
                    self.said.push((message, String::new()));
                }
                What::Text { delta, .. } => {
                    told.push(self.chunk(&json!({"content": delta}), None));
                    if let Some((_, text)) = self.said.last_mut() {
                        text.push_str(&delta);
                    }
                }
                What::Thought { delta, .. } => {
                    told.push(self.chunk(&json!({"reasoning_content": delta}), None));
                    self.thought.push_str(&delta);
                }
                // A stream cannot retract sent text.
                What::Retracted { messages, .. } => self.said.retain(|(message, _)| !messages.contains(message)),
                _ => {}
            }
        }
        told
    }

    fn end(&mut self, ending: &Ending) -> Vec<Frame> {
        let mut told = Vec::new();
        match self.ended(ending) {
            Ok(End { finish, calls }) => {
                if let Some(answer) = self.unsaid(ending) {
                    let answer = if self.said.is_empty() { answer.to_owned() } else { format!("\n\n{answer}") };
                    told.push(self.chunk(&json!({"content": answer}), None));
                }
                told.extend(calls.into_iter().map(|call| self.chunk(&json!({"tool_calls": [call]}), None)));
                told.push(self.chunk(&json!({}), Some(finish)));
                if self.with_usage {
                    let mut last = self.frame("chat.completion.chunk");
                    last["choices"] = json!([]);
                    last["usage"] = usage(&self.usage);
                    told.push(Frame::json(&last));
                }
            }
            Err((kind, message)) => {
                told.push(Frame::json(&json!({"error": error::in_stream(kind, &message)})));
            }
        }
        told.push(Frame::done());
        told
    }
}

/// Returns a call that the client must make.
fn call(index: usize, question: &Question, run: &str) -> Value {
    let id = own_id(question.id.split('/').next().unwrap_or_default());
    let function = json!({"name": question.payload["tool"], "arguments": question.payload["arguments"].to_string()});
    json!({"index": index, "id": told_id(id, run), "type": "function", "function": function})
}

fn usage(usage: &Usage) -> Value {
    json!({
        "prompt_tokens": usage.prompt(),
        "completion_tokens": usage.output,
        "total_tokens": usage.total(),
        "prompt_tokens_details": {"cached_tokens": usage.cached},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning},
    })
}
