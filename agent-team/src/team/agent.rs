//! A team as one agent.

use std::fmt;

use agent_core::{
    Effect, Error, ErrorKind, Result, Tool, ToolOptions, ToolOutput, ToolRequest, ToolSpec, async_trait, run::Ask,
};
use agent_exec::{Agent, AgentBuilder};
use futures::StreamExt;
use serde_json::json;

use super::Team;
use crate::{
    end::{TeamEnd, TeamEndReason, TeamQuestion},
    event::{TeamChange, TeamEvent, TeamEventKind},
    request::TeamRequest,
};

impl Team {
    /// Returns the builder of an agent whose answer to a message is the result of the team: for protocols
    /// and callers that know agents, for use as a sub-agent, and for evaluation.
    ///
    /// Each session of the agent has a session of the team, `<session>:team`. Questions of members are
    /// questions of the agent's run, with the member's name in their payload. The members' messages and
    /// tasks are the tool's progress.
    ///
    /// ```
    /// use agent_core::testing::{ScriptedModel, Turn};
    /// use agent_exec::Agent;
    /// use agent_team::{Team, pattern::Sequence};
    ///
    /// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
    /// let writer = Agent::builder("writer", ScriptedModel::new([Turn::text("a draft")])).build()?;
    /// let agent = Team::builder("post").pattern(Sequence::new([writer])?).build()?.to_agent().build()?;
    /// let end = agent.run("Write a post.").await?.finished().expect("it finishes");
    /// assert_eq!(end.answer, "a draft");
    /// # Ok::<(), agent_core::Error>(()) }).unwrap();
    /// ```
    pub fn to_agent(&self) -> AgentBuilder {
        let agent = Agent::of_tool(self.name(), TeamRunTool(self.clone())).store(self.store().clone());
        match &self.0.drain {
            Some(drain) => agent.drain(drain),
            None => agent,
        }
    }
}

/// Tool that runs a team on a message.
struct TeamRunTool(Team);

#[async_trait]
impl Tool for TeamRunTool {
    fn spec(&self) -> ToolSpec {
        let message = json!({"type": "string", "description": "The task of the team."});
        let parameters = json!({
            "type": "object", "properties": {"message": message}, "required": ["message"], "additionalProperties": false,
        });
        ToolSpec::new("team", format!("Has the team '{}' work on a task.", self.0.name()), parameters)
    }

    fn options(&self) -> ToolOptions {
        // The team's run is found again by the key of the call.
        ToolOptions::default().effect(Effect::Idempotent)
    }

    async fn call(&self, req: ToolRequest) -> Result<ToolOutput> {
        let ids = req.cx.ids();
        let text = req.args["message"].as_str().unwrap_or_default();
        let session = format!("{}:team", ids.session);
        let run = format!("{}-{}", ids.run_id, req.cx.step());
        let first = TeamRequest::user(text).session(session.clone()).run_id(run).streaming(true);
        let first = first.budget(req.cx.budget());
        let mut request = TeamRequest { user: ids.user.clone(), ..first };
        loop {
            let end = self.run(&req, request).await?;
            if end.reason != TeamEndReason::Waiting {
                return output(end);
            }
            request = TeamRequest::resume(session.clone()).streaming(true).budget(req.cx.budget());
            for asked in &end.questions {
                let (id, answer) = asked.question.answer(ask(&req, asked)?);
                request = request.answer(asked.member.clone(), id, answer);
            }
        }
    }
}

impl TeamRunTool {
    async fn run(&self, req: &ToolRequest, request: TeamRequest) -> Result<TeamEnd> {
        let mut run = self.0.start(request);
        while let Some(event) = run.next().await {
            if let TeamEvent { kind: TeamEventKind::Change(change), member, .. } = &event
                && is_told(change)
            {
                req.progress(json!({"member": member, "change": change}));
            }
        }
        run.await
    }
}

/// True for changes that a person who watches wants to see.
fn is_told(change: &TeamChange) -> bool {
    matches!(
        change,
        TeamChange::Spawned { .. }
            | TeamChange::Removed { .. }
            | TeamChange::Task { .. }
            | TeamChange::Sent { .. }
            | TeamChange::TurnBegan { .. }
            | TeamChange::TurnEnded { .. }
    )
}

/// Asks a member's question in the run of the agent, and returns the answer.
fn ask(req: &ToolRequest, asked: &TeamQuestion) -> Result<serde_json::Value> {
    let mut payload = asked.question.payload.clone();
    match payload.as_object_mut() {
        Some(fields) => drop(fields.insert("member".to_owned(), json!(asked.member))),
        None => payload = json!({"member": asked.member, "question": payload}),
    }
    let nonce = format!("{}/{}", asked.member, asked.question.id);
    Ok(req.ask_with(Ask::new(&asked.question.kind, payload).nonce(nonce))?.value)
}

fn output(end: TeamEnd) -> Result<ToolOutput> {
    match end.reason {
        TeamEndReason::Failed(error) => Err(Error::tool(error)),
        TeamEndReason::Paused | TeamEndReason::Cancelled => {
            Err(Error::new(ErrorKind::Cancelled, "the run of the team was suspended"))
        }
        reason if end.text.is_empty() => Err(Error::tool(format!("the team ended without a result: {reason}"))),
        _ => Ok(ToolOutput::text(end.text)),
    }
}

impl fmt::Debug for TeamRunTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("TeamRunTool").field(&self.0.name()).finish()
    }
}
