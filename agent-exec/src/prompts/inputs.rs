//! Named inputs of a run: sorted into variables and state, checked, and completed with defaults.

use std::collections::{BTreeMap, BTreeSet};

use agent_core::{Error, Result, RunRequest, StateField, StateSchema};
use agent_tools::check_value;
use serde_json::Value;

use super::RequiredVariables;

/// Returns the declared inputs with their compiled checks.
pub(super) fn checked(
    declared: &BTreeMap<String, StateField>,
    state: &StateSchema,
) -> Result<BTreeMap<String, StateField>> {
    check_names(&declared.keys().map(String::as_str).collect(), state)?;
    let checked = |(name, field): (&String, &StateField)| {
        let refuse = |why: String| Error::config(format!("run input '{name}': {why}"));
        let mut field = field.clone();
        if let Some(json) = field.unchecked_schema() {
            let check = check_value(json).map_err(|e| refuse(e.message().to_owned()))?;
            field = field.check(check);
        }
        if let Some(value) = field.start_value() {
            field.check_value(value).map_err(|e| refuse(format!("its default does not fit: {e}")))?;
        }
        Ok((name.clone(), field))
    };
    declared.iter().map(checked).collect()
}

/// Checks that every name is unambiguous: a variable is neither a state key nor a reserved name.
pub(super) fn check_names(names: &BTreeSet<&str>, state: &StateSchema) -> Result<()> {
    for name in names {
        if name.is_empty() || StateSchema::RESERVED.contains(name) {
            let reserved = StateSchema::RESERVED.join(", ");
            return Err(Error::config(format!("run input '{name}' is reserved; choose another name than {reserved}")));
        }
        if state.has(name) {
            return Err(Error::config(format!(
                "'{name}' is a variable of a prompt and a key of the state: rename one of them"
            )));
        }
    }
    Ok(())
}

type Values = BTreeMap<String, Value>;

/// Sorts the inputs of a request into values of variables and values of the state.
pub(super) fn sort(
    request: &RunRequest,
    variables: &BTreeSet<&str>,
    declared: &BTreeMap<String, StateField>,
    schema: &StateSchema,
) -> Result<(Values, Values)> {
    let (mut given, mut state) = (Values::new(), Values::new());
    for (name, value) in &request.inputs {
        if variables.contains(name.as_str()) || declared.contains_key(name) {
            given.insert(name.clone(), value.clone());
        } else if !schema.has(name) {
            let known = variables.iter().copied().chain(declared.keys().map(String::as_str)).chain(schema.keys());
            let known = list(known.collect::<BTreeSet<_>>());
            return Err(Error::config(format!("the agent has no run input '{name}'; its run inputs are: {known}")));
        } else if request.state.contains_key(name) {
            return Err(Error::config(format!("'{name}' is given twice: as a run input and as a value of the state")));
        } else {
            state.insert(name.clone(), value.clone());
        }
    }
    Ok((given, state))
}

/// Checks the values of variables and adds the defaults.
pub(super) fn complete(
    mut given: BTreeMap<String, Value>,
    variables: &BTreeSet<&str>,
    declared: &BTreeMap<String, StateField>,
    required: &RequiredVariables,
) -> Result<BTreeMap<String, Value>> {
    for (name, value) in &given {
        let misfit = |e| Error::config(format!("run input '{name}' does not fit: {e}"));
        declared.get(name).map_or(Ok(()), |field| field.check_value(value)).map_err(misfit)?;
    }
    let mut missing = Vec::new();
    for name in variables {
        if given.contains_key(*name) {
            continue;
        }
        match declared.get(*name).and_then(StateField::start_value).cloned() {
            None if required.has(name) => missing.push(*name),
            default => drop(given.insert((*name).to_owned(), default.unwrap_or_else(|| "".into()))),
        }
    }
    match missing.as_slice() {
        [] => Ok(given),
        missing => Err(Error::config(format!("the prompts need run inputs that are missing: {}", missing.join(", ")))),
    }
}

pub(super) fn list<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let names: Vec<_> = names.into_iter().collect();
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}
