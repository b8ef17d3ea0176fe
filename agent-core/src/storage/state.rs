//! [`State`]: the schema-checked values of one run.

use std::{collections::BTreeMap, fmt, sync::Arc};

use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

use super::{
    Key, Merge,
    global::{decode, encode},
    slot::{Change, Slot},
    slots::Slots,
    writer::Writer,
};
use crate::error::{Error, Result};

type Check = dyn Fn(&Value) -> Result<(), String> + Send + Sync;

/// Names of run inputs and outputs that the framework defines.
const RESERVED: [&str; 9] = [
    "messages",
    "last_message",
    "step_count",
    "token_usage",
    "tool_call_counts",
    "exit_reason",
    "state",
    "tools",
    "cx",
];

/// Type, merge rule and default of a state key.
#[derive(Clone, Default)]
pub struct StateField {
    check: Option<Arc<Check>>,
    schema: Option<Value>,
    merge: Merge,
    default: Option<Value>,
}

impl StateField {
    /// Creates a field of type `T`. Lists are [appended](Merge::Append), everything else is
    /// [replaced](Merge::Replace).
    ///
    /// An optional list is replaced: set [`merge`](Self::merge) if it should be appended.
    pub fn of<T: DeserializeOwned + 'static>() -> Self {
        let takes = |value: Value| T::deserialize(value).is_ok();
        // A struct deserialises from a list of its fields, and from an empty list if all have
        // defaults.
        let is_list = takes(json!([])) && !takes(Value::Null) && !takes(json!({}));
        let check = |value: &Value| T::deserialize(value).map(drop).map_err(|e| e.to_string());
        Self {
            check: Some(Arc::new(check)),
            merge: if is_list { Merge::Append } else { Merge::Replace },
            ..Self::default()
        }
    }

    /// Creates a field from a JSON Schema. Lists are appended, everything else is replaced. If no
    /// [`check`](Self::check) is set, the executor derives one from the schema.
    pub fn schema(schema: Value) -> Self {
        let is_list = schema.get("type").and_then(Value::as_str) == Some("array");
        Self { schema: Some(schema), merge: if is_list { Merge::Append } else { Merge::Replace }, ..Self::default() }
    }

    /// Sets the merge rule.
    #[must_use]
    pub fn merge(mut self, merge: Merge) -> Self {
        self.merge = merge;
        self
    }

    /// Sets the initial value of a run.
    #[must_use]
    pub fn default_value(mut self, value: Value) -> Self {
        self.default = Some(value);
        self
    }

    /// Sets the validation function, whose error message describes the problem.
    #[must_use]
    pub fn check(mut self, check: impl Fn(&Value) -> Result<(), String> + Send + Sync + 'static) -> Self {
        self.check = Some(Arc::new(check));
        self
    }

    /// Validates a value.
    ///
    /// # Errors
    /// A description of the problem.
    pub fn check_value(&self, value: &Value) -> Result<(), String> {
        self.check.as_ref().map_or(Ok(()), |check| check(value))
    }

    /// Returns the initial value of a run.
    pub fn start_value(&self) -> Option<&Value> {
        self.default.as_ref()
    }

    /// Returns the merge rule.
    pub fn merge_rule(&self) -> &Merge {
        &self.merge
    }

    /// Returns the JSON Schema, if the field was created from one.
    pub fn json_schema(&self) -> Option<&Value> {
        self.schema.as_ref()
    }

    /// Returns the JSON Schema, if the field was created from one and has no validation function
    /// yet.
    pub fn unchecked_schema(&self) -> Option<&Value> {
        self.schema.as_ref().filter(|_| self.check.is_none())
    }
}

/// The declared keys of a run's [`State`].
///
/// ```
/// use agent_core::{StateField, StateSchema, storage::Merge};
///
/// let schema = StateSchema::default()
///     .key("notes", StateField::of::<Vec<String>>())
///     .key("total", StateField::of::<u32>().merge(Merge::custom(|old, new| {
///         Ok((old.and_then(|v| v.as_u64()).unwrap_or(0) + new.as_u64().unwrap_or(0)).into())
///     })));
/// assert!(schema.check().is_ok());
/// ```
#[derive(Clone, Debug, Default)]
pub struct StateSchema(BTreeMap<String, StateField>);

impl StateSchema {
    /// Declares a key.
    #[must_use]
    pub fn key(mut self, name: impl Into<String>, field: StateField) -> Self {
        self.0.insert(name.into(), field);
        self
    }

