//! `edit_notebook`.

use agent_core::{Error, Result, Tool, ToolOptions, ToolRequest};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json, ser::PrettyFormatter};

use super::{
    files::{Files, shown},
    seen::Seen,
};
use crate::{ToolExt, blocking::blocking, from_fn};

#[derive(Deserialize, JsonSchema)]
struct EditNotebook {
    /// The notebook (.ipynb), relative to the root of the workspace.
    path: String,
    /// The cell: its id, or its number from 0. Inserting puts the new cell before it; without it, at the end.
    cell: Option<String>,
    /// What is done. Default: replace.
    #[serde(default)]
    mode: Mode,
    /// The new source of the cell.
    #[serde(default)]
    source: String,
    /// The kind of the cell; a new one is code unless it is said.
    cell_type: Option<CellType>,
}

#[derive(Clone, Copy, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Mode {
    #[default]
    Replace,
    Insert,
    Delete,
}

#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum CellType {
    Code,
    Markdown,
    Raw,
}

pub(super) fn tool(files: Files) -> impl Tool {
    let description = "Replaces, inserts or deletes a cell of a Jupyter notebook. What a cell had put out is removed when its source changes.";
    from_fn("edit_notebook", description, move |args: EditNotebook, req: ToolRequest| {
        let files = files.clone();
        blocking(move || edit(&files, &args, &Seen::of(&files, &req.cx)))
    })
    .with_options(ToolOptions::serial)
}

fn edit(files: &Files, args: &EditNotebook, seen: &Seen) -> Result<String> {
    let path = files.relative(&args.path)?;
    let _changing = files.changing();
    let mut notebook: Value = serde_json::from_str(&files.read_text(&path)?)
        .map_err(|e| Error::tool(format!("'{}' is no notebook: {e}", shown(&path))))?;
    let format = notebook["nbformat_minor"].as_u64().unwrap_or_default();
    let cells =
        notebook["cells"].as_array_mut().ok_or_else(|| Error::tool(format!("'{}' has no cells", shown(&path))))?;
    let at = match &args.cell {
        Some(cell) => Some(place(cells, cell)?),
        None => None,
    };
    let done = match (args.mode, at) {
        (Mode::Insert, at) => {
            let at = at.unwrap_or(cells.len());
            cells.insert(at, new_cell(args, format));
            format!("inserted cell {at}")
        }
        (_, None) => return Err(Error::tool("say which cell is meant: its id, or its number from 0")),
        (Mode::Delete, Some(at)) => {
            cells.remove(at);
            format!("deleted cell {at}")
        }
        (Mode::Replace, Some(at)) => {
            replace(&mut cells[at], args);
            format!("replaced cell {at}")
        }
    };
    let text = written(&notebook);
    files.replace(&path, text.as_bytes())?;
    seen.note(&path, text.as_bytes());
    Ok(format!("{done} of {}", shown(&path)))
}

/// By id first: one may look like a number.
fn place(cells: &[Value], cell: &str) -> Result<usize> {
    let by_id = cells.iter().position(|one| one["id"] == cell);
    by_id.or_else(|| cell.trim().parse().ok().filter(|at| *at < cells.len())).ok_or_else(|| {
        Error::tool(format!("there is no cell '{cell}': the notebook has {} cells, numbered from 0", cells.len()))
    })
}

fn new_cell(args: &EditNotebook, format: u64) -> Value {
    let mut cell = json!({"metadata": {}, "source": source(&args.source)});
    set_type(&mut cell, args.cell_type.unwrap_or(CellType::Code));
    // From format 4.5 on, each cell has an id.
    if format >= 5 {
        cell["id"] = agent_core::run::new_id().rsplit('-').next().unwrap_or_default().into();
    }
    cell
}

fn replace(cell: &mut Value, args: &EditNotebook) {
    cell["source"] = source(&args.source);
    let now = match cell["cell_type"].as_str() {
        Some("markdown") => CellType::Markdown,
        Some("raw") => CellType::Raw,
        _ => CellType::Code,
    };
    set_type(cell, args.cell_type.unwrap_or(now));
}

/// Code has outputs and the number of its run, and nothing else has them.
fn set_type(cell: &mut Value, of: CellType) {
    let Some(cell) = cell.as_object_mut() else { return };
    let name = match of {
        CellType::Code => "code",
        CellType::Markdown => "markdown",
        CellType::Raw => "raw",
    };
    cell.insert("cell_type".to_owned(), name.into());
    if matches!(of, CellType::Code) {
        cell.extend(Map::from_iter([("outputs".to_owned(), json!([])), ("execution_count".to_owned(), Value::Null)]));
    } else {
        cell.remove("outputs");
        cell.remove("execution_count");
    }
}

/// A source as notebooks keep it: a list of lines with their ends.
fn source(text: &str) -> Value {
    text.split_inclusive('\n').collect()
}

/// As Jupyter writes it: fields in the order of their names, one space for each level.
fn written(notebook: &Value) -> String {
    let mut bytes = Vec::new();
    let mut writer = serde_json::Serializer::with_formatter(&mut bytes, PrettyFormatter::with_indent(b" "));
    serde::Serialize::serialize(&sorted(notebook), &mut writer).expect("it is JSON");
    String::from_utf8(bytes).expect("JSON is text") + "\n"
}

/// Also where a program's features keep fields in the order in which they came.
fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let mut fields: Vec<_> = fields.iter().map(|(name, value)| (name.clone(), sorted(value))).collect();
            fields.sort_by(|a, b| a.0.cmp(&b.0));
            Value::Object(fields.into_iter().collect())
        }
        Value::Array(items) => items.iter().map(sorted).collect(),
        other => other.clone(),
    }
}
