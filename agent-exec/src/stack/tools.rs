//! The tools of an agent, and the stacks of tools that are added later.

use std::{collections::BTreeMap, sync::Arc};

use agent_core::{Deadlines, Result, StateSchema, Tool, ToolSpec, ToolSpecs, Toolset, tool::ServerTool};
use agent_tools::ArgumentSchema;

use super::{Item, ToolEntry, composed::Composed};

/// The tools of an agent, and the parts from which stacks for other tools are composed.
pub(crate) struct Tools {
    pub(crate) own: Arc<BTreeMap<String, Arc<ToolEntry>>>,
    /// Specs of the agent's own tools, in their order, and of those that its provider runs.
    pub(crate) specs: ToolSpecs,
    pub(crate) sets: Arc<[Arc<dyn Toolset>]>,
    items: Arc<[Item]>,
    raise_errors: bool,
    deadlines: Arc<Deadlines>,
    composed: Composed,
}

impl Tools {
    /// Combines the agent's `own` tools, those of the provider and its tool sets. Stacks of other
    /// tools are composed from `items`, like those of its own.
    pub(crate) fn new(
        own: Vec<ToolEntry>,
        server: &[ServerTool],
        sets: Arc<[Arc<dyn Toolset>]>,
        items: Arc<[Item]>,
        raise_errors: bool,
        deadlines: Arc<Deadlines>,
    ) -> Self {
        let server = server.iter().cloned().map(ToolSpec::of_server);
        let specs = own.iter().map(|entry| (*entry.spec).clone()).chain(server).collect();
        let own = own.into_iter().map(|entry| (entry.spec.name.clone(), Arc::new(entry))).collect();
        Self { own: Arc::new(own), specs, sets, items, raise_errors, deadlines, composed: Composed::default() }
    }

    /// Returns the stack of a tool that the agent does not own: one for all runs, so that its
    /// limits apply across them. It is cached while another owner holds the tool.
    pub(super) fn compose(&self, tool: &Arc<dyn Tool>, schema: &StateSchema) -> Result<Arc<ToolEntry>> {
        if let Some(entry) = self.composed.entry(tool) {
            return Ok(entry);
        }
        let compile = |spec: &_| self.composed.schema(spec, ArgumentSchema::compile);
        let entry = ToolEntry::new(tool.clone(), &self.items, self.raise_errors, &self.deadlines, compile)?;
        entry.check(schema)?;
        Ok(self.composed.keep(tool, Arc::new(entry)))
    }
}
