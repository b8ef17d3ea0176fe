//! A compiled prompt template.

use std::collections::{BTreeMap, BTreeSet};

use agent_core::{Error, Result};
use minijinja::{AutoEscape, Environment, ErrorKind, UndefinedBehavior, value::Serde};
use serde_json::Value;

use super::block;

/// Maximum number of instructions of one rendering: far more than a prompt needs, and executed
/// within milliseconds.
const FUEL: u64 = 1_000_000;

/// A compiled prompt. Values are inserted verbatim; template syntax in them is not evaluated.
pub(super) struct Template {
    role: &'static str,
    environment: Environment<'static>,
    variables: BTreeSet<String>,
}

impl Template {
    pub(super) fn system(source: &str) -> Result<Self> {
        Self::new("system", source)
    }

    pub(super) fn user(source: &str) -> Result<Self> {
        Self::new("user", source)
    }

    fn new(role: &'static str, source: &str) -> Result<Self> {
        let refuse = |why: String| Error::config(format!("the {role} prompt is no template: {why}"));
        let source = block::unwrap(source, role).map_err(refuse)?;
        let mut environment = Environment::new();
        environment.set_undefined_behavior(UndefinedBehavior::Strict);
        environment.set_auto_escape_callback(|_| AutoEscape::None);
        environment.set_fuel(Some(FUEL));
        environment.add_template_owned(role, source.to_owned()).map_err(|e| refuse(e.to_string()))?;
        let template = environment.get_template(role).map_err(|e| refuse(e.to_string()))?;
        let mut variables: BTreeSet<_> = template.undeclared_variables(false).into_iter().collect();
        for (name, _) in environment.globals() {
            variables.remove(name);
        }
        Ok(Self { role, environment, variables })
    }

    /// Returns the names of the template's variables.
    pub(super) fn variables(&self) -> impl Iterator<Item = &str> {
        self.variables.iter().map(String::as_str)
    }

    pub(super) fn render(&self, values: &BTreeMap<String, Value>) -> Result<String> {
        let values = values.iter().filter(|(name, _)| self.variables.contains(*name)).collect::<BTreeMap<_, _>>();
        let template = self.environment.get_template(self.role);
        let values = minijinja::Value::from(Serde(values));
        template.and_then(|template| template.render(values)).map_err(|e| self.failure(&e))
    }

    /// Returns the rendering error without the values, which may be secret. The original error is
    /// dropped, since it may quote them.
    fn failure(&self, e: &minijinja::Error) -> Error {
        let role = self.role;
        let line = e.line().map(|line| format!(" in line {line}")).unwrap_or_default();
        let why = match e.kind() {
            ErrorKind::UndefinedError => "it uses a field or an item that is not there".to_owned(),
            ErrorKind::OutOfFuel => "it takes too long; make its loops shorter".to_owned(),
            kind => kind.to_string(),
        };
        Error::config(format!("the {role} prompt cannot be rendered{line}: {why}"))
    }
}
