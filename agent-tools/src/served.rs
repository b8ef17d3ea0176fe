//! [`RemoteAgent`].

use std::{sync::Arc, time::Duration};

use agent_core::{
    Caps, ExitReason, Part, Result, Tool, ToolOptions, ToolOutput, ToolRequest, ToolSpec, async_trait,
    engine::{ServedEnd, ServedRun},
    run::{RunIds, SessionId},
    tool::Effect,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::schema;

#[derive(Deserialize, JsonSchema)]
struct ServedArgs {
    /// The task, complete in itself.
    message: String,
}

/// Remote agent as a tool that takes a `message`. Under an engine that dispatches runs to other
/// processes, such as Restate, the message starts a run of that agent in a process that serves it.
/// The caller's run waits for the end of that run, and may be suspended meanwhile.
///
/// * Each agent of a session has its own conversation with the remote agent, which continues with
///   each call: the session `SESSION/AGENT_ID/NAME`. If the caller's session belongs to a user (see
///   [`SessionId`]), so does the remote one. The caller's journal records a running call as a
///   decision `CALL/served`: `{agent, service, session, run}`.
/// * The remote run is cancelled with its caller. Its questions belong to its own session, and are
///   answered there.
/// * The result is the answer of the remote run; its value has the fields `agent`, `session`,
///   `run`, `answer`, `reason` (why the run ended), `usage`, and `value`, the answer as JSON, if a
///   tool produced it. The usage counts against the budgets of the caller's run once the remote run
///   has ended, for any reason; until then, its own [`caps`](Self::caps) apply.
/// * A remote run that fails or is cancelled makes the call fail.
///
/// `Agent::of_tool("travel", RemoteAgent::new("travel"))` of `agent-exec` turns the tool into a
/// sub-agent.
///
/// ```
/// use agent_core::Tool;
/// use agent_tools::{RemoteAgent, ToolExt};
///
/// let travel = RemoteAgent::new("travel").service("Travel").described("Books trips.");
/// assert_eq!(travel.spec().name, "travel");
/// ```
#[derive(Clone, Debug)]
pub struct RemoteAgent {
    agent: Arc<str>,
    service: Option<Arc<str>>,
    caps: Option<Caps>,
    timeout: Option<Duration>,
    max_depth: Option<u32>,
}

impl RemoteAgent {
    /// Creates the tool for the remote agent of this name, which is the tool's name too.
    pub fn new(agent: impl Into<Arc<str>>) -> Self {
        Self { agent: agent.into(), service: None, caps: None, timeout: None, max_depth: None }
    }

    /// Sets the engine's name of the service that runs the agent. Default: the caller's service.
    #[must_use]
    pub fn service(mut self, service: impl Into<Arc<str>>) -> Self {
        self.service = Some(service.into());
        self
    }

    /// Sets the caps of one remote run, including its sub-agents. Default: only the remote agent's
    /// own limits.
    #[must_use]
    pub fn caps(mut self, caps: Caps) -> Self {
        self.caps = Some(caps);
        self
    }

    /// Sets the timeout of a call, which also elapses while the caller is suspended; then the
    /// remote run is cancelled and the call fails. The caller's own deadlines only elapse while a
    /// process drives it. Default: no timeout.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Sets the maximum number of nested remote calls above a run. Default: 5.
    #[must_use]
    pub fn max_depth(mut self, depth: u32) -> Self {
        self.max_depth = Some(depth);
        self
    }

    /// Returns the remote run that a call starts.
    fn run(&self, req: &ToolRequest, message: String) -> ServedRun {
        let ids = req.cx.ids();
        let session = session_below(ids, &self.agent);
        let mut run = ServedRun::new(self.agent.clone(), session, req.idempotency_key(), message, ids);
        (run.service, run.caps, run.timeout) = (self.service.clone(), self.caps, self.timeout);
        run.max_depth = self.max_depth.unwrap_or(run.max_depth);
        run
    }
}

#[async_trait]
impl Tool for RemoteAgent {
    fn spec(&self) -> ToolSpec {
        let description = format!("Hands a task to the agent '{}' and returns its answer.", self.agent);
        ToolSpec::new(&*self.agent, description, schema::of_arguments::<ServedArgs>())
    }

    fn options(&self) -> ToolOptions {
        // A repeated call addresses the same run.
        ToolOptions::default().effect(Effect::Idempotent).delegates()
    }

    async fn call(&self, req: ToolRequest) -> Result<ToolOutput> {
        let ServedArgs { message } = req.parse()?;
        let run = self.run(&req, message);
        let ServedRun { agent, service, session, run: id, .. } = &run;
        let called = json!({"agent": agent, "service": service, "session": session, "run": id});
        req.decide("served", async { Ok(called) }).await?;
        told(&run, req.served(&run).await?)
    }
}

/// Returns the session that an agent of the caller's session has with another agent. If the
/// caller's session belongs to a user, so does this one, and user-scoped listings include it.
fn session_below(caller: &RunIds, agent: &str) -> String {
    let name = format!("{}/{agent}", caller.agent_id);
    match SessionId::parse(&caller.session) {
        Some(session) => session.below(&name).to_string(),
        None => format!("{}/{name}", caller.session),
    }
}

/// Converts the end of the remote run to the tool's result.
fn told(run: &ServedRun, ServedEnd { answer, reason, usage, .. }: ServedEnd) -> Result<ToolOutput> {
    let (agent, reason) = (&run.agent, reason?);
    let note = match reason {
        _ if answer.is_empty() => Some(format!("[Agent '{agent}' gave no answer: {reason}.]")),
        ExitReason::Text | ExitReason::Tool(_) | ExitReason::Verdict => None,
        _ => Some(format!("[Agent '{agent}' ended before it was done: {reason}.]")),
    };
    let texts: Vec<_> = Some(answer.clone()).filter(|answer| !answer.is_empty()).into_iter().chain(note).collect();
    let mut value = json!({
        "agent": agent, "session": run.session, "run": run.run, "answer": answer, "reason": reason.to_string(),
        "usage": usage,
    });
    if matches!(reason, ExitReason::Tool(_))
        && let Ok(given) = serde_json::from_str::<Value>(&answer)
    {
        value["value"] = given;
    }
    Ok(ToolOutput::value(value).shown_as(vec![Part::text(texts.join("\n\n"))]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_session_with_another_agent_is_one_of_the_same_user() {
        let below = |session: &str| session_below(&RunIds::root("clerk", session), "travel");
        assert_eq!(below("garden"), "garden/clerk/travel", "a session of nobody");
        let garden = SessionId::new("ada/b", "garden");
        let first = below(&garden.to_string());
        assert_eq!(SessionId::parse(&first), Some(SessionId::new("ada/b", "garden/clerk/travel")));
        let second = session_below(&RunIds::root("travel", &*first), "hotel");
        assert_eq!(SessionId::parse(&second), Some(SessionId::new("ada/b", "garden/clerk/travel/travel/hotel")));
    }
}
