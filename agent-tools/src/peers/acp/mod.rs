//! [`AcpAgent`]: local program that is an agent.

mod builder;
mod elicitation;
mod files;
mod link;
mod permission;
mod session;
mod settings;
mod shelf;
#[cfg(feature = "sandbox")]
mod terminals;
mod turn;
mod wire;

use std::{fmt, ops::Deref, sync::Arc};

use agent_core::{Effect, ErrorKind, Result, Tool, ToolOptions, ToolOutput, ToolRequest, ToolSpec, async_trait};

pub use self::{
    builder::AcpBuilder,
    elicitation::ACP_ELICITATION,
    permission::{ACP_PERMISSION, Permission, PermissionRequest},
};
use self::{session::Session, settings::Settings, shelf::Shelf};
use super::{
    Args, Conversation, Sending,
    sending::{Found, Next},
};
use crate::Stdio;

/// Agent that speaks the Agent Client Protocol over its standard input and output, as a tool with
/// the argument `message`.
///
/// The first message of a conversation starts the program, which is kept for some time after its
/// answer, so that the conversation continues in the same process. A later message, or another
/// process, [loads](https://agentclientprotocol.com) the session, if the agent supports that. [The
/// module](crate::peers) describes the mapping to the run. In addition:
///
/// * The agent reads and writes files of the [`workspace`](AcpBuilder::workspace) through this
///   process, if one is given; paths that leave it are refused. The agent runs commands in the
///   given [sandbox](AcpBuilder::terminals), as terminals. Direct actions of the program are not
///   visible here: start a program that must be confined in a sandbox.
/// * The call may attach files of the workspace: images if the agent accepts them, all others by
///   their addresses.
/// * Images in the agent's answer are part of the result.
/// * The agent requests [permissions](AcpBuilder::permissions). A question of kind
///   [`ACP_PERMISSION`] suspends the run; meanwhile the program waits, up to the time that
///   [`keep`](AcpBuilder::keep) sets. If the program ends before the answer, the call is in doubt.
/// * The agent requests input of a person, in a form or at an address: a question of kind
///   [`ACP_ELICITATION`], for which the program waits in the same manner.
///
/// The [value](ToolOutput::as_value) of the result has `answer`, `session` and `stop_reason`, and
/// `usage` if the agent reports the usage of the turn.
///
/// ```
/// use agent_tools::{Stdio, peers::AcpAgent};
///
/// let coder = AcpAgent::builder(Stdio::new("npx").args(["-y", "some-agent", "--acp"]).pass("PATH")).build()?;
/// # let _ = coder;
/// # Ok::<(), agent_core::Error>(())
/// ```
#[derive(Clone)]
pub struct AcpAgent(Arc<Inner>);

struct Inner {
    settings: Settings,
    /// Sessions whose turn waits for a person, by call.
    waiting: Shelf,
    /// Idle sessions, by id.
    idle: Shelf,
}

impl Deref for Inner {
    type Target = Settings;

    fn deref(&self) -> &Settings {
        &self.settings
    }
}

impl AcpAgent {
    /// Returns a builder for the agent that this program is.
    pub fn builder(program: Stdio) -> AcpBuilder {
        AcpBuilder::new(program)
    }
}

/// Call that can proceed.
enum Ready {
    Turn(Box<Session>),
    /// A person stated the answer.
    Known(ToolOutput),
}

impl Inner {
    /// Returns the session whose turn this call is.
    async fn ready(&self, req: &ToolRequest, args: &Args) -> Result<Ready> {
        if let Some(session) = self.waiting.take(&req.idempotency_key()) {
            return Ok(Ready::Turn(session));
        }
        let conversation = Conversation::of(&req.cx, &self.name);
        let mut open = None;
        let begin = async {
            let session = self.open(conversation.id()).await?;
            let id = session.id.clone();
            open = Some(session);
            Ok(id.into())
        };
        let id = req.decide("session", begin).await?;
        let sending = Sending { req, peer: &self.name, name: "prompt".to_owned() };
        let unknown = || async { Ok(if self.repeatable { Found::Nothing } else { Found::Unknown }) };
        if let Next::Said(value) = sending.next::<(), _>(unknown).await? {
            return Ok(Ready::Known(ToolOutput::value(value)));
        }
        let mut session = match open {
            Some(session) => session,
            // The session must know what the interrupted attempt did.
            None => match self.open(id.as_str().map(str::to_owned)).await {
                Err(e) if e.kind() == ErrorKind::SubAgentNotFound => self.open(conversation.id()).await?,
                opened => opened?,
            },
        };
        session.prompt(self, args).await?;
        Ok(Ready::Turn(session))
    }

    /// Opens a session that accepts a message: the one of this id, or a new one.
    async fn open(&self, id: Option<String>) -> Result<Box<Session>> {
        if let Some(mut session) = id.as_ref().and_then(|id| self.idle.take(id))
            && session.is_alive()
        {
            return Ok(session);
        }
        Session::open(self, id).await.map(Box::new)
    }
}

#[async_trait]
impl Tool for AcpAgent {
    fn spec(&self) -> ToolSpec {
        let about = "Hands a task to an agent that is a program and returns its answer.";
        super::spec(&self.0.name, about, self.0.workspace.is_some())
    }

    /// A call is re-entered after a crash: the journal records the sent message, so that it is not
    /// silently sent twice.
    fn options(&self) -> ToolOptions {
        ToolOptions::default().effect(Effect::Idempotent).serial()
    }

    async fn call(&self, req: ToolRequest) -> Result<ToolOutput> {
        let args: Args = req.parse()?;
        let agent = &self.0;
        let turn = Box::pin(async {
            let mut session = match agent.ready(&req, &args).await? {
                Ready::Turn(session) => session,
                Ready::Known(output) => return Ok(output),
            };
            match session.turn(agent, &req).await {
                Ok(output) => {
                    Conversation::of(&req.cx, &agent.name).set(&session.id);
                    agent.idle.put(session.id.clone(), session, agent.keep);
                    Ok(output)
                }
                Err(e) => {
                    if e.kind() == ErrorKind::Interrupted {
                        agent.waiting.put(req.idempotency_key(), session, agent.keep);
                    }
                    Err(e)
                }
            }
        });
        super::in_time(&agent.name, agent.time, turn).await
    }

    /// Ends the programs of idle and waiting sessions.
    async fn close(&self) -> Result<()> {
        self.0.idle.clear();
        self.0.waiting.clear();
        Ok(())
    }
}

impl fmt::Debug for AcpAgent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AcpAgent").field("program", &self.0.program).finish_non_exhaustive()
    }
}
