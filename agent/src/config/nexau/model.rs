//! `llm_config`: the model, and how it is asked.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::{difference::Differences, draft::Draft, keys::Keys, known::Known};
use crate::config::near;

/// Provider and wire of each `api_type`.
const API_TYPES: [(&str, &str, &str); 4] = [
    ("openai_chat_completion", "openai", "chat"),
    ("openai_responses", "openai", "responses"),
    ("anthropic_chat_completion", "anthropic", "messages"),
    ("gemini_rest", "gemini", "generate"),
];

/// Keys of `llm_config` for NexAU's client: their effect there, and the equivalent here.
const CLIENT: [(&str, &str, &str); 7] = [
    (
        "timeout",
        "tells its client, which waits for an answer as long as stream_idle_timeout_ms says",
        "say `deadlines`",
    ),
    ("connect_timeout_ms", "says how long a connection may take to open", "the transport has a limit of its own"),
    ("max_retries", "has its client try again within each of the agent's attempts", "the model's `retries` are all"),
    ("debug", "prints what is sent", "the middlewares `logging` and `telemetry` show it"),
    ("tokenizer_path", "reads it for training alone", "tokens are counted as the provider reports them"),
    ("tool_streaming", "asks Anthropic for arguments as they are written", "they come as the provider sends them"),
    ("allow_unsigned_thinking", "sends back thoughts that Anthropic did not sign", "only signed ones are sent back"),
];

/// The fields that say which model is asked, and where.
pub(super) const NAMES: [&str; 4] = ["api_type", "model", "base_url", "api_key"];

/// Parameters that are called here as they are there.
const PARAMS: [&str; 3] = ["temperature", "top_p", "max_tokens"];

/// Environment variables that NexAU reads for a key that `llm_config` lacks, in its order.
const VARIABLES: [(&str, &[&str]); 3] = [
    ("model", &["MODEL", "OPENAI_MODEL", "LLM_MODEL"]),
    ("base_url", &["OPENAI_BASE_URL", "BASE_URL", "LLM_BASE_URL"]),
    ("api_key", &["LLM_API_KEY", "OPENAI_API_KEY", "API_KEY", "ANTHROPIC_API_KEY"]),
];

/// A text of `llm_config`, or a reference to the environment variable that NexAU reads in its place.
fn said(llm: &mut Keys, key: &str, known: Option<&Known>, differences: &mut Differences) -> Option<String> {
    let of_key = VARIABLES.iter().find(|(of, _)| *of == key).map_or(&[][..], |(_, variables)| variables);
    let set = || known.and_then(|known| known.first_set(of_key)).map(|name| format!("${{env.{name}}}"));
    llm.text(key, differences).or_else(set)
}

/// The text with the variable of the file or of the environment that it consists of.
fn followed(text: String, variables: Option<&Value>, known: Option<&Known>) -> String {
    let Some((space, name)) = text.strip_prefix("${").and_then(|text| text.strip_suffix('}')?.split_once('.')) else {
        return text;
    };
    let (name, default) = name.split_once(":-").map_or((name, None), |(name, default)| (name, Some(default)));
    let found = match space {
        "variables" => {
            let found = variables.and_then(|all| all.pointer(&format!("/{}", name.replace('.', "/")))?.as_str());
            found.map(str::to_owned)
        }
        "env" => known.and_then(|known| known.variable(name)),
        _ => None,
    };
    found.or_else(|| default.map(str::to_owned)).unwrap_or(text)
}

/// Returns the model that an `llm_config` names, as an object.
pub(super) fn named(
    llm: &mut Keys,
    variables: Option<&Value>,
    known: Option<&Known>,
    differences: &mut Differences,
) -> Value {
    let api_type = llm.text("api_type", differences).unwrap_or_else(|| API_TYPES[0].0.to_owned());
    // A variable may consist of a reference, too.
    let api_type = (0..4).fold(api_type, |api_type, _| followed(api_type, variables, known));
    let found = API_TYPES.iter().find(|(theirs, ..)| *theirs == api_type);
    let (_, provider, wire) = *found.unwrap_or_else(|| {
        let types = API_TYPES.map(|(theirs, ..)| theirs);
        let near = near::nearest(&api_type, &types).map(|near| format!("did you mean '{near}'? "));
        let (nexau, here) = match api_type.as_str() {
            "generate_with_token" => ("trains a model with it".to_owned(), "nothing is trained".to_owned()),
            _ if api_type.contains("${") => {
                ("reads it from a variable".to_owned(), "it is part of the model's name: write it out".to_owned())
            }
            _ => (format!("has no api_type '{api_type}'"), format!("{}it is left out", near.unwrap_or_default())),
        };
        differences.impossible(llm.path("api_type"), nexau, format!("{here}; openai_chat_completion is used"));
        &API_TYPES[0]
    });
    let name = said(llm, "model", known, differences).unwrap_or_else(|| {
        differences.otherwise(
            llm.path("model"),
            "reads MODEL, OPENAI_MODEL and LLM_MODEL",
            "LLM_MODEL names the model",
        );
        "${env.LLM_MODEL}".to_owned()
    });
    let mut model = json!({"name": format!("{provider}:{name}@{wire}")});
    for key in ["base_url", "api_key"] {
        match said(llm, key, known, differences) {
            Some(text) => model[key] = text.into(),
            None if key == "base_url" => {
                let nexau = "reads OPENAI_BASE_URL, BASE_URL and LLM_BASE_URL, of which none is set";
                differences.otherwise(llm.path(key), nexau, format!("the address of the provider {provider}"));
            }
            None => {
                let nexau = "reads LLM_API_KEY, OPENAI_API_KEY, API_KEY and ANTHROPIC_API_KEY, of which none is set";
                differences.otherwise(llm.path(key), nexau, format!("the variables of the provider {provider}"));
            }
        }
    }
    model
}

