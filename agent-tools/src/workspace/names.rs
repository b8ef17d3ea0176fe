//! Parameter aliases that models know from the tools they were trained with.

use agent_core::ToolOptions;

const PATH: &[(&str, &str)] = &[("file_path", "path")];

/// Aliases for a text replacement.
const CHANGE: &[(&str, &str)] =
    &[("old_string", "old_text"), ("new_string", "new_text"), ("old_str", "old_text"), ("new_str", "new_text")];

/// Aliases for a notebook cell.
const CELL: &[(&str, &str)] = &[
    ("notebook_path", "path"),
    ("cell_id", "cell"),
    ("cell_number", "cell"),
    ("edit_mode", "mode"),
    ("new_source", "source"),
];

/// Adds the aliases for a tool with a file path.
pub(super) fn of_file(options: ToolOptions) -> ToolOptions {
    add(options, PATH)
}

/// Adds the aliases for a tool that replaces texts of a file.
pub(super) fn of_change(options: ToolOptions) -> ToolOptions {
    add(of_file(options), CHANGE)
}

/// Adds the aliases for a tool that edits cells of a notebook.
pub(super) fn of_cell(options: ToolOptions) -> ToolOptions {
    add(of_file(options), CELL)
}

fn add(options: ToolOptions, aliases: &[(&str, &str)]) -> ToolOptions {
    aliases.iter().fold(options, |options, (alias, name)| options.alias(*alias, *name))
}
