//! Tables in Markdown with rows of their natural length: the converter would pad each row to the
//! widest.

use std::rc::Rc;

use htmd::{
    Element,
    element_handler::{HandlerResult, Handlers},
};
use markup5ever_rcdom::Node;

use super::dom::{tag, walk};

/// Converts a table with headers to a Markdown table; any other table is a layout, of which only
/// the content is shown.
// By value, as the trait of handlers requires.
#[allow(clippy::needless_pass_by_value)]
pub(super) fn handle(handlers: &dyn Handlers, element: Element<'_>) -> Option<HandlerResult> {
    let table = element.node;
    let within = |name: &str| walk(table).skip(1).any(|node| tag(&node) == name);
    if !within("th") || within("table") || is_in_a_cell(table) {
        return Some(handlers.walk_children(table));
    }
    let rows: Vec<Vec<String>> = walk(table)
        .filter(|node| tag(node) == "tr")
        .map(|row| {
            let cells = row.children.borrow().clone();
            let cells = cells.iter().filter(|cell| matches!(tag(cell), "td" | "th"));
            cells.map(|cell| one_line(&handlers.walk_children(cell).content)).collect()
        })
        .filter(|row: &Vec<String>| !row.is_empty())
        .collect();
    let mut markdown = String::from("\n\n");
    if let Some(caption) = walk(table).find(|node| tag(node) == "caption") {
        markdown = format!("\n\n{}\n\n", one_line(&handlers.walk_children(&caption).content));
    }
    for (i, row) in rows.iter().enumerate() {
        markdown.push_str(&format!("| {} |\n", row.join(" | ")));
        if i == 0 {
            markdown.push_str(&format!("|{}\n", " --- |".repeat(row.len())));
        }
    }
    markdown.push('\n');
    Some(markdown.into())
}

fn one_line(content: &str) -> String {
    content.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|")
}

fn is_in_a_cell(node: &Rc<Node>) -> bool {
    let parent = |node: &Rc<Node>| {
        let parent = node.parent.take();
        let above = parent.as_ref().and_then(std::rc::Weak::upgrade);
        node.parent.set(parent);
        above
    };
    std::iter::successors(parent(node), parent).any(|above| matches!(tag(&above), "td" | "th"))
}