/// Translates `llm_config`, and the other keys about model calls.
pub(super) fn translate(file: &mut Keys, draft: &mut Draft, differences: &mut Differences) {
    let mut llm = file.object("llm_config", differences).unwrap_or_else(|| {
        differences.impossible("/llm_config", "refuses a file without it", "the model is the one that LLM_MODEL names");
        Keys::of("/llm_config", json!({}), differences)
    });
    let mut model = named(&mut llm, draft.fields.get("variables"), draft.known.as_ref(), differences);
    if let Some(attempts) = file.take("retry_attempts") {
        match attempts.as_u64() {
            Some(attempts) => model["retries"] = attempts.saturating_sub(1).into(),
            None => differences.impossible("/retry_attempts", "expects a number", "it is left out"),
        }
    }
    if file.take("retry_backoff_max_seconds").is_some() {
        let here = "the delays are the model's own, or as long as the provider asks for";
        differences.ignored("/retry_backoff_max_seconds", "limits the delay between two attempts", here);
    }
    match file.text("tool_call_mode", differences).as_deref() {
        Some("xml") => model["xml_tools"] = true.into(),
        None | Some("structured" | "openai" | "anthropic") => {}
        Some(_) => {
            differences.impossible("/tool_call_mode", "has the modes xml and structured", "calls are structured");
        }
    }
    if model["name"].as_str().is_some_and(|name| name.starts_with("anthropic:")) {
        caching(&mut llm, draft, differences);
    } else if llm.take("cache_control_ttl").is_some() {
        differences.ignored(llm.path("cache_control_ttl"), "is for Anthropic alone", "the provider caches by itself");
    }
    draft.set("model", model);
    params(llm, draft, differences);
}

/// NexAU marks what Anthropic is to cache in each call.
fn caching(llm: &mut Keys, draft: &mut Draft, differences: &mut Differences) {
    let keep = match llm.text("cache_control_ttl", differences).as_deref() {
        Some("1h") => Some(("keep".to_owned(), json!("long"))),
        _ => None,
    };
    draft.middleware("prompt_caching", keep.into_iter().collect());
}

/// Translates the parameters: known ones, and the rest as fields of the provider's request.
fn params(mut llm: Keys, draft: &mut Draft, differences: &mut Differences) {
    let dropped: BTreeSet<String> = llm
        .list("additional_drop_params", differences)
        .into_iter()
        .filter_map(|(_, name)| Some(name.as_str()?.to_owned()))
        .collect();
    for (key, nexau, here) in CLIENT {
        if llm.take(key).is_some() {
            differences.ignored(llm.path(key), nexau, here);
        }
    }
    if let Some(streaming) = llm.take("stream").filter(|_| !dropped.contains("stream")) {
        draft.set("streaming", streaming);
    }
    if let Some(idle) = llm.take("stream_idle_timeout_ms").and_then(|idle| idle.as_f64()) {
        draft.set_in("deadlines", "chunk_gap", idle / 1_000.0);
    }
    for key in PARAMS {
        if let Some(value) = llm.take(key).filter(|_| !dropped.contains(key)) {
            draft.set_in("params", key, value);
        }
    }
    if let Some(tokens) = llm.take("thinking_budget") {
        draft.set_in("params", "thinking_tokens", tokens);
    }
    let mut extra = Map::new();
    let names = llm.known();
    let names: Vec<_> = names.iter().map(String::as_str).chain(NAMES).collect();
    for (path, key, value) in llm.rest().filter(|(_, key, _)| !dropped.contains(key)) {
        match key.as_str() {
            // Gemini has it among the settings of generation.
            "thinkingConfig" => thinking(&mut extra).extend(value.as_object().cloned().unwrap_or_default()),
            "include_thoughts" => {
                thinking(&mut extra).insert("includeThoughts".into(), value);
            }
            _ => {
                // A parameter of many providers, which is spelt nearly like `top_p`.
                if let Some(near) = near::nearest(&key, &names).filter(|_| key != "top_k") {
                    let here = format!("it is sent unchanged; did you mean '{near}'?");
                    differences.otherwise(path, "sends it to the provider", here);
                }
                extra.insert(key, value);
            }
        }
    }
    if !extra.is_empty() {
        draft.set_in("params", "extra", extra);
    }
}

/// Gemini's settings of thinking, in its request.
fn thinking(extra: &mut Map<String, Value>) -> &mut Map<String, Value> {
    let mut at = extra;
    for key in ["generationConfig", "thinkingConfig"] {
        let inner = at.entry(key).or_insert_with(|| json!({}));
        if !inner.is_object() {
            *inner = json!({});
        }
        at = inner.as_object_mut().expect("it is an object now");
    }
    at
}
