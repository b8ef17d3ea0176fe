//! Request settings, in both directions.

use std::borrow::Cow;

use agent_core::{ModelParams, OutputFormat, SystemMessage, ToolChoice, ToolSpec};
use serde_json::{Value, json};

use super::{MessageStyle, tools};
use crate::wire::{
    content::joined,
    fields::Fields,
    json::present,
    settings::{form, said},
};

/// Settings with the same form, by this framework's name and by the API's.
pub(super) const PLAIN: [(&str, &str); 4] =
    [("temperature", "temperature"), ("top_p", "top_p"), ("max_tokens", "max_output_tokens"), ("seed", "seed")];

/// Settings of a request besides its input and its tools, which are encoded once and cached.
pub(super) struct Settings<'a> {
    pub(super) system: Option<&'a SystemMessage>,
    pub(super) specs: &'a [ToolSpec],
    pub(super) params: &'a ModelParams,
    pub(super) stream: bool,
    pub(super) manner: &'a MessageStyle,
}

impl<'a> Settings<'a> {
    pub(super) fn fields(&self) -> Fields<'a> {
        let Self { params, manner: MessageStyle { origin, profile, .. }, .. } = *self;
        let server = &profile.responses;
        let (mut said, mut fields) = (said(params), Fields::default());
        fields.say("model", Some(origin.model()));
        let instructions = self.system.map(|system| joined(system.parts()));
        fields.say("instructions", instructions.or(server.needs_instructions.then_some(Cow::Borrowed(""))));
        for (own, name) in PLAIN {
            fields.say(name, said.remove(own).filter(|_| server.takes(name)));
        }
        let effort = params.effort.map(|effort| profile.known(effort));
        let reasoning = present(json!({"effort": effort, "summary": server.reasoning_summary}));
        fields.say("reasoning", Some(reasoning).filter(|reasoning| *reasoning != json!({})));
        fields.say("text", params.output.as_deref().map(|output| json!({"format": format(output)})));
        // Servers reject a tool choice without tools.
        let has_tools = !self.specs.is_empty() || params.extra.contains_key("tools");
        let choice = params.tool_choice.as_ref().filter(|_| has_tools);
        fields.say("tool_choice", choice.map(|choice| self.choice(choice)));
        fields.say("parallel_tool_calls", said.remove("parallel_tool_calls").filter(|_| has_tools));
        fields.say("store", server.stateless.then_some(false));
        fields.say("include", Some(self.include()).filter(|include| !include.is_empty()));
        fields.say("stream", (self.stream || server.always_stream).then_some(true));
        fields
    }

    fn choice(&self, choice: &ToolChoice) -> Value {
        let ToolChoice::Tool(name) = choice else { return json!(choice) };
        let spec = self.specs.iter().find(|spec| spec.name == *name);
        match spec.and_then(|spec| tools::kind(spec, self.manner)).as_deref().unwrap_or("function") {
            kind @ ("function" | "custom") => json!({"type": kind, "name": name}),
            // A provider-side tool is identified by its type.
            kind => json!({"type": kind}),
        }
    }

    /// Returns the optional parts of the answer to request: encrypted reasoning, and results of
    /// provider-side tools.
    fn include(&self) -> Vec<&'static str> {
        let server = &self.manner.profile.responses;
        let tools = self.specs.iter().filter(|spec| server.tool_results && spec.raw.is_none());
        let results = tools.filter_map(|spec| tools::include(spec.server.as_ref()?));
        let sealed = server.seals(self.manner.origin.model()).then_some("reasoning.encrypted_content");
        sealed.into_iter().chain(results).collect()
    }
}

fn format(output: &OutputFormat) -> Value {
    if output.schema.is_null() {
        return json!({"type": "json_object"});
    }
    let mut format = form(output);
    format["type"] = "json_schema".into();
    format
}
