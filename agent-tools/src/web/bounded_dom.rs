//! [`BoundedDom`]: DOM tree with a maximum of nodes.

use std::{borrow::Cow, cell::Cell, panic::resume_unwind};

use html5ever::{
    Attribute, ExpandedName, QualName,
    interface::{ElementFlags, NodeOrText, QuirksMode, TreeSink},
    tendril::StrTendril,
};
use markup5ever_rcdom::{Handle, RcDom};

/// Maximum of nodes of a page. The parser recreates formatting elements for each paragraph, so a
/// page of 100 KB may need millions.
const MOST_NODES: usize = 500_000;

/// DOM tree that counts its nodes. Unwinding is the only means to stop the parser within a chunk;
/// the panic is not reported.
#[derive(Default)]
pub(super) struct BoundedDom {
    dom: RcDom,
    nodes: Cell<usize>,
}

impl BoundedDom {
    fn count(&self) {
        let nodes = self.nodes.get() + 1;
        if nodes > MOST_NODES {
            resume_unwind(Box::new("the page has too many parts"));
        }
        self.nodes.set(nodes);
    }
}

impl TreeSink for BoundedDom {
    type Handle = Handle;
    type Output = RcDom;
    type ElemName<'a> = ExpandedName<'a>;

    fn finish(self) -> RcDom {
        self.dom
    }

    fn create_element(&self, name: QualName, attrs: Vec<Attribute>, flags: ElementFlags) -> Handle {
        self.count();
        self.dom.create_element(name, attrs, flags)
    }

    fn create_comment(&self, text: StrTendril) -> Handle {
        self.count();
        self.dom.create_comment(text)
    }

    fn create_pi(&self, target: StrTendril, data: StrTendril) -> Handle {
        self.count();
        self.dom.create_pi(target, data)
    }

    fn parse_error(&self, _: Cow<'static, str>) {
        // Pages have many parse errors, and nothing reads them.
    }

    fn get_document(&self) -> Handle {
        self.dom.get_document()
    }

    fn elem_name<'a>(&'a self, target: &'a Handle) -> ExpandedName<'a> {
        self.dom.elem_name(target)
    }

    fn append(&self, parent: &Handle, child: NodeOrText<Handle>) {
        self.dom.append(parent, child);
    }

    fn append_based_on_parent_node(&self, element: &Handle, before: &Handle, child: NodeOrText<Handle>) {
        self.dom.append_based_on_parent_node(element, before, child);
    }

    fn append_doctype_to_document(&self, name: StrTendril, public_id: StrTendril, system_id: StrTendril) {
        self.dom.append_doctype_to_document(name, public_id, system_id);
    }

    fn get_template_contents(&self, target: &Handle) -> Handle {
        self.dom.get_template_contents(target)
    }

    fn same_node(&self, x: &Handle, y: &Handle) -> bool {
        self.dom.same_node(x, y)
    }

    fn set_quirks_mode(&self, mode: QuirksMode) {
        self.dom.set_quirks_mode(mode);
    }

    fn append_before_sibling(&self, sibling: &Handle, new: NodeOrText<Handle>) {
        self.dom.append_before_sibling(sibling, new);
    }

    fn add_attrs_if_missing(&self, target: &Handle, attrs: Vec<Attribute>) {
        self.dom.add_attrs_if_missing(target, attrs);
    }

    fn remove_from_parent(&self, target: &Handle) {
        self.dom.remove_from_parent(target);
    }

    fn reparent_children(&self, node: &Handle, parent: &Handle) {
        self.dom.reparent_children(node, parent);
    }

    fn is_mathml_annotation_xml_integration_point(&self, target: &Handle) -> bool {
        self.dom.is_mathml_annotation_xml_integration_point(target)
    }
}