    /// Reserved names that no key may have: the framework defines run inputs and outputs with these
    /// names.
    pub const RESERVED: [&'static str; 9] = RESERVED;

    /// Adds the keys of another schema. For a key that both declare, the other's field is used.
    #[must_use]
    pub fn with(mut self, other: Self) -> Self {
        self.0.extend(other.0);
        self
    }

    /// Adds the keys of another schema, which must not be declared here.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) if a key is declared twice.
    pub fn extend(&mut self, other: Self) -> Result<()> {
        for (name, field) in other.0 {
            if self.0.contains_key(&name) {
                return Err(Error::config(format!("state key '{name}' is declared twice; rename one")));
            }
            self.0.insert(name, field);
        }
        Ok(())
    }

    /// Returns the field under `name`.
    pub fn get(&self, name: &str) -> Option<&StateField> {
        self.0.get(name)
    }

    /// True if `name` is declared.
    pub fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// The declared keys.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// The fields, mutable, for adding validation functions.
    pub fn fields_mut(&mut self) -> impl Iterator<Item = (&str, &mut StateField)> {
        self.0.iter_mut().map(|(k, f)| (k.as_str(), f))
    }

    /// Validates the declarations.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) if a name is empty or reserved, a field has
    /// neither type nor schema, or a default does not match its field.
    pub fn check(&self) -> Result<()> {
        for (name, field) in &self.0 {
            if name.is_empty() || RESERVED.contains(&name.as_str()) {
                let reserved = RESERVED.join(", ");
                return Err(Error::config(format!(
                    "state key '{name}' is reserved; choose another name than {reserved}"
                )));
            }
            if field.check.is_none() && field.schema.is_none() {
                return Err(Error::config(format!(
                    "state key '{name}' has no type: use StateField::of::<T>() or ::schema(..)"
                )));
            }
            if let Some(value) = &field.default {
                field.accepts(name, value)?;
            }
        }
        Ok(())
    }
}

impl StateField {
    fn accepts(&self, name: &str, value: &Value) -> Result<()> {
        let misfit = |e| Error::config(format!("value for state key '{name}' does not fit: {e}"));
        self.check_value(value).map_err(misfit)
    }
}

/// Values of one run. Cheap to clone; all clones share the same data.
///
/// Changes made by a tool call are persisted with the call's result, as in the
/// [`GlobalStorage`](crate::GlobalStorage).
#[derive(Clone, Default)]
pub struct State {
    schema: Arc<StateSchema>,
    slots: Arc<Slots>,
    /// The call with which changes are committed.
    writer: Option<Arc<Writer>>,
}

impl State {
    /// Creates a state with the schema's defaults, replaced (not merged) by `values`.
    ///
    /// # Errors
    /// If a key is not declared or a value does not match its field.
    pub fn new(schema: StateSchema, values: BTreeMap<String, Value>) -> Result<Self> {
        let mut start: BTreeMap<_, _> =
            schema.0.iter().filter_map(|(k, f)| Some((k.clone(), f.default.clone()?))).collect();
        for (name, value) in values {
            schema.field(&name)?.accepts(&name, &value)?;
            start.insert(name, value);
        }
        Ok(Self { schema: Arc::new(schema), slots: Arc::new(Slots::restore(start)), writer: None })
    }

    /// The declared keys.
    pub fn schema(&self) -> &StateSchema {
        &self.schema
    }

    /// True if the key has a value.
    pub fn has(&self, name: &str) -> bool {
        self.slots.get(name).is_some()
    }

    /// Returns a copy of the value under `name`.
    pub fn get_value(&self, name: &str) -> Option<Value> {
        self.slots.get(name).map(|(value, _)| Arc::unwrap_or_clone(value))
    }

    /// Returns the value under `key`.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) if the value has another type.
    pub fn get<T: DeserializeOwned>(&self, key: &Key<T>) -> Result<Option<T>> {
        self.slots.get(key.name()).map(|(value, _)| decode(key, &value)).transpose()
    }

    /// Merges `value` into the current value with the schema's rule.
    ///
    /// # Errors
    /// If the key is not declared, the value does not match, or the merge fails; the state is then
    /// unchanged.
    pub fn set<T: Serialize>(&self, key: &Key<T>, value: &T) -> Result<()> {
        self.set_value(key.name(), encode(key, value)?, None)
    }

    /// Like [`set`](Self::set), by name, and with a merge rule that overrides the schema's.
    ///
    /// # Errors
    /// Those of [`set`](Self::set).
    pub fn set_value(&self, name: &str, value: Value, merge: Option<&Merge>) -> Result<()> {
        let field = self.schema.field(name)?;
        let merge = merge.unwrap_or(&field.merge).clone();
        if matches!(merge, Merge::Replace) {
            field.accepts(name, &value)?;
            return self.slots.set(self.writer.as_ref(), name, Some(Arc::new(value))).map(drop);
        }
        let (schema, key) = (self.schema.clone(), name.to_owned());
        let change = Change::update(move |current| {
            let joined = merge.apply(current.cloned(), value.clone())?;
            schema.field(&key)?.accepts(&key, &joined)?;
            Ok(joined)
        });
        self.slots.change(self.writer.as_ref(), name, &change).map(drop)
    }

    /// Sets values as they were recorded, regardless of merge rules.
    pub(crate) fn set_all(&self, values: BTreeMap<String, Value>) {
        values.into_iter().for_each(|(name, value)| self.slots.set_recorded(&name, Some(Arc::new(value)), false));
    }

