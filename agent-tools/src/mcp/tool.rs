//! Tool of a server.

use std::{fmt, sync::Arc, time::Duration};

use agent_core::{
    Effect, Error, Result, Retry, Tool, ToolOptions, ToolOutput, ToolRequest, ToolSpec, async_trait, boxed,
    tool::ToolHints,
};
use rmcp::model::{CallToolRequestParams, CallToolResult, Tool as RemoteTool};
use serde_json::Value;

use super::{
    calls::Progress,
    content,
    failure::{cut, short, within_progress},
    link::Link,
    schema,
    settings::Settings,
};
use crate::{ArgumentSchema, arguments::numbers, check_value};

/// Tool of a server.
#[derive(Debug)]
pub(super) struct ServerTool {
    link: Arc<Link>,
    spec: ToolSpec,
    /// The server's name of the tool.
    name: String,
    effect: Effect,
    hints: ToolHints,
    timeout: Duration,
    output: Output,
}

type Check = dyn Fn(&Value) -> Result<(), String> + Send + Sync;

/// Check of structured content against the tool's output schema.
#[derive(Clone)]
struct Output(Option<Arc<Check>>);

impl fmt::Debug for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Output").field(&self.0.is_some()).finish()
    }
}

impl Output {
    fn new(settings: &Settings, remote: &RemoteTool) -> Self {
        let schema = remote.output_schema.as_ref().filter(|_| settings.checks_output);
        Self(schema.and_then(|schema| match check_value(&Value::Object((**schema).clone())) {
            Ok(check) => Some(Arc::new(check) as Arc<Check>),
            Err(error) => {
                let (server, tool) = (&*settings.name, cut(&remote.name, 200));
                tracing::warn!(server, tool, %error, "an output schema of an MCP server is none, and is not looked at");
                None
            }
        }))
    }

    /// Rejects a result that violates the tool's output schema. Error results are exempt.
    fn check(&self, result: &CallToolResult, tool: &str) -> Result<()> {
        let Some(check) = self.0.as_ref().filter(|_| result.is_error != Some(true)) else { return Ok(()) };
        let checked = match &result.structured_content {
            Some(value) => check(value),
            None => Err("there is no structured content".to_owned()),
        };
        checked.map_err(|why| {
            let message =
                format!("The tool '{tool}' was called, and its result does not fit its own output schema: {why}");
            Error::tool(short(&message)).with_retry(Retry::Permanent)
        })
    }
}

impl ServerTool {
    /// Creates the server's tool under the name `name`.
    ///
    /// # Errors
    /// If its schema is invalid.
    pub(super) fn new(link: &Arc<Link>, name: String, remote: &RemoteTool) -> Result<Self> {
        let mut parameters = Value::Object((*remote.input_schema).clone());
        schema::modernise(&mut parameters);
        if parameters.get("type").is_none() {
            parameters["type"] = "object".into();
        }
        let title = || remote.title.clone().or_else(|| remote.annotations.as_ref()?.title.clone());
        let description = remote.description.as_deref().map(str::to_owned).or_else(title).unwrap_or_default();
        let output = remote.output_schema.as_ref().map(|schema| Value::Object((**schema).clone()));
        let spec = ToolSpec::new(name, description, parameters).with_output(output);
        ArgumentSchema::compile(&spec)?;
        let settings = &link.settings;
        Ok(Self {
            link: link.clone(),
            spec,
            name: remote.name.to_string(),
            effect: settings.effect_of(remote),
            hints: settings.hints_of(remote),
            timeout: settings.timeout_of(&remote.name),
            output: Output::new(settings, remote),
        })
    }

    async fn ask(&self, req: &ToolRequest, progress: &Arc<Progress>) -> Result<ToolOutput> {
        let mut params = CallToolRequestParams::new(self.name.clone());
        params.arguments = numbers::marked(&self.spec.parameters, &req.args).as_object().cloned();
        let result = self.link.call(self.timeout, (req, progress), &params).await?;
        content::check_size(&result, self.link.settings.limit)?;
        self.output.check(&result, &self.name)?;
        Ok(content::output(result))
    }
}

#[async_trait]
impl Tool for ServerTool {
    fn spec(&self) -> ToolSpec {
        self.spec.clone()
    }

    fn options(&self) -> ToolOptions {
        let mut options = ToolOptions::default().effect(self.effect);
        options.hints = self.hints;
        if self.link.settings.serial { options.serial() } else { options }
    }

    async fn call(&self, req: ToolRequest) -> Result<ToolOutput> {
        let (settings, progress) = (&self.link.settings, Arc::<Progress>::default());
        let asked = boxed(|| self.ask(&req, &progress));
        let answer = within_progress(settings, Some(&req.cx), self.timeout, &progress, asked).await;
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
