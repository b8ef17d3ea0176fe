//! `middlewares`, hooks and tracers.

use serde_json::{Map, Value, json};

use super::{About, compaction, difference::Differences, draft::Draft, keys::Keys, model};

/// Module of NexAU's own middlewares and hooks.
const BUILTIN: &str = "nexau.archs.main_sub.";

/// Translates middlewares, and after them the hooks, as NexAU orders them.
pub(super) fn translate(file: &mut Keys, about: &About, draft: &mut Draft, differences: &mut Differences) {
    for list in ["middlewares", "before_model_hooks", "after_model_hooks", "after_tool_hooks", "before_tool_hooks"] {
        for (path, entry) in file.list(list, differences) {
            let Some((import, params)) = import(&path, entry, differences) else { continue };
            let params = Keys::of(format!("{path}/params"), params, differences);
            match import.starts_with(BUILTIN) {
                true => builtin(&path, &import, params, about, draft, differences),
                false => own(&path, &import, params, draft, differences),
            }
        }
    }
    tracers(file, draft, differences);
    for (key, nexau, here) in [
        (
            "error_handler",
            "has a Python function answer when a run fails",
            "`Middleware::after_agent` sees the failure",
        ),
        ("token_counter", "has a Python function count tokens", "they are counted as the provider reports them"),
    ] {
        if file.take(key).is_some() {
            differences.impossible(format!("/{key}"), nexau, here);
        }
    }
}

/// Returns the import of an entry, and its parameters.
fn import(path: &str, entry: Value, differences: &mut Differences) -> Option<(String, Value)> {
    if let Value::String(import) = entry {
        return Some((import, json!({})));
    }
    let mut entry = Keys::of(path, entry, differences);
    let import = entry.text("import", differences);
    let params = entry.take("params").unwrap_or_else(|| json!({}));
    entry.skip(["name"]); // which middlewares of plugins have
    if import.is_none() {
        differences.missing(&entry, "import", "the entry is left out");
    }
    entry.refuse_rest(differences);
    Some((import?, params))
}

/// A middleware of NexAU's own.
fn builtin(
    path: &str,
    import: &str,
    mut params: Keys,
    about: &About,
    draft: &mut Draft,
    differences: &mut Differences,
) {
    let (_, class) = import.rsplit_once(':').unwrap_or_default();
    match class {
        "LoggingMiddleware" | "create_logging_hook" | "create_tool_logging_hook" => {
            let mut config = Map::new();
            for (theirs, ours) in [("message_preview_chars", "content"), ("tool_preview_chars", "arguments")] {
                if let Some(characters) = params.take(theirs) {
                    config.insert(ours.into(), characters);
                }
            }
            for key in ["model_logger", "tool_logger", "logger_name", "log_model_calls"] {
                if params.take(key).is_some() {
                    differences.ignored(params.path(key), "is about Python's loggers", "events go to `tracing`");
                }
            }
            draft.middleware("logging", config);
        }
        "AgentEventsMiddleware" => {
            let here = "each run is a stream of events, and the application reads it";
            differences.ignored(path, "sends events to a Python function", here);
            params.skip(["session_id", "on_event"]);
        }
        "RuntimeEnvironmentMiddleware" => draft.middleware("runtime_environment", Map::new()),
        "LongToolOutputMiddleware" => long_output(&mut params, draft, differences),
        "RoundAndTokenReminderMiddleware" => {
            let mut config = Map::from_iter([("tokens".into(), json!(true))]);
            config.insert("steps".into(), about.steps.clone());
            for (theirs, ours) in [("max_context_tokens", "context_window"), ("desired_max_tokens", "room")] {
                if let Some(tokens) = params.take(theirs) {
                    config.insert(ours.into(), tokens);
                }
            }
            draft.middleware("reminders", config);
        }
        "ContextCompactionMiddleware" => compaction::translate(path, &mut params, about, draft, differences),
        "LLMFailoverMiddleware" => failover(&mut params, &about.llm, draft, differences),
        _ => return own(path, import, params, draft, differences),
    }
    params.refuse_rest(differences);
}

/// A middleware in Python: the application has one of that name.
fn own(path: &str, import: &str, params: Keys, draft: &mut Draft, differences: &mut Differences) {
    let (_, class) = import.rsplit_once(':').unwrap_or(("", import));
    let name = snake_case(class.strip_suffix("Middleware").unwrap_or(class));
    let config: Map<_, _> = params.rest().map(|(_, key, value)| (key, value)).collect();
    let nexau = format!("imports {import} from Python");
    let is_there = draft.known.as_ref().map(|known| known.has_middleware(&name));
    if is_there == Some(true) {
        differences.otherwise(format!("{path}/import"), nexau, format!("the program's middleware '{name}'"));
    } else {
        let here = format!("give the registry a middleware '{name}' that is made from the same parameters");
        differences.impossible(format!("{path}/import"), nexau, here);
    }
    if is_there == Some(false) {
        return;
    }
    draft.own_middleware(&name, if config.is_empty() { Value::Null } else { config.into() });
}

