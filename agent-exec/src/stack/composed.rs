//! Cache of the stacks of tools that the agent does not own.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use agent_core::{Result, Tool, ToolSpec};
use agent_tools::ArgumentSchema;

use super::ToolEntry;

/// Capacity of the schema cache: more than the tools of any one run.
const SCHEMAS: usize = 256;

type Entries = Vec<(Arc<dyn Tool>, Arc<ToolEntry>)>;

/// Stacks of tools that the agent does not own, kept while another owner holds the tool. Neither
/// mutex is held while foreign code runs or a schema is compiled.
#[derive(Default)]
pub(super) struct Composed {
    entries: Mutex<Entries>,
    /// Compiled schemas, newest last. A tool set that creates new tools for each step has their
    /// schemas compiled once.
    schemas: Mutex<VecDeque<ArgumentSchema>>,
}

impl Composed {
    pub(super) fn entry(&self, tool: &Arc<dyn Tool>) -> Option<Arc<ToolEntry>> {
        find(&self.entries(), tool)
    }

    /// Stores a tool's stack, unless another thread stored one first; returns the stored one.
    pub(super) fn keep(&self, tool: &Arc<dyn Tool>, entry: Arc<ToolEntry>) -> Arc<ToolEntry> {
        let mut entries = self.entries();
        if let Some(known) = find(&entries, tool) {
            return known;
        }
        entries.retain(|(known, _)| Arc::strong_count(known) > 2); // this list and the stack itself
        entries.push((tool.clone(), entry.clone()));
        entry
    }

    /// Returns the compiled schema of a tool with this name and these parameters; calls `compile`
    /// if it is not cached.
    pub(super) fn schema(
        &self,
        spec: &ToolSpec,
        compile: impl FnOnce(&ToolSpec) -> Result<ArgumentSchema>,
    ) -> Result<ArgumentSchema> {
        let known = {
            let mut schemas = self.schemas();
            schemas.iter().position(|schema| schema.is_of(spec)).and_then(|at| schemas.remove(at))
        };
        let schema = known.map_or_else(|| compile(spec), Ok)?;
        let mut schemas = self.schemas();
        schemas.retain(|known| !known.is_of(spec)); // another thread may have added it
        schemas.push_back(schema.clone());
        if schemas.len() > SCHEMAS {
            schemas.pop_front();
        }
        Ok(schema)
    }

    fn entries(&self) -> MutexGuard<'_, Entries> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn schemas(&self) -> MutexGuard<'_, VecDeque<ArgumentSchema>> {
        self.schemas.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn find(entries: &[(Arc<dyn Tool>, Arc<ToolEntry>)], tool: &Arc<dyn Tool>) -> Option<Arc<ToolEntry>> {
    entries.iter().find(|(known, _)| Arc::ptr_eq(known, tool)).map(|(_, entry)| entry.clone())
}

#[cfg(test)]
mod tests {
    use agent_core::Error;
    use serde_json::json;

    use super::*;

    fn spec(name: &str, n: usize) -> ToolSpec {
        ToolSpec::new(name, "", json!({"type": "object", "properties": {(format!("p{n}")): {"type": "string"}}}))
    }

    fn never(_: &ToolSpec) -> Result<ArgumentSchema> {
        Err(Error::config("it is compiled already"))
    }

    #[test]
    fn what_has_the_same_content_is_compiled_once_and_what_has_not_is_not_mixed_up() {
        let composed = Composed::default();
        composed.schema(&spec("a", 1), ArgumentSchema::compile).expect("compiles");
        composed.schema(&spec("a", 1), never).expect("known");
        for other in [spec("a", 2), spec("b", 1)] {
            composed.schema(&other, never).expect_err("another name, or other parameters");
        }
    }

    #[test]
    fn others_compile_meanwhile_and_the_oldest_go() {
        let composed = Composed::default();
        let compile = |spec: &ToolSpec| {
            // would deadlock if the mutex were held
            composed.schema(spec, ArgumentSchema::compile)?;
            ArgumentSchema::compile(spec)
        };
        composed.schema(&spec("used", 0), compile).expect("compiles");
        composed.schema(&spec("unused", 0), compile).expect("compiles");
        assert_eq!(composed.schemas().len(), 2);
        for n in 0..SCHEMAS {
            composed.schema(&spec("new", n), ArgumentSchema::compile).expect("compiles");
            composed.schema(&spec("used", 0), never).expect("known");
        }
        assert_eq!(composed.schemas().len(), SCHEMAS);
        composed.schema(&spec("unused", 0), never).expect_err("forgotten");
    }
}
