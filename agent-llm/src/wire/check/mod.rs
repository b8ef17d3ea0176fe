//! Request check: repairs requests that a provider would reject, in the outgoing request and never
//! in the stored conversation.
//!
//! [`Rules`] describe a provider's restrictions as data. A request that violates none of them is
//! borrowed and encoded unchanged. The repair of a message depends only on earlier messages, as far
//! as the rule permits, so that prompt caches keep their prefix.

mod calls;
mod describe;
mod ids;
mod media;
mod messages;
mod names;
mod refusals;
mod rules;
#[cfg(feature = "images")]
mod scale;
mod schemas;
mod sizes;
mod tools;
mod turns;

use std::borrow::Cow;

use agent_core::{ModelRequest, Result, message::Origin};

use self::messages::Messages;
pub(super) use self::{
    refusals::Learned,
    rules::Rules,
    tools::{ToolText, check_tools, text_of},
    turns::without_thinking,
};

/// Returns the request in a form that the provider of `origin` accepts.
///
/// # Errors
/// [`InvalidRequest`](agent_core::ErrorKind::InvalidRequest) for a violation that cannot be
/// repaired, with the rule and the remedy.
pub(super) fn checked<'a>(req: &'a ModelRequest, origin: &Origin, rules: &Rules) -> Result<Cow<'a, ModelRequest>> {
    tools::check_count(&req.tools, rules)?;
    let mut messages = Messages::new(&req.messages);
    media::repair(&mut messages, origin, &rules.media);
    turns::drop_blanks(&mut messages, rules);
    calls::repair(&mut messages, origin);
    names::repair(&mut messages, &req.tools);
    ids::repair(&mut messages, origin, rules.ids);
    turns::pair(&mut messages, rules);
    let stand_ins = turns::stand_in_tools(req, rules);
    let repaired = messages.finish()?;
    if repaired.is_none() && stand_ins.is_none() {
        return Ok(Cow::Borrowed(req));
    }
    let mut req = req.clone();
    req.messages = repaired.unwrap_or(req.messages);
    req.tools = stand_ins.unwrap_or(req.tools);
    Ok(Cow::Owned(req))
}

#[cfg(test)]
mod tests;
