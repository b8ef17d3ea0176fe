//! Checks that schemas compile and survive serialisation, that calls match, and that corrupted
//! calls do not.

use std::{collections::BTreeMap, fmt};

use agent::{core::ToolSpec, tools::ArgumentSchema};
use serde_json::Value;

use super::{
    case::{Call, Case},
    corrupt::{Corrupted, corrupted},
};

/// Results for schemas and calls.
#[derive(Debug, Default)]
pub(super) struct Schemas {
    /// Result for each tool, by its whole definition.
    tools: BTreeMap<String, Option<ArgumentSchema>>,
    /// Number of schemas that serde changes.
    changed: usize,
    calls: usize,
    refused: usize,
    /// Number of calls of tools that were not offered, or whose schema does not compile.
    without_schema: usize,
    corrupted: usize,
    /// Number of corrupted calls that were accepted.
    taken: usize,
    /// Number of corrupted calls that were rejected without the name of the place.
    misplaced: usize,
}

impl Schemas {
    /// Processes the tools and the calls of a case.
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
            // Data sets with JSON values are converted to a model's text.
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

    /// Returns true if no schema changes, every corrupted call is rejected with the correct place,
    /// and at most this percentage of correct calls is rejected.
    pub(super) fn hold(&self, allowed: f64) -> bool {
        let refused = self.refused as f64 * 100.0 / self.calls.max(1) as f64;
        self.changed + self.taken + self.misplaced == 0 && refused <= allowed
    }
}

/// Returns the whole definition of a tool as a key.
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
