//! Stand-in for the tools of a server that cannot be reached.

use agent_core::{Effect, Error, Result, Tool, ToolOptions, ToolOutput, ToolRequest, ToolSpec, async_trait};
use serde_json::json;

use super::Client;
use crate::text::cut;

/// Maximum length of the server's name in the tool's name, and of the reason, in characters.
const NAME: usize = 50;
const REASON: usize = 500;

/// Tells the model that a server cannot be reached, and connects when it is called.
pub(super) struct Connect {
    client: Client,
    why: String,
}

impl Connect {
    pub(super) fn new(client: Client, why: &Error) -> Self {
        let why = cut(why.message(), REASON).to_owned();
        Self { client, why }
    }
}

#[async_trait]
impl Tool for Connect {
    fn spec(&self) -> ToolSpec {
        let fits = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '_' | '-') { c } else { '_' };
        let name: String = self.client.name().chars().take(NAME).map(fits).collect();
        let description = format!(
            "{} Its tools are missing until then. Call this tool to connect now; if it fails, tell the user.",
            self.why
        );
        ToolSpec::new(format!("connect_{name}"), description, json!({"type": "object", "properties": {}}))
    }

    fn options(&self) -> ToolOptions {
        ToolOptions::default().effect(Effect::Idempotent)
    }

    async fn call(&self, req: ToolRequest) -> Result<ToolOutput> {
        let tools = self.client.known(Some(&req.cx)).await?;
        let names: Vec<_> = tools.iter().map(|tool| tool.spec().name).collect();
        let name = self.client.name();
        Ok(ToolOutput::text(format!(
            "The server '{name}' is connected. Its tools are on offer now: {}.",
            names.join(", ")
        )))
    }
}