/// `HTTPCache` is `http_cache`.
fn snake_case(name: &str) -> String {
    let letters: Vec<char> = name.chars().collect();
    let mut text = String::new();
    for (at, letter) in letters.iter().enumerate() {
        let before = at.checked_sub(1).map(|at| letters[at]);
        let begins = letter.is_uppercase()
            && before.is_some_and(|before| {
                before.is_lowercase() || before != '_' && letters.get(at + 1).is_some_and(|next| next.is_lowercase())
            });
        if begins {
            text.push('_');
        }
        text.extend(letter.to_lowercase());
    }
    text
}

fn long_output(params: &mut Keys, draft: &mut Draft, differences: &mut Differences) {
    let mut config = Map::new();
    for (theirs, ours) in
        [("max_output_chars", "max_chars"), ("head_chars", "head_chars"), ("tail_chars", "tail_chars")]
    {
        if let Some(characters) = params.take(theirs) {
            config.insert(ours.into(), characters);
        }
    }
    for key in ["head_lines", "tail_lines"] {
        if params.take(key).is_some() {
            let nexau = "shows so many lines where that is more than the characters";
            differences.ignored(params.path(key), nexau, "characters alone decide, to the end of a line");
        }
    }
    if params.take("temp_dir").is_some() {
        let here = "what is left out is kept in the session, and the tool `read_output` reads it";
        differences.otherwise(params.path("temp_dir"), "keeps whole outputs in this directory", here);
    }
    let bypass: Vec<_> = params
        .list("bypass_tool_names", differences)
        .into_iter()
        .filter_map(|(_, tool)| draft.named_here(tool.as_str()?))
        .chain(["load_skill".to_owned()])
        .collect();
    config.insert("bypass".into(), bypass.into());
    draft.middleware("long_tool_output", config);
}

/// Models that take the place of one that fails.
fn failover(params: &mut Keys, main: &Value, draft: &mut Draft, differences: &mut Differences) {
    let mut fallbacks = Vec::new();
    for (path, entry) in params.list("fallback_providers", differences) {
        let mut entry = Keys::of(path, entry, differences);
        entry.skip(["name"]);
        let said = entry.take("llm_config").unwrap_or_else(|| json!({}));
        let mut whole = main.as_object().cloned().unwrap_or_default();
        whole.extend(said.as_object().cloned().unwrap_or_default());
        let mut llm = Keys::of(entry.path("llm_config"), whole.into(), differences);
        let variables = draft.fields.get("variables").cloned();
        fallbacks.push(model::named(&mut llm, variables.as_ref(), draft.known.as_ref(), differences));
        let others = said.as_object().into_iter().flatten().filter(|(key, _)| !model::NAMES.contains(&key.as_str()));
        for (key, _) in others {
            let here = "it is asked with the parameters of the agent's model";
            differences.otherwise(llm.path(key), "asks this provider so", here);
        }
        entry.refuse_rest(differences);
    }
    draft.set_in("model", "fallbacks", fallbacks);
    if params.take("trigger").is_some() {
        let here = "the next model is asked after any failure that repeating would not mend";
        differences.otherwise(params.path("trigger"), "asks the next provider after these failures alone", here);
    }
    if params.take("circuit_breaker").is_some() {
        let here = "`llm::CircuitBreaker` around a model of the registry does so";
        differences.impossible(
            params.path("circuit_breaker"),
            "leaves a provider alone that fails again and again",
            here,
        );
    }
}

fn tracers(file: &mut Keys, draft: &mut Draft, differences: &mut Differences) {
    for (path, entry) in file.list("tracers", differences) {
        let Some((import, _)) = import(&path, entry, differences) else { continue };
        if import.ends_with(":InMemoryTracer") {
            differences.ignored(path, "keeps spans in memory", "a run's events say what was done");
            continue;
        }
        let nexau = match import.ends_with(":LangfuseTracer") {
            true => "sends spans to Langfuse by its SDK".to_owned(),
            false => format!("sends spans by {import}"),
        };
        let here = "the middleware `telemetry` writes OpenTelemetry's spans; set OTEL_EXPORTER_OTLP_ENDPOINT and _HEADERS to \
                    where they go, such as Langfuse's /api/public/otel";
        differences.otherwise(path, nexau, here);
        draft.middleware("telemetry", Map::new());
    }
}
