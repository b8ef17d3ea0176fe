//! Prompt turn: from a message to the agent's answer.

use agent_core::{
    Error, ErrorKind, Result, ToolOutput, ToolRequest,
    message::{Media, Part},
};
use serde_json::{Value, json};

use super::{
    Inner,
    elicitation::{self, AskInput},
    files,
    link::Incoming,
    permission,
    session::Session,
    wire::{AskPermission, INVALID, Prompted},
};

/// Running turn.
pub(super) struct Turn {
    /// Id of the prompt request.
    pub(super) request: u64,
    /// Answer text so far.
    said: String,
    /// Images of the answer.
    images: Vec<Part>,
    /// Pending request to a person.
    pub(super) asked: Option<Asked>,
}

/// Request that the agent waits for.
pub(super) struct Asked {
    pub(super) id: Value,
    pub(super) ask: Wanted,
}

/// Request of an agent to a person.
pub(super) enum Wanted {
    Permission(AskPermission),
    Input(AskInput),
}

impl Wanted {
    /// Returns the response once a rule or a person has decided.
    fn decide(&self, agent: &Inner, req: &ToolRequest) -> Result<Value> {
        match self {
            Self::Permission(ask) => Ok(json!({"outcome": permission::decide(agent, req, ask)?})),
            Self::Input(ask) => elicitation::answer(agent, req, ask),
        }
    }

    /// Returns the response of a person who is no longer asked.
    pub(super) fn cancelled(&self) -> Value {
        match self {
            Self::Permission(_) => json!({"outcome": {"outcome": "cancelled"}}),
            Self::Input(_) => json!({"action": "cancel"}),
        }
    }
}

impl Turn {
    pub(super) fn new(request: u64) -> Self {
        Self { request, said: String::new(), images: Vec::new(), asked: None }
    }
}

impl Session {
    /// Drives the current turn to its end, or to a question that suspends the run; another call
    /// then resumes the turn.
    pub(super) async fn turn(&mut self, agent: &Inner, req: &ToolRequest) -> Result<ToolOutput> {
        let ended = || Error::new(ErrorKind::Unexpected, "no turn is under way");
        loop {
            let turn = self.turn.as_mut().ok_or_else(ended)?;
            if let Some(asked) = &turn.asked {
                let response = asked.ask.decide(agent, req)?;
                let id = asked.id.clone();
                turn.asked = None;
                self.link().answer(&id, Ok(response)).await?;
                continue;
            }
            let own = turn.request;
            match self.next().await? {
                Incoming::Answer { id, result } if id == own => {
                    let turn = self.turn.take().ok_or_else(ended)?;
                    let result = result.map_err(|e| self.link().refused(&e))?;
                    let prompted: Prompted = self.link().read(result)?;
                    return self.ended(agent, &turn, &prompted);
                }
                Incoming::Answer { .. } => {}
                Incoming::Notice { method, params } => {
                    if method == "session/update" && params["sessionId"] == *self.id {
                        self.update(agent, req, &params["update"])?;
                    }
                }
                Incoming::Request { id, method, params } => self.serve(agent, id, &method, params).await?,
            }
        }
    }

    /// Emits progress events of the run, and appends the agent's message to the answer.
    fn update(&mut self, agent: &Inner, req: &ToolRequest, update: &Value) -> Result<()> {
        let text = || update["content"]["text"].as_str().filter(|text| !text.is_empty());
        match update["sessionUpdate"].as_str().unwrap_or_default() {
            "agent_message_chunk" => {
                let Some(turn) = &mut self.turn else { return Ok(()) };
                if let Some(image) = image(&update["content"]).filter(|_| turn.images.len() < MOST_IMAGES) {
                    turn.images.push(image);
                }
                let Some(text) = text() else { return Ok(()) };
                if turn.said.len() + text.len() > agent.answer {
                    let message = format!("the agent '{}' answers with more than {} bytes", agent.name, agent.answer);
                    return Err(Error::new(ErrorKind::Limit, message));
                }
                turn.said.push_str(text);
                req.progress(json!({"text": text}));
            }
            "agent_thought_chunk" => {
                if let Some(text) = text() {
                    req.progress(json!({"thought": text}));
                }
            }
            "tool_call" | "tool_call_update" => req.progress(json!({"tool_call": update})),
            "plan" => req.progress(json!({"plan": update["entries"]})),
            "usage_update" => req.progress(json!({"context": {"used": update["used"], "size": update["size"]}})),
            _ => {}
        }
        Ok(())
    }

    /// Serves a request of the agent.
    async fn serve(&mut self, agent: &Inner, id: Value, method: &str, params: Value) -> Result<()> {
        if params["sessionId"] != *self.id {
            return self.link().answer(&id, Err((INVALID, "there is no such session".to_owned()))).await;
        }
        #[cfg(feature = "sandbox")]
        if let (true, Some(terminals)) = (method.starts_with("terminal/"), &mut self.terminals) {
            return match terminals.serve(&id, method, params).await {
                Some(answer) => self.link().answer(&id, answer).await,
                None => Ok(()),
            };
        }
        let result = match (method, &agent.workspace) {
            ("session/request_permission", _) => {
                match (serde_json::from_value::<AskPermission>(params), &mut self.turn) {
                    (Ok(ask), Some(turn)) => {
                        turn.asked = Some(Asked { id, ask: Wanted::Permission(ask) });
                        return Ok(());
                    }
                    _ => Err((INVALID, "it is no request for a permission".to_owned())),
                }
            }
            ("elicitation/create", _) => match (elicitation::read(params), &mut self.turn) {
                (Some(ask), Some(turn)) => {
                    turn.asked = Some(Asked { id, ask: Wanted::Input(ask) });
                    return Ok(());
                }
                _ => Err((INVALID, "it is no request for input in a form or at an address".to_owned())),
            },
            ("fs/read_text_file", Some(workspace)) => files::read(workspace, params).await,
            ("fs/write_text_file", Some(workspace)) if workspace.files().1 => files::write(workspace, params).await,
            _ => return self.link().refuse(&id, method).await,
        };
        self.link().answer(&id, result).await
    }

    fn ended(&self, agent: &Inner, turn: &Turn, prompted: &Prompted) -> Result<ToolOutput> {
        let stop_reason = &*prompted.stop_reason;
        let note = match stop_reason {
            "end_turn" => None,
            "refusal" | "cancelled" => {
                let how = if stop_reason == "refusal" { "refused to answer" } else { "was cancelled" };
                let message = format!("the agent '{}' {how}", agent.name);
                return Err(Error::tool(message).with_context("stop_reason", stop_reason));
            }
            other => Some(format!("[The agent stopped before it was done: {}]", crate::text::cut(other, 100))),
        };
        let shown: Vec<_> =
            [Some(turn.said.clone()).filter(|said| !said.is_empty()), note].into_iter().flatten().collect();
        let mut value = json!({"answer": turn.said, "session": self.id, "stop_reason": stop_reason});
        if let Some(used) = prompted.used() {
            value["usage"] = used;
        }
        let mut parts = vec![Part::text(shown.join("\n\n"))];
        parts.extend(turn.images.iter().cloned());
        Ok(ToolOutput::value(value).shown_as(parts))
    }
}

/// Maximum of images in an answer; the maximum message size bounds each.
const MOST_IMAGES: usize = 20;

fn image(content: &Value) -> Option<Part> {
    let (data, mime) = (content["data"].as_str()?, content["mimeType"].as_str()?);
    (content["type"] == "image").then(|| Part::Image(Media::base64(data, mime)))
}
