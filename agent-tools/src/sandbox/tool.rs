//! [`ProgramTool`]: program as a tool.

use std::{any::Any, fmt, sync::Arc, time::Duration};

use agent_core::{Effect, Error, Result, Tool, ToolOptions, ToolOutput, ToolRequest, ToolSpec, async_trait};
use serde_json::Value;

use super::{Command, Sandbox};
use crate::arguments::numbers;

/// Maximum of output bytes.
const MOST_OUTPUT: usize = 1 << 20;

type Hide = dyn Fn(&str) -> String + Send + Sync;

/// Tool that runs a program in a sandbox: the program reads the arguments as JSON, and its output
/// is the result.
///
/// JSON output becomes a value, other output text. An exit code other than 0 is an error that the
/// model sees, with the program's output; at most 1 MiB of output is read.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> agent_core::Result<()> {
/// use std::sync::Arc;
///
/// use agent_core::{Effect, Tool, ToolSpec};
/// use agent_tools::sandbox::{Command, Exit, MemorySandbox, ProgramTool};
/// use serde_json::json;
///
/// let sandbox = MemorySandbox::new().program("orders", |_| ("{\"state\": \"sent\"}".into(), Exit::code(0)));
/// let spec = ToolSpec::new("look_up", "Looks an order up.", json!({"type": "object", "properties": {"number": {"type": "string"}}}));
/// let look_up = ProgramTool::new(spec, Command::new("orders"), Arc::new(sandbox)).effect(Effect::Pure);
/// assert_eq!(look_up.spec().name, "look_up");
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct ProgramTool {
    spec: ToolSpec,
    command: Command,
    sandbox: Arc<dyn Sandbox>,
    effect: Effect,
    timeout: Duration,
    hide: Option<Arc<Hide>>,
    /// Resource that must live as long as the tool.
    keeps: Option<Arc<dyn Any + Send + Sync>>,
}

impl ProgramTool {
    /// Creates the tool for this command. Defaults: calls are executed at most once, with a timeout
    /// of one minute.
    pub fn new(spec: ToolSpec, command: Command, sandbox: Arc<dyn Sandbox>) -> Self {
        let timeout = Duration::from_secs(60);
        Self { spec, command, sandbox, effect: Effect::AtMostOnce, timeout, hide: None, keeps: None }
    }

    /// Sets the effect of repeating a call.
    #[must_use]
    pub fn effect(mut self, effect: Effect) -> Self {
        self.effect = effect;
        self
    }

    /// Sets the timeout of a call.
    #[must_use]
    pub fn timeout(mut self, most: Duration) -> Self {
        self.timeout = most;
        self
    }

    /// Redacts secrets in the program's output.
    #[cfg(feature = "plugins")]
    pub(crate) fn hide(mut self, hide: impl Fn(&str) -> String + Send + Sync + 'static) -> Self {
        self.hide = Some(Arc::new(hide));
        self
    }

    /// Keeps a resource alive as long as the tool.
    #[cfg(feature = "plugins")]
    pub(crate) fn keep(mut self, what: impl Any + Send + Sync) -> Self {
        self.keeps = Some(Arc::new(what));
        self
    }
}

impl fmt::Debug for ProgramTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProgramTool")
            .field("spec", &self.spec)
            .field("command", &self.command)
            .field("sandbox", &self.sandbox)
            .field("effect", &self.effect)
            .field("timeout", &self.timeout)
            .field("keeps", &self.keeps.is_some())
            .finish_non_exhaustive()
    }
}

#[async_trait]
impl Tool for ProgramTool {
    fn spec(&self) -> ToolSpec {
        self.spec.clone()
    }

    fn options(&self) -> ToolOptions {
        ToolOptions::default().effect(self.effect).timeout(self.timeout)
    }

    async fn call(&self, req: ToolRequest) -> Result<ToolOutput> {
        let mut process = self.sandbox.start(self.command.clone()).await?;
        let input = process.take_input();
        let arguments = numbers::to_json(&numbers::marked(&self.spec.parameters, &req.args))
            .map_err(|e| Error::tool("the arguments cannot be written as JSON").with_source(e))?;
        // A program need not read its arguments, and may write before it does: both streams are
        // served concurrently.
        let give = async {
            if let Some(input) = input {
                drop(input.write(arguments).await);
            }
        };
        let take = async {
            let mut said = Vec::new();
            while let Some(piece) = process.output().await {
                said.extend_from_slice(&piece);
                if said.len() > MOST_OUTPUT {
                    return None;
                }
            }
            Some(said)
        };
        let ((), said) = tokio::join!(give, take);
        let Some(said) = said else {
            return Ok(ToolOutput::error(format!("the program wrote more than {MOST_OUTPUT} bytes, and was ended")));
        };
        let exit = process.exit().await?;
        let said = String::from_utf8_lossy(&said);
        let said = said.trim_end();
        let said = self.hide.as_ref().map_or_else(|| said.to_owned(), |hide| hide(said));
        if !exit.is_success() {
            return Ok(ToolOutput::error(format!("{said}\n[{exit}]")));
        }
        Ok(serde_json::from_str::<Value>(&said).map_or_else(|_| ToolOutput::text(&*said), ToolOutput::value))
    }
}
