//! Messages that are not sent twice in silence.

use agent_core::{Error, Result, ToolRequest, run::new_id, tool::Doubt};
use serde_json::{Value, json};

/// A message to a peer that is about to be sent, or was sent by an earlier attempt at the call.
///
/// That an attempt sends is a decision of the run, and durable before it sends. An attempt that finds another's decision cannot
/// know whether the peer has the message.
pub(super) struct Sending<'a> {
    pub(super) req: &'a ToolRequest,
    /// The peer, as a person knows it.
    pub(super) peer: &'a str,
    /// Which of the call's messages it is.
    pub(super) name: String,
}

/// What is to be done about a message.
pub(super) enum Next<T> {
    /// It is sent now.
    Send,
    /// An earlier attempt sent it, with this result.
    Found(T),
    /// An earlier attempt sent it, and a person says what came of it.
    Said(Value),
}

impl Sending<'_> {
    /// Says what to do. `find` looks for what an earlier attempt sent; where it finds nothing and knows nothing, a person is asked.
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

/// What is known of a message that an earlier attempt was about to send.
pub(super) enum Found<T> {
    /// The peer has it.
    #[cfg_attr(not(feature = "a2a"), allow(dead_code, reason = "a program that has ended has nothing"))]
    It(T),
    /// The peer does not have it, or does nothing more if it comes again.
    Nothing,
    /// Nobody knows.
    Unknown,
}
