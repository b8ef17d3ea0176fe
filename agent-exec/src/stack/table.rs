//! Tools that one run offers to the model.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use agent_core::{
    Effect, Error, ModelInfo, Result, RunCx, StateSchema, Tool, ToolOptions, ToolSpecs, exact, run::ToolChoices,
};
use serde_json::{Value, json};

use super::{ToolEntry, Tools};

/// Tools that one run offers: the agent's own, or those that the run selects, and those of dynamic
/// tool sets.
pub(crate) struct ToolTable {
    fixed: Arc<BTreeMap<String, Arc<ToolEntry>>>,
    fixed_specs: ToolSpecs,
    specs: ToolSpecs,
    /// True if dynamic tool sets are offered too.
    changing: bool,
    /// The tools of the dynamic sets; `None` before the first refresh.
    offered: Option<Vec<Arc<ToolEntry>>>,
}

impl ToolTable {
    pub(crate) fn new(tools: &Tools, model: &ModelInfo, choices: &ToolChoices, schema: &StateSchema) -> Result<Self> {
        let (fixed, fixed_specs) = match choices {
            ToolChoices::Named(names) => named(tools, names)?,
            ToolChoices::Replace(brought) => with_brought(tools, model, &Fixed::default(), brought, schema)?,
            ToolChoices::Also(brought) => {
                let own = (tools.own.clone(), tools.specs.clone());
                with_brought(tools, model, &own, brought, schema)?
            }
            _ => (tools.own.clone(), tools.specs.clone()),
        };
        let changing = !tools.sets.is_empty() && matches!(choices, ToolChoices::All | ToolChoices::Also(_));
        Ok(Self { fixed, specs: fixed_specs.clone(), fixed_specs, changing, offered: None })
    }

    /// Returns the tool specs for the model.
    pub(crate) fn specs(&self) -> &ToolSpecs {
        &self.specs
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Arc<ToolEntry>> {
        self.fixed.get(name).or_else(|| self.offered.iter().flatten().find(|entry| entry.spec.name == name))
    }

    /// Returns the offered tool names, for the error about an unknown tool.
    pub(crate) fn names(&self) -> String {
        let names: Vec<_> = self.specs.iter().map(|spec| spec.name.as_str()).collect();
        if names.is_empty() { "none".into() } else { names.join(", ") }
    }

    /// True if the dynamic sets were not queried yet.
    pub(crate) fn is_stale(&self) -> bool {
        self.changing && self.offered.is_none()
    }

    /// Queries the dynamic sets for their current tools.
    pub(crate) async fn refresh(&mut self, tools: &Tools, cx: &RunCx) -> Result<()> {
        if !self.changing {
            return Ok(());
        }
        let mut offered = Vec::new();
        for set in tools.sets.iter() {
            for tool in set.tools(cx).await? {
                offered.push(tools.compose(&tool, cx.state().schema())?);
            }
        }
        let before = self.offered.iter().flatten().map(Arc::as_ptr);
        if self.offered.is_some() && before.eq(offered.iter().map(Arc::as_ptr)) {
            return Ok(()); // keeps the specs that a wire format has cached
        }
        let mut names: BTreeSet<&str> = self.fixed.keys().map(String::as_str).collect();
        if let Some(twice) = offered.iter().find(|entry| !names.insert(&entry.spec.name)) {
            return Err(Error::config(format!("two tools are named '{}': rename one", twice.spec.name)));
        }
        let changing = offered.iter().map(|entry| (*entry.spec).clone());
        self.specs = self.fixed_specs.iter().cloned().chain(changing).collect();
        self.offered = Some(offered);
        Ok(())
    }
}

type Fixed = (Arc<BTreeMap<String, Arc<ToolEntry>>>, ToolSpecs);

fn named(tools: &Tools, names: &[String]) -> Result<Fixed> {
    if tools.specs.is_empty() {
        return Err(Error::config("no tools were configured for the agent, so none can be chosen by name"));
    }
    if let Some(unknown) = names.iter().find(|name| !tools.specs.iter().any(|spec| spec.name == **name)) {
        let valid: Vec<_> = tools.specs.iter().map(|spec| spec.name.as_str()).collect();
        return Err(Error::config(format!("tool '{unknown}' is not among the agent's; valid: {}", valid.join(", "))));
    }
    let chosen = tools.specs.iter().filter(|spec| names.contains(&spec.name)).cloned().collect();
    let own = tools.own.iter().filter(|(name, _)| names.contains(name));
    Ok((Arc::new(own.map(|(name, entry)| (name.clone(), entry.clone())).collect()), chosen))
}

/// Combines the tools `beside` with those that the run supplies.
fn with_brought(
    tools: &Tools,
    model: &ModelInfo,
    beside: &Fixed,
    brought: &[Arc<dyn Tool>],
    schema: &StateSchema,
) -> Result<Fixed> {
    if !model.tools && !brought.is_empty() {
        return Err(Error::config(format!("model '{}' takes no tools, but the run brings some", model.name)));
    }
    let mut entries = (*beside.0).clone();
    let mut specs = beside.1.to_vec();
    for tool in brought {
        let entry = tools.compose(tool, schema)?;
        specs.push((*entry.spec).clone());
        if let Some(twice) = entries.insert(entry.spec.name.clone(), entry) {
            return Err(Error::config(format!("two tools are named '{}': rename one", twice.spec.name)));
        }
    }
    Ok((Arc::new(entries), specs.into_iter().collect()))
}

/// Parsed arguments of a call.
pub(crate) struct Parsed {
    pub(crate) value: Value,
    /// Description of the repairs.
    pub(crate) repair: Option<String>,
    /// True if the call must not run: its arguments were open at their end, and the tool does not
    /// [accept](ToolOptions::accepts_truncated) that.
    pub(crate) is_truncated: bool,
}

/// Parses a tool's arguments as the model wrote them, repaired where possible. An unknown tool has
/// no schema to guide the repair.
pub(crate) fn parse(tool: Option<&Arc<ToolEntry>>, arguments: &str) -> Parsed {
    match tool {
        Some(entry) => {
            let parsed = entry.body.parse(arguments);
            let is_truncated = parsed.truncated && !accepts_truncated(&entry.options);
            Parsed { value: parsed.value, repair: parsed.repair, is_truncated }
        }
        None => match exact::from_str(arguments) {
            Ok(Value::Null) => Parsed { value: json!({}), repair: None, is_truncated: false },
            Ok(value @ Value::Object(_)) => Parsed { value, repair: None, is_truncated: false },
            _ => {
                let value = json!({ "raw_arguments": arguments });
                Parsed { value, repair: Some("they are not a JSON object".into()), is_truncated: false }
            }
        },
    }
}

/// Returns true if calls run with arguments that were cut off.
pub(crate) fn accepts_truncated(options: &ToolOptions) -> bool {
    options.accepts_truncated && options.effect == Effect::Pure
}

/// Returns a predicate for the parameters that the model itself supplied.
pub(crate) fn given<'a>(args: &'a Value) -> impl Fn(&str) -> bool + 'a {
    move |param| args.get(param).is_some()
}
