//! `edit_notebook`.

use std::{fmt, ops::Range};

use agent_core::{Error, Result, Tool, ToolRequest, run::new_id};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json, ser::PrettyFormatter, value::RawValue};

use super::{
    edit::CHANGED,
    files::{Files, shown},
    names,
    seen::Seen,
};
use crate::{ToolExt, blocking::blocking, from_fn};

#[derive(Deserialize, JsonSchema)]
struct EditNotebook {
    /// The notebook (.ipynb), relative to the root of the workspace.
    path: String,
    /// The cell: its id, or its number from 0. Inserting puts the new cell before it; without it, at the end.
    cell: Option<Wanted>,
    /// The kind of change. Default: replace.
    #[serde(default)]
    mode: Mode,
    /// The new source of the cell. Replacing without it keeps the source, and changes the kind alone.
    source: Option<String>,
    /// The kind of the cell; a new one is code unless it is said.
    cell_type: Option<CellType>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(untagged)]
enum Wanted {
    Id(String),
    Number(u64),
}

impl fmt::Display for Wanted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Id(id) => f.write_str(id),
            Self::Number(number) => number.fmt(f),
        }
    }
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
        blocking(move || edit(&files, &args, &Seen::new(&files, &req.cx)))
    })
    .with_options(|o| names::of_cell(o.serial()))
}

/// Relevant part of a notebook's text: all other bytes stay unchanged.
#[derive(Deserialize)]
struct Notebook<'a> {
    #[serde(borrow)]
    cells: &'a RawValue,
    #[serde(default)]
    nbformat_minor: u64,
}

fn edit(files: &Files, args: &EditNotebook, seen: &Seen<'_>) -> Result<String> {
    let path = files.relative(&args.path)?;
    let _changing = files.changing();
    let text = files.read_text(&path)?;
    let no_notebook = |e| Error::tool(format!("'{}' is no notebook: {e}", shown(&path)));
    let notebook: Notebook<'_> = serde_json::from_str(&text).map_err(no_notebook)?;
    let cells: Vec<&RawValue> = serde_json::from_str(notebook.cells.get()).map_err(no_notebook)?;
    let at = args.cell.as_ref().map(|cell| place(&cells, &cell.to_string())).transpose()?;
    if let Some(Place { by_number: true, .. }) = at {
        // Another cell may have that number by now.
        seen.check(&path, text.as_bytes())?;
    }
    let places: Vec<_> = cells.iter().map(|cell| within(&text, cell)).collect();
    let (range, new, done) = match (args.mode, at.map(|place| place.at)) {
        (Mode::Insert, at) => {
            let new = written(&new_cell(args, notebook.nbformat_minor));
            let (at, all) = (at.unwrap_or(cells.len()), within(&text, notebook.cells));
            let (range, new) = match (places.get(at), places.last()) {
                (Some(next), _) => (next.start..next.start, format!("{new},\n  ")),
                (None, Some(last)) => (last.end..last.end, format!(",\n  {new}")),
                (None, None) => (all, format!("[\n  {new}\n ]")),
            };
            (range, new, format!("inserted cell {at}"))
        }
        (_, None) => return Err(Error::tool("say which cell is meant: its id, or its number from 0")),
        (Mode::Delete, Some(at)) => {
            let range = match (at.checked_sub(1).and_then(|before| places.get(before)), places.get(at + 1)) {
                (_, Some(next)) => places[at].start..next.start,
                (Some(before), None) => before.end..places[at].end,
                (None, None) => places[at].clone(),
            };
            (range, String::new(), format!("deleted cell {at}"))
        }
        (Mode::Replace, Some(at)) => {
            (places[at].clone(), written(&replaced(cells[at], args)?), format!("replaced cell {at}"))
        }
    };
    let edited = [&text[..range.start], &new, &text[range.end..]].concat();
    let note = if seen.is_outdated(&path, text.as_bytes()) { CHANGED } else { "" };
    files.replace(&path, edited.as_bytes())?;
    seen.changed(&path, text.as_bytes(), edited.as_bytes());
    Ok(format!("{done} of {}{note}", shown(&path)))
}

