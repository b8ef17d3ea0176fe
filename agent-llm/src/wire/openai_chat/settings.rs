//! Request settings other than messages and tools, in both directions.

use agent_core::{ModelParams, OutputFormat, ToolChoice, model::Voice, tool::WebSearch};
use serde_json::{Value, json};

use crate::wire::{
    fields::Fields,
    json::present,
    profile::Profile,
    settings::{form, said},
};

/// Settings with the same name in the API.
pub(super) const PLAIN: [&str; 4] = ["temperature", "top_p", "stop", "seed"];

/// Names of the output limit.
pub(super) const LIMITS: [&str; 2] = ["max_tokens", "max_completion_tokens"];

/// Settings of a request besides its messages and tools.
pub(super) struct Settings<'a> {
    pub(super) model: &'a str,
    pub(super) params: &'a ModelParams,
    pub(super) profile: &'a Profile,
    /// True if there are tools; servers reject a tool choice without tools.
    pub(super) has_tools: bool,
    pub(super) stream: bool,
    /// Web search, which is a setting rather than a tool in this API.
    pub(super) search: Option<&'a WebSearch>,
}

impl<'a> Settings<'a> {
    /// Returns the fields of the request, under the server's names, before `params.extra` is
    /// overlaid.
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
        // A `stream` field in `extra` overrides all streaming fields.
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

/// Encodes the audio format. Streamed audio has no header.
fn audio(voice: &Voice, streams: bool) -> Value {
    let usual = if streams { "pcm16" } else { "wav" };
    json!({"voice": voice.name, "format": voice.format.as_deref().unwrap_or(usual)})
}

fn search_options(search: &WebSearch) -> Value {
    let place = search.location.as_ref().map(|place| json!({"type": "approximate", "approximate": place}));
    present(json!({"user_location": place}))
}
