//! Everything of a request but its messages and its tools.

use agent_core::{ModelParams, OutputFormat, ToolChoice, model::Voice, tool::WebSearch};
use serde::{
    Serialize,
    ser::{Error, SerializeMap, Serializer},
};
use serde_json::{Map, Value, json};

use super::profile::Profile;
use crate::wire::json::lay;

/// The two names of the field that limits an answer's tokens.
pub(super) const LIMITS: [&str; 2] = ["max_tokens", "max_completion_tokens"];

/// Writes what `params` say in the words of a server, and over it `params.extra`.
pub(super) struct Settings<'a> {
    pub(super) model: &'a str,
    pub(super) params: &'a ModelParams,
    pub(super) profile: &'a Profile,
    /// Servers refuse a word about tools where there are none.
    pub(super) has_tools: bool,
    pub(super) stream: bool,
    /// A search of the web, which is no tool here but a setting.
    pub(super) search: Option<&'a WebSearch>,
}

impl Serialize for Settings<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (params, extra) = (self.params, &self.params.extra);
        let map = serializer.serialize_map(None)?;
        let mut fields = Fields { map, profile: self.profile, extra, written: Vec::new() };
        fields.put("model", Some(self.model))?;
        fields.put("temperature", params.temperature)?;
        fields.put("top_p", params.top_p)?;
        let limited = LIMITS.iter().any(|name| extra.contains_key(*name));
        fields.put("max_tokens", params.max_tokens.filter(|_| !limited))?;
        fields.put("stop", Some(&params.stop).filter(|stop| !stop.is_empty()))?;
        fields.put("seed", params.seed)?;
        fields.put("tool_choice", params.tool_choice.as_ref().filter(|_| self.has_tools).map(Choice::new))?;
        fields.put("parallel_tool_calls", params.parallel_tool_calls.filter(|_| self.has_tools))?;
        let thinking = params.thinking_tokens.zip(self.profile.thinking_tokens.as_deref());
        if let Some((most, place)) = thinking {
            let (field, inner) = place.split_once('.').map_or((place, None), |(field, inner)| (field, Some(inner)));
            fields.put(field, Some(inner.map_or(json!(most), |inner| json!({inner: most}))))?;
        }
        let effort = params.effort.filter(|_| thinking.is_none()).map(|effort| self.profile.known(effort));
        match effort.map(|effort| (effort, self.profile.effort.get(&effort))) {
            Some((_, Some(own))) => own.iter().try_for_each(|(name, value)| fields.put(name, Some(value)))?,
            usual => fields.put("reasoning_effort", usual.map(|(effort, _)| effort))?,
        }
        fields.put("response_format", params.output.as_deref().map(|output| Format::new(output, self.profile)))?;
        fields.put("modalities", Some(&params.modalities).filter(|modalities| !modalities.is_empty()))?;
        let streams = extra.get("stream").map_or(self.stream, |said| *said == true);
        fields.put("audio", params.voice.as_ref().map(|voice| Audio::of(voice, streams)))?;
        fields.put("web_search_options", self.search.map(SearchOptions::of))?;
        // Who speaks of streaming in `extra` says all of it.
        if self.stream && !extra.contains_key("stream") {
            fields.put("stream", Some(true))?;
            let options = StreamOptions { include_usage: true };
            fields.put("stream_options", Some(options).filter(|_| self.profile.include_usage))?;
        }
        for (name, value) in &self.profile.fields {
            if !fields.written.contains(&name.as_str()) {
                fields.put(name, Some(value))?;
            }
        }
        fields.end()
    }
}

/// The fields of the object that is written.
struct Fields<'a, M> {
    map: M,
    profile: &'a Profile,
    extra: &'a Map<String, Value>,
    /// What is written already.
    written: Vec<&'a str>,
}

impl<'a, M: SerializeMap> Fields<'a, M> {
    /// Writes a field, under the name that the server has for it, unless nothing is said of it.
    fn put<T: Serialize>(&mut self, usual: &'a str, value: Option<T>) -> Result<(), M::Error> {
        let (Some(value), Some(name)) = (value, self.profile.name_of(usual)) else { return Ok(()) };
        self.written.push(name);
        let Some(over) = self.extra.get(name) else { return self.map.serialize_entry(name, &value) };
        let mut merged = serde_json::to_value(value).map_err(M::Error::custom)?;
        lay(&mut merged, over);
        self.map.serialize_entry(name, &merged)
    }

    fn end(mut self) -> Result<M::Ok, M::Error> {
        for (name, value) in self.extra.iter().filter(|(name, _)| !self.written.contains(&name.as_str())) {
            self.map.serialize_entry(name, value)?;
        }
        self.map.end()
    }
}

#[derive(Serialize)]
struct Audio<'a> {
    voice: &'a str,
    format: &'a str,
}

impl<'a> Audio<'a> {
    /// Sound that is streamed has no head.
    fn of(voice: &'a Voice, streams: bool) -> Self {
        let usual = if streams { "pcm16" } else { "wav" };
        Self { voice: &voice.name, format: voice.format.as_deref().unwrap_or(usual) }
    }
}

#[derive(Serialize)]
struct SearchOptions {
    #[serde(skip_serializing_if = "Option::is_none")]
    user_location: Option<Value>,
}

impl SearchOptions {
    fn of(search: &WebSearch) -> Self {
        let place = |place| json!({"type": "approximate", "approximate": place});
        Self { user_location: search.location.as_ref().map(place) }
    }
}

#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Choice<'a> {
    Mode(&'static str),
    Tool { r#type: &'static str, function: Named<'a> },
}

#[derive(Serialize)]
struct Named<'a> {
    name: &'a str,
}

impl<'a> Choice<'a> {
    fn new(choice: &'a ToolChoice) -> Self {
        match choice {
            ToolChoice::None => Self::Mode("none"),
            ToolChoice::Required => Self::Mode("required"),
            ToolChoice::Tool(name) => Self::Tool { r#type: "function", function: Named { name } },
            _ => Self::Mode("auto"),
        }
    }
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Format<'a> {
    JsonObject,
    JsonSchema { json_schema: Schema<'a> },
}

#[derive(Serialize)]
struct Schema<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<&'a str>,
    schema: &'a Value,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    strict: bool,
}

impl<'a> Format<'a> {
    fn new(output: &'a OutputFormat, profile: &Profile) -> Self {
        if output.schema.is_null() || !profile.json_schema {
            return Self::JsonObject;
        }
        let OutputFormat { name, description, schema, strict, .. } = output;
        Self::JsonSchema { json_schema: Schema { name, description: description.as_deref(), schema, strict: *strict } }
    }
}
