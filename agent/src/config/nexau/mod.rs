//! Agent files of NexAU as agent files of this framework.
//!
//! A file is translated key by key. A key with another meaning here is a [`Difference`], so that nothing is lost in
//! silence: a key that is not known, too. Nothing is read but the value that is given: files that it names are named
//! in the translation, and places for values (`${env.NAME}`, `${variables.name}`) stay as they are.

#[cfg(all(test, feature = "middleware", feature = "testing"))]
mod built;
mod compaction;
mod difference;
mod draft;
mod keys;
mod known;
mod middleware;
mod model;
mod permissions;
mod places;
mod prompt;
mod servers;
#[cfg(test)]
mod tests;
mod tools;

use serde_json::{Value, json};

pub use self::difference::{Difference, DifferenceKind};
use self::{difference::Differences, draft::Draft, keys::Keys};
pub(super) use self::{keys::UNKNOWN_KEY, known::Known, places::placed};

/// Key of a sub-agent's description for a file that has none. No file of this framework can have it.
pub(super) const FALLBACK_DESCRIPTION: &str = "nexau.description";

/// Keys that several translations read.
struct About {
    llm: Value,
    steps: Value,
    window: Option<Value>,
}

/// Translates an agent file (`type: agent`), or what a file of `type: tool` tells a model of a tool: an object with `name`,
/// `description` and `parameters`. Parts that are not NexAU's own are named, for a program that has them.
pub(super) fn translate(file: Value) -> (Value, Vec<Difference>) {
    translate_for(file, None)
}

/// The same for a program of which it is known what it has: what it lacks is left out.
pub(super) fn translate_for(file: Value, known: Option<Known>) -> (Value, Vec<Difference>) {
    let mut differences = Differences::default();
    let mut keys = Keys::of("", here(file), &mut differences);
    let kind = keys.text("type", &mut differences);
    let translated = match kind.as_deref() {
        Some("tool") => tools::file(keys, &mut differences),
        kind => {
            if kind.is_some_and(|kind| kind != "agent") {
                differences.impossible("/type", "has agent and tool", "taken for an agent");
            }
            agent(keys, known, &mut differences)
        }
    };
    (translated, differences.0)
}

/// The same with paths that begin where the file is, as all of ours do.
fn here(value: Value) -> Value {
    match value {
        Value::String(text) => text.replace("${this_file_dir}", ".").into(),
        Value::Array(items) => items.into_iter().map(here).collect(),
        Value::Object(fields) => fields.into_iter().map(|(key, value)| (key, here(value))).collect(),
        other => other,
    }
}

fn agent(mut file: Keys, known: Option<Known>, differences: &mut Differences) -> Value {
    let mut draft = Draft::of(known);
    let about = About {
        llm: file.peek("llm_config").cloned().unwrap_or_else(|| json!({})),
        steps: file.peek("max_iterations").cloned().unwrap_or_else(|| json!(100)),
        window: file.take("max_context_tokens"),
    };
    let name = file.take("name").unwrap_or_else(|| {
        differences.otherwise("/name", "makes a name up", "it is 'agent'");
        "agent".into()
    });
    draft.set("name", name);
    for key in ["description", "variables"] {
        draft.set_some(key, file.take(key));
    }
    model::translate(&mut file, &mut draft, differences);
    prompt::translate(&mut file, &mut draft, differences);
    sandbox(&mut file, &mut draft, differences);
    tools::translate(&mut file, &mut draft, differences);
    servers::translate(&mut file, &mut draft, differences);
    skills(&mut file, &mut draft, differences);
    sub_agents(&mut file, &mut draft, differences);
    middleware::translate(&mut file, &about, &mut draft, differences);
    limits(&mut file, &about, &mut draft, differences);
    for (path, plugin) in file.list("plugins", differences) {
        let used = plugin["use"].as_str().unwrap_or_default();
        let here =
            "list its tools, skills, servers and sub-agents in the file, or make a plugin of this framework of it";
        differences.impossible(path, format!("takes in what the plugin {used} brings"), here);
    }
    file.skip(["source_id", "skipped_components"]); // which NexAU writes itself
    file.refuse_rest(differences);
    draft.finish()
}

