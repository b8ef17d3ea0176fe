//! Encoding of a run as task events.

use agent::Event;
use serde_json::{Value, json};

use super::{
    rpc,
    task::{Names, artifact, status_of},
    version::Version,
};
use crate::{
    follow::Teller,
    speech::{Ending, MessageStream, What},
    sse::Frame,
};

/// Form of the events of a stream.
#[derive(Debug)]
pub(super) struct Framing {
    pub(super) version: Version,
    /// Id of the JSON-RPC request, in whose responses the events are.
    pub(super) request: Option<Value>,
}

impl Framing {
    fn frame(&self, event: Value) -> Frame {
        let event = self.version.payload(event);
        match &self.request {
            Some(request) => Frame::json(&rpc::reply(request, Ok(event))),
            None => Frame::json(&event),
        }
    }
}

/// Encoder of a run as task events. The answer is one artifact: the text of a later step, or of a
/// repeated one, replaces the earlier text.
#[derive(Debug)]
pub(super) struct Told {
    framing: Framing,
    names: Names,
    speech: MessageStream,
    said: String,
    is_fresh: bool,
}

impl Told {
    /// Creates an encoder for the task of these names.
    pub(super) fn new(framing: Framing, names: Names) -> Self {
        Self { framing, names, speech: MessageStream::default(), said: String::new(), is_fresh: true }
    }

    fn frame(&self, kind: &str, fields: Value) -> Frame {
        let mut result = json!({"kind": kind, "taskId": self.names.task, "contextId": self.names.context});
        if let (Some(result), Value::Object(fields)) = (result.as_object_mut(), fields) {
            result.extend(fields);
        }
        self.framing.frame(result)
    }

    fn piece(&mut self, text: &str) -> Frame {
        let append = !std::mem::take(&mut self.is_fresh);
        if !append {
            self.said.clear();
        }
        self.said.push_str(text);
        self.frame("artifact-update", json!({"artifact": artifact(text), "append": append, "lastChunk": false}))
    }
}

impl Teller for Told {
    type Told = Frame;

    fn start(&mut self) -> Vec<Frame> {
        let Names { task, context } = &self.names;
        let task = json!({"kind": "task", "id": task, "contextId": context, "status": {"state": "working"}});
        vec![self.framing.frame(task)]
    }

    fn event(&mut self, event: &Event) -> Vec<Frame> {
        let mut told = Vec::new();
        for said in self.speech.event(event).into_iter().filter(|said| said.lane.is_none()) {
            match said.what {
                What::TextStarted { .. } => self.is_fresh = true,
                What::Text { delta, .. } => told.push(self.piece(&delta)),
                _ => {}
            }
        }
        told
    }

    fn end(&mut self, ending: &Ending) -> Vec<Frame> {
        let mut told = Vec::new();
        if let Ending::Finished { answer, .. } = ending
            && *answer != self.said
        {
            self.is_fresh = true;
            told.push(self.piece(answer));
        }
        told.push(self.frame("status-update", json!({"status": status_of(ending, &self.names), "final": true})));
        told
    }
}
