//! A tool with its composed stack.

use std::sync::Arc;

use agent_core::{Deadlines, Result, Tool, ToolOptions, ToolService, ToolSpec};
use agent_tools::ArgumentSchema;

use super::core::{ToolBody, ToolCore};
use crate::builder::{Item, compose};

/// A tool, what the model is told of it, and the stack around its calls.
pub(crate) struct ToolEntry {
    pub(crate) spec: Arc<ToolSpec>,
    pub(crate) options: Arc<ToolOptions>,
    pub(crate) body: Arc<ToolBody>,
    pub(crate) service: ToolService,
}

impl ToolEntry {
    /// Reads the tool's description once, checks it, and composes its stack.
    pub(crate) fn new(
        tool: Arc<dyn Tool>,
        items: &[Item],
        raise: bool,
        deadlines: &Deadlines,
        compile: impl FnOnce(&ToolSpec) -> Result<ArgumentSchema>,
    ) -> Result<Self> {
        let (spec, options) = (Arc::new(tool.spec()), Arc::new(tool.options()));
        let body = Arc::new(ToolBody::new(tool, &spec, compile(&spec)?, options.clone(), deadlines));
        let service = compose::tool(items, ToolCore::new(body.clone()), raise);
        Ok(Self { spec, options, body, service })
    }
}
