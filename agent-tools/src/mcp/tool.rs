//! A tool of a server.

use std::{sync::Arc, time::Duration};

use agent_core::{Effect, Error, Result, Retry, Tool, ToolOptions, ToolOutput, ToolRequest, ToolSpec, async_trait};
use rmcp::model::{CallToolRequestParams, ServerResult, Tool as RemoteTool};
use serde_json::Value;

use super::{content, failure::within, link::Link};
use crate::ArgumentSchema;

/// A tool of a server.
#[derive(Debug)]
pub(super) struct ServerTool {
    link: Arc<Link>,
    spec: ToolSpec,
    /// The server's own name of it.
    name: String,
    effect: Effect,
    timeout: Duration,
}

impl ServerTool {
    /// The server's tool under the name `name`.
    ///
    /// # Errors
    /// If its schema is none.
    pub(super) fn new(link: &Arc<Link>, name: String, remote: &RemoteTool) -> Result<Self> {
        let mut parameters = Value::Object((*remote.input_schema).clone());
        if parameters.get("type").is_none() {
            parameters["type"] = "object".into();
        }
        let title = || remote.title.clone().or_else(|| remote.annotations.as_ref()?.title.clone());
        let description = remote.description.as_deref().map(str::to_owned).or_else(title).unwrap_or_default();
        let spec = ToolSpec::new(name, description, parameters);
        ArgumentSchema::compile(&spec)?;
        let settings = &link.settings;
        let (effect, timeout) = (settings.effect_of(remote), settings.timeout_of(&remote.name));
        Ok(Self { link: link.clone(), spec, name: remote.name.to_string(), effect, timeout })
    }

    async fn ask(&self, req: &ToolRequest) -> Result<ToolOutput> {
        let mut params = CallToolRequestParams::new(self.name.clone());
        params.arguments = req.args.as_object().cloned();
        let connection = self.link.connection(self.timeout).await?;
        match connection.call(req, params).await? {
            ServerResult::CallToolResult(result) => content::output(result, self.link.settings.limit),
            _ => {
                let message = format!("The server '{}' gave something that is no result.", self.link.settings.name);
                Err(Error::tool(message))
            }
        }
    }
}

#[async_trait]
impl Tool for ServerTool {
    fn spec(&self) -> ToolSpec {
        self.spec.clone()
    }

    fn options(&self) -> ToolOptions {
        let options = ToolOptions::default().effect(self.effect);
        if self.link.settings.serial { options.serial() } else { options }
    }

    async fn call(&self, req: ToolRequest) -> Result<ToolOutput> {
        let answer = within(&self.link.settings, Some(&req.cx), self.timeout, self.ask(&req)).await;
        // What may be done twice may be tried again, whatever became of it.
        let may_repeat = matches!(self.effect, Effect::Pure | Effect::Idempotent);
        answer.map_err(|error| match error.retry() {
            Retry::Unknown if may_repeat && error.kind() == agent_core::ErrorKind::Tool => {
                error.with_retry(Retry::Temporary(None))
            }
            _ => error,
        })
    }
}
