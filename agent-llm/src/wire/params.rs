//! Settings that all models have, by the names that each wire has for them: one table to write and to read them.

use agent_core::ModelParams;
#[cfg(feature = "requests")]
use agent_core::ToolChoice;
#[cfg(feature = "requests")]
use serde::Deserialize;
use serde::{Serialize, Serializer};
use serde_json::{Map, Value, json};

use super::json::{lay, write};

/// What a wire calls the settings that all models have.
pub(crate) struct Names {
    pub(crate) max_tokens: &'static str,
    pub(crate) temperature: &'static str,
    pub(crate) top_p: &'static str,
    pub(crate) stop: &'static str,
    /// None of a wire that has no word for it.
    pub(crate) seed: Option<&'static str>,
}

impl Names {
    /// Says `params`, and that an answer has at most `max_tokens`: for those that do not say, some wires must.
    pub(crate) fn write(&self, params: &ModelParams, max_tokens: Option<u64>, fields: &mut Fields) {
        fields.say(self.max_tokens, max_tokens);
        fields.say(self.temperature, params.temperature);
        fields.say(self.top_p, params.top_p);
        fields.say(self.stop, Some(&*params.stop).filter(|stop| !stop.is_empty()));
        if let Some(seed) = self.seed {
            fields.say(seed, params.seed);
        }
    }

    /// The parameters that these fields say.
    #[cfg(feature = "requests")]
    pub(crate) fn read(&self, fields: &Value) -> ModelParams {
        let mut params = ModelParams::default();
        params.max_tokens = fields[self.max_tokens].as_u64();
        params.temperature = fields[self.temperature].as_f64();
        params.top_p = fields[self.top_p].as_f64();
        params.stop = Vec::deserialize(&fields[self.stop]).unwrap_or_default();
        params.seed = self.seed.and_then(|name| fields[name].as_i64());
        params
    }
}

/// The fields of an object, in order.
#[derive(Debug, Default)]
pub(crate) struct Fields(Vec<(&'static str, Value)>);

impl Fields {
    /// Adds a field; nothing is said with none.
    pub(crate) fn say(&mut self, name: &'static str, value: Option<impl Serialize>) {
        self.0.extend(value.map(|value| (name, json!(value))));
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The fields, unless there are none.
    pub(crate) fn some(self) -> Option<Self> {
        Some(self).filter(|fields| !fields.is_empty())
    }

    /// Takes a field out.
    pub(crate) fn take(&mut self, name: &str) -> Option<Value> {
        let at = self.0.iter().position(|(known, _)| *known == name)?;
        Some(self.0.remove(at).1)
    }

    pub(crate) fn into_map(self) -> Map<String, Value> {
        self.0.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    }

    /// Writes the object with `extra` laid over it.
    pub(crate) fn write_with(self, extra: &Map<String, Value>, out: &mut Vec<u8>) {
        if extra.is_empty() {
            return write(&self, out);
        }
        let mut value = Value::Object(self.into_map());
        extra.iter().for_each(|(name, over)| lay(&mut value[name], over));
        write(&value, out);
    }
}

impl Serialize for Fields {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}

/// The choice that is written as `said`: reading is writing, sought. `name` is the tool that is named there.
#[cfg(feature = "requests")]
pub(crate) fn tool_choice(
    said: &Value,
    name: Option<&str>,
    write: impl Fn(&ToolChoice) -> Value,
) -> Option<ToolChoice> {
    let named = name.map(|name| ToolChoice::Tool(name.to_owned()));
    let choices = [ToolChoice::Auto, ToolChoice::None, ToolChoice::Required].into_iter().chain(named);
    choices.into_iter().find(|choice| !said.is_null() && write(choice) == *said)
}
