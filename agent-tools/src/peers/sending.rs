//! Messages that are not silently sent twice.

use agent_core::{Error, Result, ToolRequest, run::new_id, tool::Doubt};
use serde_json::{Value, json};

/// Message to a peer that is about to be sent, or that an earlier attempt at the call sent.
///
/// The intention to send is a decision of the run, durable before the message goes out. An attempt
/// that finds an earlier attempt's decision cannot know whether the peer received the message.
pub(super) struct Sending<'a> {
    pub(super) req: &'a ToolRequest,
    /// Name of the peer for people.
    pub(super) peer: &'a str,
    /// Name of the message within the call.
    pub(super) name: String,
}

/// Next action for a message.
pub(super) enum Next<T> {
    /// Send it now.
    Send,
    /// An earlier attempt sent it, with this result.
    Found(T),
    /// An earlier attempt sent it, and a person stated its outcome.
    Said(Value),
}

impl Sending<'_> {
    /// Decides on the next action. `find` looks up the message of an earlier attempt; if its fate
    /// is unknown, a person is asked.
    pub(super) async fn next<T, F>(&self, find: impl Fn() -> F) -> Result<Next<T>>
    where
        F: Future<Output = Result<Found<T>>> + Send,
    {
        for attempt in 1u32.. {
            let own = Value::from(new_id());
            let name = format!("{}/{attempt}", self.name);
            let first = self.req.decide(&name, async { Ok(own.clone()) }).await?;
            if first == own {
                return Ok(Next::Send);
            }
            match find().await? {
                Found::It(found) => return Ok(Next::Found(found)),
                Found::Nothing => continue,
                Found::Unknown => {}
            }
            let payload = json!({
                "tool": *self.req.call.name, "peer": self.peer, "arguments": *self.req.args,
                "idempotency_key": self.req.idempotency_key(),
            });
            match self.req.ask_once(Doubt::KIND, first.as_str().unwrap_or_default(), payload)? {
                Doubt::Happened(value) => return Ok(Next::Said(value)),
                Doubt::DidNot => {}
                _ => {
                    let message = format!(
                        "An earlier attempt to reach '{}' was cut off. It is not known what came of it, and the message was \
                         not sent again.",
                        self.peer
                    );
                    return Err(Error::tool(message));
                }
            }
        }
        unreachable!("attempts are fewer than numbers")
    }
}

/// Fate of a message that an earlier attempt was about to send.
pub(super) enum Found<T> {
    /// The peer received it.
    #[cfg_attr(not(feature = "a2a"), allow(dead_code, reason = "a program that has ended has nothing"))]
    It(T),
    /// The peer did not receive it, or ignores duplicates.
    Nothing,
    /// Unknown.
    Unknown,
}
