//! A tool with its composed stack.

use std::sync::Arc;

use agent_core::{Deadlines, Error, Result, StateSchema, Tool, ToolOptions, ToolService, ToolSpec};
use agent_tools::ArgumentSchema;

use super::{
    Item, compose,
    core::{ToolBody, ToolCore},
};

/// Parameters that the framework itself injects into tools.
const RESERVED_ARGS: [&str; 4] = ["cx", "state", "globals", "resources"];

/// A tool with its spec for the model and the stack around its calls.
pub(crate) struct ToolEntry {
    pub(crate) spec: Arc<ToolSpec>,
    pub(crate) options: Arc<ToolOptions>,
    pub(crate) body: Arc<ToolBody>,
    pub(crate) service: ToolService,
}

impl ToolEntry {
    /// Reads the tool's spec once, checks it, and composes its stack.
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

    /// Checks the tool's injected arguments, and the state keys that it reads and writes.
    pub(crate) fn check(&self, schema: &StateSchema) -> Result<()> {
        let (name, options) = (&self.spec.name, &self.options);
        let undeclared = |does: &str, key: &str| {
            let declared = schema.keys().collect::<Vec<_>>().join(", ");
            let declared = if declared.is_empty() { "none" } else { &declared };
            format!(
                "tool '{name}' {does} state key '{key}', which is not declared: declare it with state(..), or name one of \
                 those that are: {declared}"
            )
        };
        for read in &options.reads {
            if !schema.has(&read.key) {
                return refuse(undeclared("reads", &read.key));
            }
            if self.spec.parameters["properties"].get(&read.param).is_none() {
                let param = &read.param;
                return refuse(format!(
                    "tool '{name}' reads state into parameter '{param}', which its schema does not have"
                ));
            }
        }
        for write in &options.writes {
            if !schema.has(&write.key) {
                return refuse(undeclared("writes", &write.key));
            }
        }
        if let Some(reserved) = options.args.keys().find(|arg| RESERVED_ARGS.contains(&arg.as_str())) {
            return refuse(format!(
                "tool '{name}' is given the argument '{reserved}', which is reserved; choose another name"
            ));
        }
        if options.concurrency == Some(0) {
            return refuse(format!("tool '{name}' may never run: its concurrency must be at least 1"));
        }
        Ok(())
    }
}

fn refuse(message: String) -> Result<()> {
    Err(Error::config(message))
}