    /// Returns all values.
    pub fn snapshot(&self) -> BTreeMap<String, Value> {
        self.slots.values("", Slot::value)
    }

    /// Returns all committed values: without the changes of running calls.
    pub fn kept(&self) -> BTreeMap<String, Value> {
        self.slots.values("", Slot::kept)
    }

    /// True if there are committed changes to take.
    pub(crate) fn has_changes(&self) -> bool {
        self.slots.has_changes()
    }

    /// Takes the keys and committed values that changed since the last call. The journal takes them
    /// with each step.
    pub(crate) fn take_changes(&self) -> BTreeMap<String, Value> {
        let changes = self.slots.take_changes().into_iter();
        changes.filter_map(|(name, value)| Some((name.to_string(), Arc::unwrap_or_clone(value?)))).collect()
    }

    /// Returns the state as a call sees it.
    pub(super) fn written_by(&self, writer: Arc<Writer>) -> Self {
        Self { writer: Some(writer), ..self.clone() }
    }

    pub(super) fn slots(&self) -> &Slots {
        &self.slots
    }
}

impl StateSchema {
    fn field(&self, name: &str) -> Result<&StateField> {
        self.0.get(name).ok_or_else(|| {
            let known: Vec<_> = self.keys().collect();
            Error::config(format!("state key '{name}' is not declared; declared: {}", known.join(", ")))
        })
    }
}

impl fmt::Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.slots.snapshot().keys()).finish() // values may be secret
    }
}

impl fmt::Debug for StateField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StateField").field("merge", &self.merge).field("schema", &self.schema).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state() -> State {
        let schema = StateSchema::default()
            .key("list", StateField::of::<Vec<String>>())
            .key("one", StateField::of::<u32>())
            .key("maybe", StateField::of::<Option<Vec<u32>>>())
            .key(
                "joined",
                StateField::of::<String>().merge(Merge::custom(|old, new| {
                    Ok(format!("{}{}", old.as_ref().and_then(Value::as_str).unwrap_or(""), new.as_str().unwrap_or(""))
                        .into())
                })),
            );
        State::new(schema, BTreeMap::new()).expect("valid")
    }

    #[test]
    fn lists_are_appended_scalars_replaced_and_own_rules_used() {
        let s = state();
        for value in [json!("a"), json!(["b"])] {
            s.set_value("list", value, None).expect("fits");
        }
        for n in [1, 2] {
            s.set_value("one", json!(n), None).expect("fits");
            s.set_value("joined", json!("x"), None).expect("fits");
            s.set_value("maybe", json!([n]), None).expect("fits");
        }
        assert_eq!(s.get_value("list"), Some(json!(["a", "b"])));
        assert_eq!(s.get_value("one"), Some(json!(2)));
        assert_eq!(s.get_value("joined"), Some(json!("xx")));
        assert_eq!(s.get_value("maybe"), Some(json!([2])), "an optional list asks for an explicit rule");
        s.set_value("list", json!(["c"]), Some(&Merge::Replace)).expect("fits");
        assert_eq!(s.get_value("list"), Some(json!(["c"])), "an override beats the schema");
    }

    #[test]
    fn a_struct_is_no_list_even_if_all_its_fields_have_defaults() {
        #[derive(Default, serde::Deserialize)]
        #[serde(default)]
        struct Settings {
            _n: u32,
        }
        let schema = StateSchema::default().key("settings", StateField::of::<Settings>());
        let s = State::new(schema, BTreeMap::new()).expect("valid");
        for value in [json!({}), json!({"_n": 1})] {
            s.set_value("settings", value.clone(), None).expect("fits");
            assert_eq!(s.get_value("settings"), Some(value));
        }
    }

    #[test]
    fn undeclared_keys_and_unfitting_values_are_errors_that_change_nothing() {
        let s = state();
        assert!(
            s.set_value("nope", json!(1), None).expect_err("undeclared").message().contains("declared: joined, list")
        );
        assert!(s.set_value("one", json!("x"), None).is_err());
        assert!(!s.has("one"));
    }

    #[test]
    fn reserved_names_missing_types_and_bad_defaults_are_refused() {
        let bad = |name: &str, field| StateSchema::default().key(name, field).check().expect_err("refused").to_string();
        assert!(bad("messages", StateField::of::<u32>()).contains("reserved"));
        assert!(bad("x", StateField::default()).contains("no type"));
        assert!(bad("x", StateField::of::<u32>().default_value(json!("a"))).contains("does not fit"));
    }

    #[test]
    fn what_is_read_is_a_copy() {
        let s = state();
        s.set_value("list", json!(["a"]), None).expect("fits");
        let mut copy = s.get_value("list").expect("there");
        copy.as_array_mut().expect("list").clear();
        assert_eq!(s.get_value("list"), Some(json!(["a"])));
    }
}
