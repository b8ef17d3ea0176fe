//! Names of parameters that models know from the tools that they were trained with.

use agent_core::ToolOptions;

const PATH: &[(&str, &str)] = &[("file_path", "path")];

/// Of a text that takes the place of another.
const CHANGE: &[(&str, &str)] =
    &[("old_string", "old_text"), ("new_string", "new_text"), ("old_str", "old_text"), ("new_str", "new_text")];

/// Of a cell of a notebook.
const CELL: &[(&str, &str)] = &[
    ("notebook_path", "path"),
    ("cell_id", "cell"),
    ("cell_number", "cell"),
    ("edit_mode", "mode"),
    ("new_source", "source"),
];

/// For a tool that has a file's path.
pub(super) fn of_file(options: ToolOptions) -> ToolOptions {
    add(options, PATH)
}

/// For a tool that changes texts of a file.
pub(super) fn of_change(options: ToolOptions) -> ToolOptions {
    add(of_file(options), CHANGE)
}

/// For a tool that changes cells of a notebook.
pub(super) fn of_cell(options: ToolOptions) -> ToolOptions {
    add(of_file(options), CELL)
}

fn add(options: ToolOptions, aliases: &[(&str, &str)]) -> ToolOptions {
    aliases.iter().fold(options, |options, (alias, name)| options.alias(*alias, *name))
}
