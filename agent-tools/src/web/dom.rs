//! HTML DOM, parsed and traversed without recursion, since the depth of a page is unbounded.

use std::{rc::Rc, time::Instant};

use agent_core::Result;
use html5ever::{
    ParseOpts, parse_document,
    tendril::{StrTendril, TendrilSink},
    tree_builder::TreeBuilderOpts,
};
use markup5ever_rcdom::{Node, NodeData};

use super::bounded_dom::BoundedDom;
use crate::{documents::parser_pool::in_time, text::cut};

/// Bytes parsed between two checks of the deadline. The cost of each tag may be proportional to the
/// depth of the page.
const CHUNK: usize = 4 << 10;

/// Parses a page. `noscript` content is included: no scripts run here.
///
/// # Errors
/// If the parser is not done by `end`.
///
/// # Panics
/// Silently, if the page has too many nodes.
pub(super) fn parse(html: &str, end: Instant) -> Result<Rc<Node>> {
    let tree_builder = TreeBuilderOpts { scripting_enabled: false, ..TreeBuilderOpts::default() };
    let mut parser = parse_document(BoundedDom::default(), ParseOpts { tree_builder, ..ParseOpts::default() });
    let mut rest = html;
    while !rest.is_empty() {
        in_time(end, "the page")?;
        let (chunk, more) = rest.split_at(cut(rest, CHUNK).len());
        parser.process(StrTendril::from(chunk));
        rest = more;
    }
    Ok(parser.finish().document)
}

/// Returns the name of an element; empty for other nodes.
pub(super) fn tag(node: &Node) -> &str {
    match &node.data {
        NodeData::Element { name, .. } => &name.local,
        _ => "",
    }
}

/// Returns an attribute of an element.
pub(super) fn attribute(node: &Node, name: &str) -> Option<String> {
    let NodeData::Element { attrs, .. } = &node.data else { return None };
    attrs.borrow().iter().find(|attr| &*attr.name.local == name).map(|attr| attr.value.to_string())
}

/// Sets an existing attribute of an element, or removes it.
pub(super) fn set_attribute(node: &Node, name: &str, value: Option<&str>) {
    let NodeData::Element { attrs, .. } = &node.data else { return };
    let mut attrs = attrs.borrow_mut();
    match (attrs.iter_mut().find(|attr| &*attr.name.local == name), value) {
        (Some(attr), Some(value)) => attr.value = StrTendril::from(value),
        _ => attrs.retain(|attr| &*attr.name.local != name),
    }
}

/// Returns true if the element has the class `class`.
pub(super) fn has_class(node: &Node, class: &str) -> bool {
    attribute(node, "class").is_some_and(|classes| classes.split_ascii_whitespace().any(|one| one == class))
}

/// Iterates over the node and its descendants, in document order.
pub(super) fn walk(root: &Rc<Node>) -> impl Iterator<Item = Rc<Node>> {
    let mut stack = vec![root.clone()];
    std::iter::from_fn(move || {
        let node = stack.pop()?;
        stack.extend(node.children.borrow().iter().rev().cloned());
        Some(node)
    })
}

/// Returns the text of a node, with white space collapsed.
pub(super) fn text(root: &Rc<Node>) -> String {
    let mut text = String::new();
    for node in walk(root) {
        if let NodeData::Text { contents } = &node.data {
            text.push_str(&contents.borrow());
        }
    }
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
