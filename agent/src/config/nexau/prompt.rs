//! `system_prompt` and what is put into it.

use serde_json::{Value, json};

use super::{
    difference::Differences,
    draft::Draft,
    keys::{Keys, below},
};

/// Variables that NexAU adds to prompts.
const FACTS: [&str; 10] = [
    "agent_id",
    "agent_name",
    "date",
    "env_content",
    "operating_system",
    "platform",
    "shell_tool_backend",
    "timestamp",
    "username",
    "working_directory",
];

/// Translates the system prompt, its values, and what a run begins with.
pub(super) fn translate(file: &mut Keys, draft: &mut Draft, differences: &mut Differences) {
    let kind = file.text("system_prompt_type", differences);
    let is_path = match kind.as_deref() {
        None | Some("string") => false,
        Some("file" | "jinja") => true,
        Some(_) => {
            differences.impossible("/system_prompt_type", "has string, file and jinja", "it is taken for string");
            false
        }
    };
    let suffix = file.text("system_prompt_suffix", differences);
    let blocks = blocks(file, differences);
    if let [text] = blocks.as_slice()
        && !is_path
        && text.starts_with("./")
        && !text.contains(char::is_whitespace)
    {
        let here = "so it is here: if the file is meant, say `system_prompt_type: file`";
        differences.otherwise("/system_prompt", "shows the model this path as its prompt", here);
    }
    let prompt = match (blocks.as_slice(), suffix) {
        ([], None) => None,
        (blocks, suffix) => {
            let text = |block: &String| if is_path { format!("${{file.{block}}}") } else { block.clone() };
            let texts: Vec<_> = blocks.iter().map(text).collect();
            Some(texts.join("\n\n") + suffix.as_deref().unwrap_or_default())
        }
    };
    if let Some(prompt) = prompt {
        facts(&prompt, differences);
        draft.set("system_prompt", prompt);
        // Jinja puts nothing where a value is not given.
        draft.set("required_variables", "none");
    }
    values(file, draft, differences);
}

/// The texts or paths that the prompt is made of.
fn blocks(file: &mut Keys, differences: &mut Differences) -> Vec<String> {
    let items = match file.take("system_prompt") {
        None => return Vec::new(),
        Some(Value::Array(items)) => items,
        Some(one) => vec![one],
    };
    let mut texts = Vec::new();
    for (at, item) in items.into_iter().enumerate() {
        let path = below("/system_prompt", &at.to_string());
        match item {
            Value::String(text) => texts.push(text),
            Value::Object(_) => {
                let mut block = Keys::of(&path, item, differences);
                texts.extend(block.text("content", differences));
                if block.take("cache") == Some(false.into()) {
                    let here = "the middleware `prompt_caching` marks the prompt as a whole";
                    differences.ignored(block.path("cache"), "does not mark this part for the cache", here);
                }
                block.refuse_rest(differences);
            }
            _ => differences.impossible(path, "expects a text, or one with `content` and `cache`", "it is left out"),
        }
    }
    texts
}

/// Says of the values that NexAU has by itself that a run must be given them.
fn facts(template: &str, differences: &mut Differences) {
    let is_in = |name: &&&str| {
        let tags = template.split("{{").skip(1).filter_map(|rest| rest.split_once("}}"));
        tags.into_iter()
            .any(|(inside, _)| inside.split(|c: char| !c.is_alphanumeric() && c != '_').any(|w| w == **name))
    };
    let used: Vec<_> = FACTS.iter().filter(is_in).copied().collect();
    if !used.is_empty() {
        let here = format!(
            "a run is given {}, or they are empty; the middleware `runtime_environment` tells the model the date and where it is",
            used.join(", ")
        );
        differences.otherwise("/system_prompt", "puts in what it knows of the run and the machine", here);
    }
}

/// Translates the initial values of prompts and of the state.
fn values(file: &mut Keys, draft: &mut Draft, differences: &mut Differences) {
    for key in ["context", "initial_context"] {
        let Some(context) = file.object(key, differences) else { continue };
        for (_, name, value) in context.rest() {
            draft.set_in("inputs", &name, json!({"schema": {}, "default": value}));
        }
    }
    for (key, nexau) in [
        ("initial_state", "reads it from code alone, and drops it in a file"),
        ("initial_config", "reads it from code alone, and drops it in a file; nothing looks at it"),
    ] {
        let Some(values) = file.object(key, differences) else { continue };
        differences.otherwise(format!("/{key}"), nexau, "each is a key of the state, with this value at first");
        for (_, name, value) in values.rest() {
            draft.set_in("state", &name, json!({"schema": {}, "default": value}));
        }
    }
    if file.take("global_storage").is_some() {
        let here = "give the agent's builder a `GlobalStorage` that holds it";
        differences.impossible("/global_storage", "drops it in a file, and shares it among agents in code", here);
    }
}
