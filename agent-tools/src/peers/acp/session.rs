//! Session with a program.

use std::time::Duration;

use agent_core::{Error, ErrorKind, Result};
use serde_json::{Value, json};
use tokio::{
    runtime::Handle,
    time::{timeout, timeout_at},
};

#[cfg(feature = "sandbox")]
use super::terminals::Terminals;
use super::{
    super::{
        Args,
        attached::{Attached, attached},
    },
    Inner,
    link::{Incoming, Link},
    turn::Turn,
    wire::{Initialized, NewSession, VERSION},
};

/// Time that a cancelled program has to end its turn.
const GRACE: Duration = Duration::from_secs(2);

/// Session with a program. Dropping it during a turn cancels the turn and ends the program.
pub(super) struct Session {
    pub(super) id: String,
    /// Present until drop.
    link: Option<Link>,
    pub(super) turn: Option<Turn>,
    /// True if the agent accepts images.
    takes_images: bool,
    #[cfg(feature = "sandbox")]
    pub(super) terminals: Option<Terminals>,
}

impl Session {
    /// Starts the program, and the session: the one of this id, or a new one.
    ///
    /// # Errors
    /// [`ErrorKind::SubAgentNotFound`] if an id is given and the agent cannot load that session.
    pub(super) async fn open(agent: &Inner, id: Option<String>) -> Result<Self> {
        let late = |_| {
            let message = format!("the agent '{}' did not start within {:?}", agent.name, agent.start);
            Err(Error::new(ErrorKind::Timeout, message))
        };
        timeout(agent.start, Self::begin(agent, id)).await.unwrap_or_else(late)
    }

    async fn begin(agent: &Inner, id: Option<String>) -> Result<Self> {
        let mut link = Link::start(&agent.name, &agent.program, agent.line)?;
        let (reads, writes) = agent.workspace.as_ref().map_or((false, false), |workspace| (true, workspace.files().1));
        let capabilities = json!({
            "fs": {"readTextFile": reads, "writeTextFile": writes}, "terminal": agent.has_terminals(),
            "elicitation": {"form": {}, "url": {}}, "session": {"configOptions": {"boolean": {}}},
        });
        let client = json!({"name": "agent-tools", "version": env!("CARGO_PKG_VERSION")});
        let hello = json!({"protocolVersion": VERSION, "clientCapabilities": capabilities, "clientInfo": client});
        let initialized: Initialized = link.call("initialize", hello).await?;
        if initialized.protocol_version != VERSION {
            return Err(link.garbled(&format!("it speaks version {}, not {VERSION}", initialized.protocol_version)));
        }
        if let Some(method) = &agent.method {
            link.call::<Value>("authenticate", json!({"methodId": method})).await?;
        }
        let servers: Vec<_> = agent.servers.iter().map(|(name, server)| server.as_acp(name)).collect();
        let mut session = json!({"cwd": agent.directory, "mcpServers": servers});
        let takes_images = initialized.agent_capabilities.prompt_capabilities.image;
        let of = |id, link| Self {
            id,
            link: Some(link),
            turn: None,
            takes_images,
            #[cfg(feature = "sandbox")]
            terminals: agent.sandbox.clone().map(Terminals::new),
        };
        let Some(id) = id else {
            let NewSession { session_id } = link.call("session/new", session).await?;
            set_options(agent, &mut link, &session_id).await?;
            return Ok(of(session_id, link));
        };
        let resumes = initialized.agent_capabilities.session_capabilities.resume.is_some();
        if !resumes && !initialized.agent_capabilities.load_session {
            let message = format!(
                "The agent '{}' is not running any more, and it cannot load the conversation {id}: call a new one.",
                agent.name
            );
            return Err(Error::new(ErrorKind::SubAgentNotFound, message));
        }
        session["sessionId"] = id.as_str().into();
        // Resuming saves the history, which is not needed here.
        let method = if resumes { "session/resume" } else { "session/load" };
        link.call::<Value>(method, session).await?;
        set_options(agent, &mut link, &id).await?;
        Ok(of(id, link))
    }

    /// Sends a message, which starts a turn.
    pub(super) async fn prompt(&mut self, agent: &Inner, args: &Args) -> Result<()> {
        let mut prompt = vec![json!({"type": "text", "text": args.message})];
        if let Some(workspace) = agent.workspace.as_ref().filter(|_| !args.files.is_empty()) {
            let files = attached(workspace, &args.files).await?;
            prompt.extend(files.iter().map(|file| shown(file, self.takes_images)));
        }
        let params = json!({"sessionId": self.id, "prompt": prompt});
        let request = self.link().request("session/prompt", params).await?;
        self.turn = Some(Turn::new(request));
        Ok(())
    }

    /// Returns the next message of the agent, and forwards responses of terminals meanwhile.
    pub(super) async fn next(&mut self) -> Result<Incoming> {
        let link = self.link.as_mut().expect("it is there until the session is dropped");
        #[cfg(feature = "sandbox")]
        if let Some(terminals) = &mut self.terminals {
            loop {
                tokio::select! {
                    message = link.next() => return message,
                    (id, answer) = terminals.answer() => link.answer(&id, answer).await?,
                }
            }
        }
        link.next().await
    }

    pub(super) fn is_alive(&mut self) -> bool {
        self.link().is_alive()
    }

    pub(super) fn link(&mut self) -> &mut Link {
        self.link.as_mut().expect("it is there until the session is dropped")
    }
}

/// Sets the configured options of a session.
async fn set_options(agent: &Inner, link: &mut Link, session: &str) -> Result<()> {
    for (option, value) in &agent.options {
        let mut params = json!({"sessionId": session, "configId": option, "value": value});
        if value.is_boolean() {
            params["type"] = "boolean".into();
        }
        link.call::<Value>("session/set_config_option", params).await?;
    }
    Ok(())
}

/// Converts a file to a part of a prompt: every agent accepts its address.
fn shown(file: &Attached, takes_images: bool) -> Value {
    match takes_images && file.mime.starts_with("image/") {
        true => json!({"type": "image", "data": file.base64(), "mimeType": file.mime}),
        false => json!({
            "type": "resource_link", "uri": format!("file://{}", file.path.display()), "name": file.name, "mimeType": file.mime,
            "size": file.bytes.len(),
        }),
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let (Some(mut link), Some(turn), Ok(runtime)) = (self.link.take(), self.turn.take(), Handle::try_current())
        else {
            return;
        };
        let params = json!({"sessionId": self.id});
        runtime.spawn(async move {
            let end = tokio::time::Instant::now() + GRACE;
            if link.notify("session/cancel", params).await.is_err() {
                return;
            }
            // A pending request to a person is answered: nobody is asked any more.
            if let Some(asked) = turn.asked {
                let _ = link.answer(&asked.id, Ok(asked.ask.cancelled())).await;
            }
            while let Ok(Ok(message)) = timeout_at(end, link.next()).await {
                if matches!(message, Incoming::Answer { id, .. } if id == turn.request) {
                    return;
                }
            }
        });
    }
}