struct Place {
    at: usize,
    by_number: bool,
}

/// Finds a cell, by id first: an id may look like a number.
fn place(cells: &[&RawValue], wanted: &str) -> Result<Place> {
    #[derive(Deserialize)]
    struct Id {
        id: Option<String>,
    }
    let has_id =
        |cell: &&RawValue| serde_json::from_str::<Id>(cell.get()).is_ok_and(|cell| cell.id.as_deref() == Some(wanted));
    if let Some(at) = cells.iter().position(has_id) {
        return Ok(Place { at, by_number: false });
    }
    let at = wanted.trim().parse().ok().filter(|at| *at < cells.len());
    at.map(|at| Place { at, by_number: true }).ok_or_else(|| {
        Error::tool(format!("there is no cell '{wanted}': the notebook has {} cells, numbered from 0", cells.len()))
    })
}

/// Returns the range of a value in the text that it was parsed from.
fn within(text: &str, value: &RawValue) -> Range<usize> {
    let start = value.get().as_ptr() as usize - text.as_ptr() as usize;
    start..start + value.get().len()
}

fn new_cell(args: &EditNotebook, format: u64) -> Value {
    let mut cell = json!({"metadata": {}, "source": source(args.source.as_deref().unwrap_or_default())});
    set_type(&mut cell, args.cell_type.unwrap_or(CellType::Code));
    // From format 4.5 on, each cell has an id.
    if format >= 5 {
        cell["id"] = new_id().into();
    }
    cell
}

fn replaced(cell: &RawValue, args: &EditNotebook) -> Result<Value> {
    let mut cell: Value =
        serde_json::from_str(cell.get()).map_err(|e| Error::tool(format!("the cell is damaged: {e}")))?;
    if !cell.is_object() {
        return Err(Error::tool("the cell is damaged: it is no object"));
    }
    match &args.source {
        Some(text) => cell["source"] = source(text),
        None if args.cell_type.is_none() => return Err(Error::tool("say what is to be changed: source, or cell_type")),
        None => {}
    }
    let now = match cell["cell_type"].as_str() {
        Some("markdown") => CellType::Markdown,
        Some("raw") => CellType::Raw,
        _ => CellType::Code,
    };
    set_type(&mut cell, args.cell_type.unwrap_or(now));
    Ok(cell)
}

/// Sets the type of a cell. Outputs and the execution count of the old source are cleared; only
/// code cells have them.
fn set_type(cell: &mut Value, of: CellType) {
    let Some(cell) = cell.as_object_mut() else { return };
    let name = match of {
        CellType::Code => "code",
        CellType::Markdown => "markdown",
        CellType::Raw => "raw",
    };
    cell.insert("cell_type".to_owned(), name.into());
    cell.remove("outputs");
    cell.remove("execution_count");
    if matches!(of, CellType::Code) {
        cell.insert("outputs".to_owned(), json!([]));
        cell.insert("execution_count".to_owned(), Value::Null);
    }
}

/// Returns a source in the notebook format: a list of lines with their line endings.
fn source(text: &str) -> Value {
    text.split_inclusive('\n').collect()
}

/// Serialises a cell as Jupyter does: sorted fields, indentation of one space per level, nested two
/// levels deep.
fn written(cell: &Value) -> String {
    let mut sorted = cell.clone();
    sorted.sort_all_objects();
    let mut bytes = Vec::new();
    let mut writer = serde_json::Serializer::with_formatter(&mut bytes, PrettyFormatter::with_indent(b" "));
    serde::Serialize::serialize(&sorted, &mut writer).expect("it is JSON");
    // JSON strings contain no raw line feed.
    String::from_utf8(bytes).expect("JSON is text").replace('\n', "\n  ")
}
