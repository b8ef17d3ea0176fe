//! Conversion of doc comments to descriptions for the model.

use std::collections::BTreeMap;

use syn::{Attribute, Expr, ExprLit, Lit, Meta};

/// Sections for readers of the code, left out of the description.
const FOR_READERS: [&str; 4] = ["Arguments", "Errors", "Panics", "Examples"];

/// Parsed doc comment.
pub(crate) struct Docs {
    /// Description for the model.
    pub(crate) description: String,
    /// Descriptions of the parameters, from the section `# Arguments`.
    pub(crate) params: BTreeMap<String, String>,
}

/// Returns the text of a doc comment.
pub(crate) fn text(attrs: &[Attribute]) -> String {
    let lines = attrs.iter().filter_map(|attr| match &attr.meta {
        Meta::NameValue(pair) if pair.path.is_ident("doc") => match &pair.value {
            Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => Some(text.value()),
            _ => None,
        },
        _ => None,
    });
    let lines: Vec<_> = lines.map(|line| line.strip_prefix(' ').unwrap_or(&line).trim_end().to_owned()).collect();
    lines.join("\n").trim().to_owned()
}

pub(crate) fn read(attrs: &[Attribute]) -> Docs {
    let (mut description, mut arguments) = (Vec::new(), Vec::new());
    let text = text(attrs);
    let mut section = "";
    for line in text.lines() {
        if let Some(heading) = line.strip_prefix("# ") {
            section = heading.trim();
        }
        match section {
            "Arguments" => arguments.push(line),
            _ if FOR_READERS.contains(&section) => {}
            _ => description.push(line),
        }
    }
    Docs { description: description.join("\n").trim().to_owned(), params: list(&arguments) }
}

/// Parses the items of a list such as "* `name` - text"; an item may continue on the lines below
/// it.
fn list(lines: &[&str]) -> BTreeMap<String, String> {
    let mut items = BTreeMap::<String, String>::new();
    let mut current = None;
    for line in lines {
        if let Some((name, text)) = item(line) {
            items.insert(name.to_owned(), text.to_owned());
            current = Some(name);
        } else if let Some(text) = current.and_then(|name| items.get_mut(name)) {
            *text = format!("{text} {}", line.trim()).trim().to_owned();
        }
    }
    items
}

fn item(line: &str) -> Option<(&str, &str)> {
    let (name, text) = line.trim_start().strip_prefix(['*', '-'])?.trim_start().strip_prefix('`')?.split_once('`')?;
    Some((name, text.trim_start().trim_start_matches(['-', ':', '–']).trim()))
}
