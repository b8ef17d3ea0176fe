//! [`State`]: what one run keeps, declared by a schema.

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

/// Names that the framework itself gives to outputs and inputs of a run.
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

/// What values a key takes and how a new one joins the old.
#[derive(Clone, Default)]
pub struct StateField {
    check: Option<Arc<Check>>,
    schema: Option<Value>,
    merge: Merge,
    default: Option<Value>,
}

impl StateField {
    /// Values of the type `T`. Lists are [appended](Merge::Append), everything else is [replaced](Merge::Replace).
    ///
    /// An optional list is replaced: say [`merge`](Self::merge) if it is to be appended.
    pub fn of<T: DeserializeOwned + 'static>() -> Self {
        let takes = |value: Value| T::deserialize(value).is_ok();
        // A struct takes a list of its fields, and an empty one if all have defaults.
        let is_list = takes(json!([])) && !takes(Value::Null) && !takes(json!({}));
        let check = |value: &Value| T::deserialize(value).map(drop).map_err(|e| e.to_string());
        Self {
            check: Some(Arc::new(check)),
            merge: if is_list { Merge::Append } else { Merge::Replace },
            ..Self::default()
        }
    }

    /// Any JSON that `schema` describes. Lists are appended, everything else is replaced. `check` says what is wrong with a
    /// value; the executor sets it from the schema if it is not given.
    pub fn schema(schema: Value) -> Self {
        let is_list = schema.get("type").and_then(Value::as_str) == Some("array");
        Self { schema: Some(schema), merge: if is_list { Merge::Append } else { Merge::Replace }, ..Self::default() }
    }

    /// Sets how a new value joins the old.
    #[must_use]
    pub fn merge(mut self, merge: Merge) -> Self {
        self.merge = merge;
        self
    }

    /// Sets the value at the start of a run.
    #[must_use]
    pub fn default_value(mut self, value: Value) -> Self {
        self.default = Some(value);
        self
    }

    /// Sets what checks a value; the message says what is wrong.
    #[must_use]
    pub fn check(mut self, check: impl Fn(&Value) -> Result<(), String> + Send + Sync + 'static) -> Self {
        self.check = Some(Arc::new(check));
        self
    }

    /// Says what is wrong with a value, if anything is.
    ///
    /// # Errors
    /// Why it does not fit, in words.
    pub fn check_value(&self, value: &Value) -> Result<(), String> {
        self.check.as_ref().map_or(Ok(()), |check| check(value))
    }

    /// The value at the start of a run.
    pub fn start_value(&self) -> Option<&Value> {
        self.default.as_ref()
    }

    /// How a new value joins the old.
    pub fn merge_rule(&self) -> &Merge {
        &self.merge
    }

    /// The JSON Schema, if the field was made from one.
    pub fn json_schema(&self) -> Option<&Value> {
        self.schema.as_ref()
    }

    /// The JSON Schema, if the field was made from one and has no check yet.
    pub fn unchecked_schema(&self) -> Option<&Value> {
        self.schema.as_ref().filter(|_| self.check.is_none())
    }
}

/// The keys of a run's [`State`].
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

    /// Names that no key may have: the framework itself gives them to inputs and outputs of a run.
    pub const RESERVED: [&'static str; 9] = RESERVED;

    /// The field under `name`.
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

    /// The fields, to be completed with checks.
    pub fn fields_mut(&mut self) -> impl Iterator<Item = (&str, &mut StateField)> {
        self.0.iter_mut().map(|(k, f)| (k.as_str(), f))
    }

    /// Checks the declarations.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) if a name is empty or reserved, a field has neither type nor schema,
    /// or a default does not fit its own field.
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

/// What one run keeps. Cheap to clone; every clone sees the same values.
///
/// What a tool's call changes is kept with the call's result, as in the [`GlobalStorage`](crate::GlobalStorage).
#[derive(Clone, Default)]
pub struct State {
    schema: Arc<StateSchema>,
    slots: Arc<Slots>,
    /// The call that changes are kept with.
    writer: Option<Arc<Writer>>,
}

impl State {
    /// A state with the schema's defaults and then `values`, which replace and are not merged.
    ///
    /// # Errors
    /// If a value's key is not declared or it does not fit.
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

    /// A copy of the value under `name`.
    pub fn get_value(&self, name: &str) -> Option<Value> {
        self.slots.get(name).map(|(value, _)| Arc::unwrap_or_clone(value))
    }

    /// The value under `key` as its type.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) if the value has another type.
    pub fn get<T: DeserializeOwned>(&self, key: &Key<T>) -> Result<Option<T>> {
        self.slots.get(key.name()).map(|(value, _)| decode(key, &value)).transpose()
    }

    /// Joins `value` to what is there, as the schema says.
    ///
    /// # Errors
    /// If the key is not declared, the value does not fit, or the merge fails; the state is then unchanged.
    pub fn set<T: Serialize>(&self, key: &Key<T>, value: &T) -> Result<()> {
        self.set_value(key.name(), encode(key, value)?, None)
    }

    /// As [`set`](Self::set), by name, with a merge rule that beats the schema's.
    ///
    /// # Errors
    /// As [`set`](Self::set).
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

    /// Sets values as they were recorded, whatever the rules.
    pub(crate) fn set_all(&self, values: BTreeMap<String, Value>) {
        values.into_iter().for_each(|(name, value)| self.slots.set_recorded(&name, Some(Arc::new(value)), false));
    }

    /// All values.
    pub fn snapshot(&self) -> BTreeMap<String, Value> {
        self.slots.values("", Slot::value)
    }

    /// All values without what calls under way changed: what a journal would have now.
    pub fn kept(&self) -> BTreeMap<String, Value> {
        self.slots.values("", Slot::kept)
    }

    /// True if there are changes to be taken.
    pub(crate) fn has_changes(&self) -> bool {
        self.slots.has_changes()
    }

    /// The keys of which another value is kept than when this was last called, with those values. The journal takes them with
    /// each step.
    pub(crate) fn take_changes(&self) -> BTreeMap<String, Value> {
        let changes = self.slots.take_changes().into_iter();
        changes.filter_map(|(name, value)| Some((name.to_string(), Arc::unwrap_or_clone(value?)))).collect()
    }

    /// The state as a call has it.
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