fn sandbox(file: &mut Keys, draft: &mut Draft, differences: &mut Differences) {
    let Some(mut sandbox) = file.object("sandbox_config", differences) else { return };
    draft.root = sandbox.take("work_dir");
    match sandbox.text("type", differences).as_deref() {
        None | Some("local") => {}
        Some(_) => {
            let here = "give the registry the tools of a `Workspace` and a `Shell` over a sandbox that is elsewhere";
            differences.impossible(sandbox.path("type"), "works in a machine of a service", here);
        }
    }
    if sandbox.take("envs").is_some() {
        let here = "set them where the framework runs, and let its sandbox pass them on";
        differences.impossible(sandbox.path("envs"), "sets variables for programs", here);
    }
    for (path, key, _) in sandbox.rest() {
        differences.ignored(
            path,
            format!("says {key} of its sandbox"),
            "sandboxes have limits and an end of their own",
        );
    }
}

/// Skills are one entry: each has the same tools, which an agent has once.
fn skills(file: &mut Keys, draft: &mut Draft, differences: &mut Differences) {
    let mut folders = Vec::new();
    for (path, skill) in file.list("skills", differences) {
        match skill {
            Value::String(folder) => folders.push(folder),
            other => {
                let mut skill = Keys::of(path, other, differences);
                skill.skip(["name", "source_id"]);
                folders.extend(skill.text("path", differences));
                skill.refuse_rest(differences);
            }
        }
    }
    match folders.as_slice() {
        [] => {}
        [folder] => draft.tools.push(json!({"skills": folder})),
        folders => draft.tools.push(json!({"skills": folders})),
    }
}

fn sub_agents(file: &mut Keys, draft: &mut Draft, differences: &mut Differences) {
    let most = file.take("max_running_subagents");
    let mut any = false;
    for (path, entry) in file.list("sub_agents", differences) {
        let mut entry = Keys::of(path, entry, differences);
        let (name, file) = (entry.text("name", differences), entry.text("config_path", differences));
        entry.skip(["source_id"]);
        match (name, file) {
            (Some(name), Some(_)) if draft.fields.get("sub_agents").is_some_and(|all| all.get(&name).is_some()) => {
                differences.impossible(entry.path("name"), "refuses two of one name", "the first stays");
            }
            (Some(name), Some(file)) => {
                any = true;
                let fallback = format!("Performs the tasks of the sub-agent '{name}'.");
                draft.set_in("sub_agents", &name, json!({"agent": file, FALLBACK_DESCRIPTION: fallback}));
            }
            (name, _) => {
                let missing = if name.is_none() { "name" } else { "config_path" };
                differences.missing(&entry, missing, "the sub-agent is left out");
            }
        }
        entry.refuse_rest(differences);
    }
    if any {
        let mut config = json!({"tool": "Agent", "recall": true});
        if let Some(most) = most {
            config["max_concurrent"] = most; // which NexAU documents, and never looks at
        }
        draft.middleware("delegation", config.as_object().cloned().unwrap_or_default());
        let here = "the tool `Agent` has the parameters `agent`, `message` and `id`";
        differences.otherwise("/sub_agents", "has a tool Agent with sub_agent_name, message and sub_agent_id", here);
    }
}

/// Translates the limits of a run.
fn limits(file: &mut Keys, about: &About, draft: &mut Draft, differences: &mut Differences) {
    if file.take("max_iterations").is_some() {
        draft.set("max_steps", about.steps.clone());
        let here = "it may do as many as are said";
        differences.otherwise("/max_iterations", "may call the model once less than that", here);
    }
    if let Some(seconds) = file.take("timeout") {
        draft.set_in("deadlines", "run", seconds);
        differences.otherwise("/timeout", "documents it, and never looks at it", "a run may take so many seconds");
    }
    if about.window.is_some() && draft.middleware_of("context_compaction").is_none() {
        let here = "add the middleware `context_compaction` to keep to it";
        differences.ignored("/max_context_tokens", "warns of longer conversations in its log", here);
    }
    let mut stops = Vec::new();
    for (path, tool) in file.list("stop_tools", differences) {
        let Some(here) = tool.as_str().and_then(|tool| draft.named_here(tool)) else { continue };
        match draft.may_have(&here) {
            true => stops.push(here),
            false => differences.otherwise(path, "ignores a stop tool that the agent does not have", "it is left out"),
        }
    }
    if !stops.is_empty() {
        draft.set("exit_on", stops);
    }
}
