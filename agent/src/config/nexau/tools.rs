//! `tools`, and files of `type: tool`.

use serde_json::{Map, Value, json};

use super::{
    difference::Differences,
    draft::Draft,
    keys::Keys,
    permissions::Looks::{self, Command, Host, Nothing, Path},
};

/// Module of NexAU's own tools.
const BUILTIN: &str = "nexau.archs.tool.builtin";

/// Replacement of a tool of NexAU.
#[derive(Clone, Copy)]
enum Place {
    /// A tool of the workspace.
    Workspace(&'static str, Looks),
    /// The tools that run programs.
    Shell(&'static str),
    /// A tool of this name.
    Tool(&'static str, Looks),
    /// A middleware, and the tool that it brings.
    Middleware(&'static str, &'static str),
}

/// NexAU's own tools, by the names of their functions.
const PLACES: [(&str, Place); 19] = [
    ("read_file", Place::Workspace("read_file", Path("path"))),
    ("read_many_files", Place::Workspace("read_many_files", Nothing)),
    ("read_visual_file", Place::Workspace("read_file", Path("path"))),
    ("glob", Place::Workspace("glob", Path("path"))),
    ("list_directory", Place::Workspace("list_files", Path("path"))),
    ("search_file_content", Place::Workspace("grep", Path("path"))),
    ("write_file", Place::Workspace("write_file", Path("path"))),
    ("replace", Place::Workspace("edit_file", Path("path"))),
    ("multiedit_tool", Place::Workspace("multi_edit", Path("path"))),
    ("apply_patch", Place::Workspace("apply_patch", Nothing)),
    ("run_shell_command", Place::Shell("bash")),
    ("background_task_manage_tool", Place::Shell("bash_output")),
    ("run_code_tool", Place::Shell("bash")),
    ("google_web_search", Place::Tool("web_search", Nothing)),
    ("web_fetch", Place::Tool("web_fetch", Host("url"))),
    ("ask_user", Place::Tool("ask_user", Nothing)),
    ("write_todos", Place::Middleware("todo_list", "write_todos")),
    ("save_memory", Place::Middleware("long_term_memory", "remember")),
    ("complete_task", Place::Tool("finish", Nothing)),
];

/// Translates the tools of an agent.
pub(super) fn translate(file: &mut Keys, draft: &mut Draft, differences: &mut Differences) {
    for (path, entry) in file.list("tools", differences) {
        let mut entry = Keys::of(path, entry, differences);
        let Some(name) = entry.text("name", differences) else {
            differences.missing(&entry, "name", "the tool is left out");
            continue;
        };
        let file = entry.text("yaml_path", differences);
        let binding = entry.text("binding", differences);
        let place = binding.as_deref().and_then(place);
        let here = match place {
            Some(place) => Some(builtin(&name, place, &mut entry, draft, differences)),
            None => {
                let nexau = match (&binding, &file) {
                    (Some(binding), _) => format!("calls the Python function {binding}"),
                    (None, Some(file)) => format!("calls the Python function that {file} names"),
                    (None, None) => "refuses a tool without yaml_path".to_owned(),
                };
                own(&name, nexau, &mut entry, draft, differences)
            }
        };
        settings(&name, here.as_deref(), &mut entry, draft, differences);
        draft.names.insert(name, here);
        entry.refuse_rest(differences);
    }
}

/// Puts in a tool of the program, and gives its name if there may be one.
fn own(
    name: &str,
    nexau: String,
    entry: &mut Keys,
    draft: &mut Draft,
    differences: &mut Differences,
) -> Option<String> {
    let (is_there, takes_arguments) = match &draft.known {
        Some(known) => (Some(known.has_tool(name)), known.takes_arguments(name)),
        None => (None, false),
    };
    if is_there == Some(true) {
        differences.otherwise(entry.path("binding"), nexau, format!("the program's tool '{name}'"));
    } else {
        let here = format!("give the registry a tool '{name}', or write a `command` in its place");
        differences.impossible(entry.path("binding"), nexau, here);
    }
    if is_there == Some(false) {
        entry.skip(["permissions", "extra_kwargs"]);
        return None;
    }
    let fixed = if takes_arguments { entry.take("extra_kwargs") } else { None };
    match fixed.filter(|fixed| fixed.as_object().is_some_and(|fixed| !fixed.is_empty())) {
        Some(fixed) => {
            let here = "the model neither sees nor sets these arguments";
            differences.otherwise(entry.path("extra_kwargs"), "gives the function further arguments", here);
            draft.tools.push(json!({name: {"fixed": fixed}}));
        }
        None => draft.tool(name),
    }
    draft.rules.of_tool(name, entry, Nothing, differences);
    Some(name.to_owned())
}

/// Returns the replacement of a binding, if it is one of NexAU's own tools.
fn place(binding: &str) -> Option<Place> {
    let (_, function) = binding.strip_prefix(BUILTIN).filter(|rest| rest.starts_with(['.', ':']))?.rsplit_once(':')?;
    PLACES.iter().find(|(theirs, _)| *theirs == function).map(|(_, place)| *place)
}

/// Puts in what takes the place of a tool of NexAU's own, and gives its name here.
fn builtin(name: &str, place: Place, entry: &mut Keys, draft: &mut Draft, differences: &mut Differences) -> String {
    let (here, looks, whose) = match place {
        Place::Workspace(tool, looks) => {
            draft.workspace.insert(tool);
            (tool, looks, "of the workspace")
        }
        Place::Shell(tool) => {
            draft.shell = true;
            draft.rules.allow("bash_output");
            draft.rules.allow("kill_bash");
            // Input of a program may be commands, too.
            match entry.has("permissions") {
                true => {
                    let here = "commands are asked about that no pattern allows, reading ones too";
                    differences.otherwise(entry.path("permissions"), "runs commands that only read", here);
                    draft.rules.restrict("bash_input");
                }
                false => draft.rules.allow("bash_input"),
            }
            (tool, Command("command"), "of the shell")
        }
        Place::Tool(tool, looks) => {
            draft.tool(tool);
            (tool, looks, "that comes with the framework")
        }
        Place::Middleware(middleware, tool) => {
            let config = match middleware {
                "long_term_memory" => {
                    let here = "they are kept in memories.db beside the file, under the run's user, or else 'default'";
                    differences.otherwise(entry.path("binding"), "writes memories into a file of Markdown", here);
                    json!({"tool": true, "keep": "nothing", "store": "sqlite:memories.db", "user": "default"})
                }
                _ => json!({}),
            };
            draft.middleware(middleware, config.as_object().cloned().unwrap_or_default());
            (tool, Nothing, "of a middleware")
        }
    };
    let mut described = format!("the tool `{here}` {whose}, with its own description and parameters");
    if here != name {
        described += &format!(": a prompt that says '{name}' must say `{here}`");
    }
    differences.otherwise(entry.path("binding"), format!("calls its own '{name}'"), described);
    draft.rules.of_tool(here, entry, looks, differences);
    here.to_owned()
}

/// Translates the other settings of a tool, which is called `here`.
fn settings(name: &str, here: Option<&str>, entry: &mut Keys, draft: &mut Draft, differences: &mut Differences) {
    entry.skip(["source_id"]);
    if entry.take("lazy").is_some() {
        differences.ignored(entry.path("lazy"), "imports the function when it is called", "nothing is imported");
    }
    if entry.take("as_skill") == Some(true.into()) {
        let here = "the model is told of the tool from the start";
        differences.otherwise(entry.path("as_skill"), "tells the model how to use the tool when it asks", here);
    }
    if entry.take("defer_loading") == Some(true.into())
        && let Some(here) = here
    {
        draft.deferred.push(here.to_owned());
    }
    if entry.take("extra_kwargs").is_some_and(|kwargs| kwargs.as_object().is_none_or(|kwargs| !kwargs.is_empty())) {
        let here = format!("say them where '{name}' is made, with `ToolOptions::arg`");
        differences.impossible(entry.path("extra_kwargs"), "gives the function further arguments", here);
    }
}

/// Translates a file of `type: tool` into the description of the tool for a model.
pub(super) fn file(mut file: Keys, differences: &mut Differences) -> Value {
    let mut tool = Map::new();
    for (theirs, ours) in [("name", "name"), ("description", "description"), ("input_schema", "parameters")] {
        match file.take(theirs) {
            Some(value) => drop(tool.insert(ours.to_owned(), value)),
            None => differences.missing(&file, theirs, "it is left out"),
        }
    }
    for (key, nexau, here) in [
        (
            "formatter",
            "has a Python function write what the model is shown",
            "`ToolOptions::text` says it where the tool is made",
        ),
        ("template_override", "writes the description for the mode xml", "the model is told the description"),
        ("skill_description", "is what the tool's skill is for", "the model is told the description"),
        ("search_hint", "is what a search for tools looks at", "say `hints` of the middleware `tool_search`"),
        ("defer_loading", "hides the tool until the model looks for it", "say `tools` of the middleware `tool_search`"),
        (
            "disable_parallel",
            "never runs it beside other calls",
            "`ToolOptions::serial` says it where the tool is made",
        ),
    ] {
        if file.take(key).is_some_and(|value| value != json!(false)) {
            differences.otherwise(file.path(key), nexau, here);
        }
    }
    for key in ["lazy", "builtin"] {
        if file.take(key).is_some() {
            differences.ignored(file.path(key), "is about how the function is imported", "nothing is imported");
        }
    }
    if let Some(binding) = file.text("binding", differences).filter(|binding| place(binding).is_none()) {
        let here = "give the registry a tool of this name, or write a `command` in its place";
        differences.impossible(file.path("binding"), format!("calls the Python function {binding}"), here);
    }
    file.refuse_rest(differences);
    Value::Object(tool)
}
