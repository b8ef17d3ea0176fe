//! Everything of a request but its messages and its tools, in both directions.

#[cfg(feature = "requests")]
use agent_core::model::Effort;
use agent_core::{ModelParams, OutputFormat, ToolChoice, model::Voice, tool::WebSearch};
#[cfg(feature = "requests")]
use serde_json::Map;
use serde_json::{Value, json};

#[cfg(feature = "requests")]
use crate::wire::settings::{read, read_form};
use crate::wire::{
    fields::Fields,
    json::present,
    profile::Profile,
    settings::{form, said},
};

/// The settings that the API calls as we do.
const PLAIN: [&str; 4] = ["temperature", "top_p", "stop", "seed"];

/// The two names of the field that limits an answer's tokens.
const LIMITS: [&str; 2] = ["max_tokens", "max_completion_tokens"];

/// What a request says besides its messages and tools.
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

impl<'a> Settings<'a> {
    /// The fields of the request, under the names that the server has for them, on which `params.extra` is to be laid.
    pub(super) fn fields(&self) -> Fields<'a> {
        let Self { params, profile, has_tools, stream, .. } = *self;
        let (extra, mut said, mut fields) = (&params.extra, said(params), Fields::default());
        let mut put = |usual: &'a str, value: Option<Value>| {
            if let Some(name) = profile.name_of(usual) {
                fields.say(name, value);
            }
        };
        put("model", Some(self.model.into()));
        PLAIN.into_iter().for_each(|name| put(name, said.remove(name)));
        put("max_tokens", said.remove("max_tokens").filter(|_| !LIMITS.iter().any(|name| extra.contains_key(*name))));
        put("tool_choice", params.tool_choice.as_ref().filter(|_| has_tools).map(choice));
        put("parallel_tool_calls", said.remove("parallel_tool_calls").filter(|_| has_tools));
        match (params.thinking_tokens, profile.thinking_tokens.as_deref(), params.effort) {
            (Some(most), Some(place), _) => match place.split_once('.') {
                Some((field, inner)) => put(field, Some(json!({inner: most}))),
                None => put(place, Some(most.into())),
            },
            (.., Some(effort)) => match profile.effort.get(&profile.known(effort)) {
                Some(own) => own.iter().for_each(|(name, value)| put(name, Some(value.clone()))),
                None => put("reasoning_effort", Some(json!(profile.known(effort)))),
            },
            _ => {}
        }
        put("response_format", params.output.as_deref().map(|output| format(output, profile)));
        put("modalities", said.remove("modalities"));
        let streams = extra.get("stream").map_or(stream, |said| *said == true);
        put("audio", params.voice.as_ref().map(|voice| audio(voice, streams)));
        put("web_search_options", self.search.map(search_options));
        // Who speaks of streaming in `extra` says all of it.
        if stream && !extra.contains_key("stream") {
            put("stream", Some(true.into()));
            put("stream_options", profile.include_usage.then(|| json!({"include_usage": true})));
        }
        for (name, value) in &profile.fields {
            if !fields.has(name) {
                fields.say(name, Some(value.clone()));
            }
        }
        fields
    }

    /// What of this request a server would be told by itself, which `said` this. Who asks in other words for a stream or for a
    /// limit says all of that.
    #[cfg(feature = "requests")]
    pub(super) fn written(&self, said: &Map<String, Value>) -> Map<String, Value> {
        let mut written: Map<_, _> = self.fields().into();
        if said.get("stream_options") != written.get("stream_options") {
            written.retain(|name, _| !matches!(name.as_str(), "stream" | "stream_options"));
        }
        if LIMITS.iter().any(|name| said.contains_key(*name) != written.contains_key(*name)) {
            written.retain(|name, _| !LIMITS.contains(&name.as_str()));
        }
        written
    }
}

fn choice(choice: &ToolChoice) -> Value {
    match choice {
        ToolChoice::Tool(name) => json!({"type": "function", "function": {"name": name}}),
        mode => json!(mode),
    }
}

fn format(output: &OutputFormat, profile: &Profile) -> Value {
    if output.schema.is_null() || !profile.json_schema {
        return json!({"type": "json_object"});
    }
    json!({"type": "json_schema", "json_schema": form(output)})
}

/// Sound that is streamed has no head.
fn audio(voice: &Voice, streams: bool) -> Value {
    let usual = if streams { "pcm16" } else { "wav" };
    json!({"voice": voice.name, "format": voice.format.as_deref().unwrap_or(usual)})
}

fn search_options(search: &WebSearch) -> Value {
    let place = search.location.as_ref().map(|place| json!({"type": "approximate", "approximate": place}));
    present(json!({"user_location": place}))
}

/// The efforts, the words that servers read alike last.
#[cfg(feature = "requests")]
const EFFORTS: [Effort; 7] =
    [Effort::High, Effort::Medium, Effort::Low, Effort::Minimal, Effort::None, Effort::XHigh, Effort::Max];

/// What the fields of a request say, as far as they say what every provider can be told.
#[cfg(feature = "requests")]
pub(super) fn params(said: &Map<String, Value>, profile: &Profile) -> ModelParams {
    let get = |usual| said.get(profile.name_of(usual)?);
    let is_effort = |effort: &Effort| match profile.effort.get(effort) {
        Some(own) => own.iter().all(|(name, value)| said.get(name) == Some(value)),
        None => profile.known(*effort) == *effort && get("reasoning_effort") == Some(&json!(effort)),
    };
    let limits = LIMITS.iter().filter_map(|name| said.get(*name));
    let limit = get("max_tokens").into_iter().chain(limits).find(|most| most.is_u64());
    let plain = PLAIN.into_iter().chain(["parallel_tool_calls"]);
    read(plain.map(|name| (name, get(name).cloned())).chain([
        ("max_tokens", limit.cloned()),
        ("stop", get("stop").map(|stop| if stop.is_string() { json!([stop]) } else { stop.clone() })),
        ("tool_choice", get("tool_choice").map(read_choice)),
        ("effort", EFFORTS.into_iter().find(is_effort).map(|effort| json!(effort))),
        ("output", get("response_format").map(read_output)),
    ]))
}

/// The choice of a tool, which is named by itself in Responses.
#[cfg(feature = "requests")]
pub(in crate::wire) fn read_choice(said: &Value) -> Value {
    let name = said["function"]["name"].as_str().or(said["name"].as_str());
    match (said.as_str(), name) {
        (Some("any"), _) => json!("required"),
        (None, Some(name)) if said["type"].is_string() => json!({"tool": name}),
        _ => said.clone(),
    }
}

/// The form of the answer, whose schema stands by itself in Responses.
#[cfg(feature = "requests")]
pub(in crate::wire) fn read_output(said: &Value) -> Value {
    let form = said.get("json_schema").unwrap_or(said);
    match said["type"].as_str() {
        Some("json_object") => json!({"name": "json", "schema": null}),
        Some("json_schema") if form["schema"].is_object() => read_form(form),
        _ => Value::Null,
    }
}
