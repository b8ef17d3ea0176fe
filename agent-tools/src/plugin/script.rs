//! A program of a plugin, as a tool.

use std::{sync::Arc, time::Duration};

use agent_core::{Effect, Result, Tool, ToolOptions, ToolOutput, ToolRequest, ToolSpec, async_trait};
use serde_json::Value;

use super::{config::Values, folder::Folder};
use crate::sandbox::{Command, Sandbox};

/// Most bytes that a program may write.
const MOST_OUTPUT: usize = 1 << 20;

#[derive(Debug)]
pub(super) struct ScriptTool {
    pub(super) spec: ToolSpec,
    pub(super) command: Command,
    pub(super) effect: Effect,
    pub(super) timeout: Duration,
    pub(super) values: Arc<Values>,
    pub(super) sandbox: Arc<dyn Sandbox>,
    /// The program, which must be there as long as the tool is.
    pub(super) _folder: Folder,
}

#[async_trait]
impl Tool for ScriptTool {
    fn spec(&self) -> ToolSpec {
        self.spec.clone()
    }

    fn options(&self) -> ToolOptions {
        ToolOptions::default().effect(self.effect).timeout(self.timeout)
    }

    async fn call(&self, req: ToolRequest) -> Result<ToolOutput> {
        let mut process = self.sandbox.start(self.command.clone()).await?;
        let input = process.take_input();
        let arguments = req.args.to_string();
        // A program need not read its arguments, and may write before it does: both ends are moved at once.
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
        let said = self.values.hide(String::from_utf8_lossy(&said).trim_end());
        if !exit.is_success() {
            return Ok(ToolOutput::error(format!("{said}\n[{exit}]")));
        }
        Ok(serde_json::from_str::<Value>(&said).map_or_else(|_| ToolOutput::text(&*said), ToolOutput::value))
    }
}
