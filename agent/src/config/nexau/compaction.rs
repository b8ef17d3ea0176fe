//! `ContextCompactionMiddleware`.

use serde_json::{Map, Value, json};

use super::{About, difference::Differences, draft::Draft, keys::Keys};

/// Translates the middleware that stands at `path`.
pub(super) fn translate(
    path: &str,
    params: &mut Keys,
    about: &About,
    draft: &mut Draft,
    differences: &mut Differences,
) {
    let mut config = Map::new();
    let window = params.take("max_context_tokens").or_else(|| about.window.clone());
    // The keys of the file are inherited, which NexAU documents and does not do.
    if let Some(tokens) = window {
        config.insert("max_tokens".into(), tokens);
    }
    let fraction = params.take("threshold");
    let gap = params.take("gap_threshold_minutes");
    let by_time = params.text("trigger", differences).as_deref() == Some("time_based");
    let minutes = gap.as_ref().and_then(Value::as_f64).unwrap_or(5.0);
    let trigger = match params.take("auto_compact") == Some(false.into()) {
        true => Some(json!("never")),
        false if by_time => Some(json!({"gap": minutes * 60.0})),
        false => fraction.map(|fraction| json!({"fraction": fraction})),
    };
    config.extend(trigger.map(|trigger| ("trigger".into(), trigger)));
    if let Some(emergency) = params.take("emergency_compact_enabled") {
        config.insert("emergency".into(), emergency);
    }
    config.insert("strategy".into(), strategy(params, draft, differences));
    let summary_model =
        ["summary_llm_config", "summary_model", "summary_base_url", "summary_api_key", "summary_api_type"];
    if summary_model.map(|key| params.take(key).is_some()).contains(&true) {
        let here = "the agent's own model writes them";
        differences.otherwise(format!("{path}/params/summary_model"), "has another model write summaries", here);
    }
    if params.take("retry_attempts").is_some() {
        differences.ignored(
            params.path("retry_attempts"),
            "is for the model of summaries",
            "the model has its `retries`",
        );
    }
    if params.take("save_history") == Some(false.into()) {
        let here = "they are kept in the session, where the model can search them";
        differences.otherwise(params.path("save_history"), "keeps nothing of the messages that it removes", here);
    }
    draft.middleware("context_compaction", config);
}

fn strategy(params: &mut Keys, draft: &Draft, differences: &mut Differences) -> Value {
    let iterations = params.take("keep_iterations").unwrap_or_else(|| json!(3));
    let keep = match params.take("keep_user_rounds").filter(|rounds| *rounds != json!(0)) {
        Some(rounds) => json!({"user_rounds": rounds}),
        None => json!({"iterations": iterations}),
    };
    let prompt = params.text("compact_prompt_path", differences);
    let only = params.has("compactable_tools").then(|| params.list("compactable_tools", differences));
    // The guide has a window, which the code refuses.
    let window = params.take("window_size");
    match params.text("compaction_strategy", differences).as_deref() {
        _ if window.is_some() => json!({"sliding_window": {"window_size": window}}),
        Some("llm_summary" | "sliding_window") => {
            let mut summary = json!({"keep": keep});
            if let Some(path) = prompt {
                summary["prompt"] = format!("${{file.{path}}}").into();
            }
            json!({"summary": summary})
        }
        other => {
            if other.is_some_and(|other| other != "tool_result_compaction") {
                let here = "taken for tool_result_compaction";
                differences.impossible(params.path("compaction_strategy"), "has no such strategy", here);
            }
            let mut clear = json!({"keep": keep, "placeholder": "Tool call result has been compacted"});
            if let Some(only) = only {
                let here = only.iter().filter_map(|(_, tool)| draft.named_here(tool.as_str()?));
                clear["only"] = here.collect();
            }
            json!({"clear_tool_results": clear})
        }
    }
}
