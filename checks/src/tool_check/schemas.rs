//! Schemas that compile and come back, calls that fit, and corrupted calls that do not.

use std::{collections::BTreeMap, fmt};

use agent::{core::ToolSpec, tools::ArgumentSchema};
use serde_json::Value;

use super::{
    case::{Call, Case},
    corrupt::{Corrupted, corrupted},
};

/// What was found of the schemas and the calls.
#[derive(Debug, Default)]
pub(super) struct Schemas {
    /// What became of each tool, by all that it says of itself.
    tools: BTreeMap<String, Option<ArgumentSchema>>,
    /// Schemas that serde does not give back as they were.
    changed: usize,
    calls: usize,
    refused: usize,
    /// Calls of tools that were not offered, or whose schema does not compile.
    without_schema: usize,
    corrupted: usize,
    /// Corrupted calls that were taken.
    taken: usize,
    /// Corrupted calls that were refused without the name of the place.
    misplaced: usize,
}

impl Schemas {
    /// Reads the tools of a case, and its calls.
    pub(super) fn take(&mut self, case: &Case, show: bool) {
        let tell = |what: String| {
            if show {
                println!("  {}: {what}", case.id);
            }
        };
        for tool in &case.tools {
            if !self.tools.contains_key(&key(tool)) {
                self.read(tool, &tell);
            }
        }
        for call in &case.calls {
            let tool = case.tools.iter().find(|tool| *tool.name == *call.name);
            let schema = tool.and_then(|tool| Some((tool, self.tools.get(&key(tool))?.clone()?)));
            match schema {
                Some((tool, schema)) => self.check(call, &tool.parameters, &schema, &tell),
                None => self.without_schema += 1,
            }
        }
    }

    fn read(&mut self, tool: &ToolSpec, tell: &impl Fn(String)) {
        let back = serde_json::to_string(tool).and_then(|text| serde_json::from_str::<ToolSpec>(&text));
        if back.is_ok_and(|back| back != *tool) {
            tell(format!("{} does not come back as it was", tool.name));
            self.changed += 1;
        }
        let schema = ArgumentSchema::compile(tool).inspect_err(|e| tell(e.to_string())).ok();
        self.tools.insert(key(tool), schema);
    }

    fn check(&mut self, call: &Call, parameters: &Value, schema: &ArgumentSchema, tell: &impl Fn(String)) {
        self.calls += 1;
        let arguments = match &call.arguments {
            Value::String(text) => schema.parse(text).value,
            // What data has as a value is written as a model would.
            value => schema.parse(&value.to_string()).value,
        };
        if let Err(e) = schema.check(&arguments, &[]) {
            tell(e.to_string());
            self.refused += 1;
            return;
        }
        for Corrupted { arguments, place } in corrupted(parameters, &arguments) {
            self.corrupted += 1;
            match schema.check(&arguments, &[]) {
                Ok(()) => {
                    tell(format!("{} took {arguments}, which is wrong at '{place}'", call.name));
                    self.taken += 1;
                }
                Err(e) if !e.message().contains(&format!("'{place}'")) => {
                    tell(format!("'{place}' is not named: {e}"));
                    self.misplaced += 1;
                }
                Err(_) => {}
            }
        }
    }

    /// True if no schema is changed, no corrupted call gets through or is told of wrongly, and no more right calls than this
    /// share in percent are refused.
    pub(super) fn hold(&self, allowed: f64) -> bool {
        let refused = self.refused as f64 * 100.0 / self.calls.max(1) as f64;
        self.changed + self.taken + self.misplaced == 0 && refused <= allowed
    }
}

/// All that a tool says of itself.
fn key(tool: &ToolSpec) -> String {
    format!("{} {} {}", tool.name, tool.description, tool.parameters)
}

impl fmt::Display for Schemas {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let compiled = self.tools.values().flatten().count();
        writeln!(
            f,
            "  tools        {:>6}, compiled {compiled}, not given back as they were {}",
            self.tools.len(),
            self.changed
        )?;
        writeln!(
            f,
            "  calls        {:>6}, refused {}; without a schema {}",
            self.calls, self.refused, self.without_schema
        )?;
        write!(f, "  corrupted    {:>6}, taken {}, place not named {}", self.corrupted, self.taken, self.misplaced)
    }
}
