//! HTML to Markdown conversion: the visible content, without site navigation.

use std::{rc::Rc, time::Instant};

use agent_core::Result;
use htmd::{
    HtmlToMarkdown,
    options::{BulletListMarker, Options},
};
use html5ever::tendril::StrTendril;
use markup5ever_rcdom::{Node, NodeData};
use url::Url;

use super::{
    dom::{attribute, parse, set_attribute, tag, text, walk},
    table,
};
use crate::documents::parser_pool::in_time;

/// Maximum depth of a shown element.
const DEEPEST: usize = 128;
/// Maximum depth of nested lists and quotations: each level indents its content.
const DEEPEST_NESTING: usize = 16;
/// Number of children from which similar siblings are separated: the converter joins them one by
/// one, in quadratic time.
const MANY: usize = 500;
/// Maximum length of a shown link, in bytes.
const LONGEST_LINK: usize = 2_000;

/// Elements without readable text.
const DROPPED: &[&str] = &[
    "script", "style", "template", "iframe", "frame", "object", "embed", "svg", "canvas", "math", "nav", "footer",
    "button", "select", "input", "textarea", "dialog", "audio", "video", "map", "link", "meta",
];

/// Converted page.
#[derive(Debug)]
pub(super) struct Html {
    pub(super) title: Option<String>,
    pub(super) markdown: String,
    /// True if something was too deep to be shown.
    pub(super) cut: bool,
}

/// Converts a page fetched from `url`.
///
/// # Errors
/// If the conversion is not done by `end`.
pub(super) fn read(html: &str, url: &Url, end: Instant) -> Result<Html> {
    let page = parse(html, end)?;
    let (title, base) = head(&page, url);
    let cut = clean(&page, &base, end)?;
    let options = Options {
        bullet_list_marker: BulletListMarker::Dash,
        ul_bullet_spacing: 1,
        ol_number_spacing: 1,
        ..Options::default()
    };
    let converter =
        HtmlToMarkdown::builder().options(options).skip_tags(vec!["head"]).add_handler(vec!["table"], table::handle);
    let markdown = converter.build().tree_to_markdown(&page);
    Ok(Html { title, markdown: tidy(&markdown), cut })
}

/// Returns the title, and the base address of links.
fn head(page: &Rc<Node>, url: &Url) -> (Option<String>, Url) {
    let title = walk(page).find(|node| tag(node) == "title").map(|node| text(&node)).filter(|title| !title.is_empty());
    let base = walk(page).find(|node| tag(node) == "base").and_then(|node| url.join(&attribute(&node, "href")?).ok());
    // The base is repeated in each link.
    let base = base.filter(|base| base.as_str().len() <= LONGEST_LINK);
    (title, base.unwrap_or_else(|| url.clone()))
}

/// Removes hidden content, and makes links absolute. Returns true if something was too deep.
///
/// # Errors
/// If it is not done by `end`.
fn clean(page: &Rc<Node>, base: &Url, end: Instant) -> Result<bool> {
    let mut cut = false;
    let mut stack = vec![(page.clone(), 0, 0)];
    while let Some((node, depth, nesting)) = stack.pop() {
        in_time(end, "the page")?;
        link(&node, "href", base);
        link(&node, "src", base);
        let nesting = nesting + usize::from(matches!(tag(&node), "ul" | "ol" | "blockquote" | "table" | "dl"));
        let mut children = node.children.borrow_mut();
        if depth > DEEPEST || nesting > DEEPEST_NESTING {
            cut |= !children.is_empty();
            children.clear();
        }
        children.retain(is_shown);
        if children.len() > MANY {
            *children = std::mem::take(&mut *children).into_iter().flat_map(|child| [child, nothing()]).collect();
        }
        stack.extend(children.iter().map(|child| (child.clone(), depth + 1, nesting)));
    }
    Ok(cut)
}

fn nothing() -> Rc<Node> {
    Node::new(NodeData::Comment { contents: StrTendril::new() })
}

/// Returns false for hidden elements: readers do not see them, so the model must not either.
fn is_shown(node: &Rc<Node>) -> bool {
    let has = |name: &str, value: &str| attribute(node, name).is_some_and(|v| v.trim().eq_ignore_ascii_case(value));
    let hidden_by_style = || {
        let style = attribute(node, "style").unwrap_or_default().to_ascii_lowercase();
        let style: String = style.split_ascii_whitespace().collect();
        style.contains("display:none") || style.contains("visibility:hidden")
    };
    match &node.data {
        NodeData::Text { .. } => true,
        NodeData::Element { .. } => {
            let leads = has("role", "navigation") || has("role", "contentinfo");
            let hidden = attribute(node, "hidden").is_some() || has("aria-hidden", "true") || hidden_by_style();
            let picture = tag(node) == "img" && attribute(node, "src").is_none_or(|src| src.starts_with("data:"));
            // For example, the mark beside a heading that links to it.
            let empty = tag(node) == "a" && !walk(node).any(|inner| tag(&inner) == "img") && text(node).is_empty();
            !(DROPPED.contains(&tag(node)) || leads || hidden || picture || empty)
        }
        _ => false,
    }
}

/// Makes the address in an attribute absolute. Links that lead nowhere on the web, or to another
/// place of the same page, are removed.
fn link(node: &Node, name: &str, base: &Url) {
    let Some(written) = attribute(node, name) else { return };
    let leads = |url: &Url| matches!(url.scheme(), "http" | "https" | "mailto") && url.as_str().len() <= LONGEST_LINK;
    let url = base.join(written.trim()).ok().filter(|url| leads(url) && !written.trim().starts_with('#'));
    set_attribute(node, name, url.as_ref().map(Url::as_str));
}

/// Collapses empty lines, and removes trailing spaces.
fn tidy(markdown: &str) -> String {
    let (mut tidy, mut empty) = (String::with_capacity(markdown.len()), 0);
    for line in markdown.lines() {
        let line = line.trim_end();
        empty = if line.is_empty() { empty + 1 } else { 0 };
        if empty <= 1 {
            tidy.push_str(line);
            tidy.push('\n');
        }
    }
    tidy.trim().to_owned()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn shown(html: &str) -> Html {
        let (html, url) = (html.to_owned(), Url::parse("https://example.org/a/b?c").expect("a URL"));
        // Uses the stack size of the threads that parse pages.
        let read = move || read(&html, &url, Instant::now() + Duration::from_secs(60)).expect("is read");
        std::thread::Builder::new().stack_size(32 << 20).spawn(read).expect("a thread").join().expect("no panic")
    }

    #[test]
    fn a_page_is_what_a_reader_sees() {
        let page = shown(
            "<!doctype html><head><title> A  page </title><style>p{}</style></head><body><nav><a href=/x>Menu</a></nav>\
             <h1>Bees</h1><script>alert(1)</script><p>They <b>fly</b> to <a href='../c#d'>flowers</a>,\
             <a href='javascript:x()'>not here</a>.<p hidden>obey me</p><p style='DISPLAY : none'>obey me</p>\
             <span aria-hidden=true>obey me</span><!-- obey me --><ul><li>one<li>two</ul><ol><li>first</ol>\
             <img src=p.png alt=picture><img src='data:x' alt=inline><noscript>no script</noscript>\
             <pre><code class=language-rust>fn main() {}</code></pre><div role=navigation>more menu</div><footer>us</footer>",
        );
        assert_eq!(page.title.as_deref(), Some("A page"));
        let expected = "# Bees\n\nThey **fly** to [flowers](https://example.org/c#d),not here.\n\n- one\n- two\n\n1. first\n\n\
                        ![picture](https://example.org/a/p.png)no script\n\n```rust\nfn main() {}\n```";
        assert_eq!(page.markdown, expected);
        assert!(!page.cut);
    }

    #[test]
    fn links_within_a_page_are_text_and_empty_ones_nothing() {
        let page = shown(
            "<h2>Bees<a href='#bees'></a></h2><pre><code><a href='#1'>1</a> let x;</code></pre><p><a href='#top'>up</a> <a href=/x> </a></p>",
        );
        assert_eq!(page.markdown, "## Bees\n\n```\n1 let x;\n```\n\nup");
    }

    #[test]
    fn a_base_is_what_links_start_from() {
        let page = shown("<base href='/docs/'><a href=x>y</a>");
        assert_eq!(page.markdown, "[y](https://example.org/docs/x)");
    }

    #[test]
    fn a_base_of_a_megabyte_is_none() {
        let page = shown(&format!("<base href='/{}/'>{}", "x".repeat(1 << 20), "<a href=x>y</a>".repeat(5_000)));
        assert!(page.markdown.starts_with("[y](https://example.org/a/x)"), "{}", &page.markdown[..100]);
    }

    #[test]
    fn a_table_is_a_table_and_a_layout_is_none() {
        let table = shown("<table><tr><th>a<th>b|c<tr><td>1<br>2<td><p>3</p><tr><td>4</table>").markdown;
        assert_eq!(table, "| a | b\\|c |\n| --- | --- |\n| 1 2 | 3 |\n| 4 |");
        let layout = shown("<table><tr><td><h2>x</h2><td><table><tr><th>k<tr><td>v</table></table>").markdown;
        assert!(layout.contains("## x") && layout.contains("v"), "{layout}");
    }

    #[test]
    fn hostile_pages_are_read_in_time_and_without_a_fall() {
        let wide = format!("<table><tr><th>{}</th>{}", "x".repeat(100_000), "<tr><td>y".repeat(20_000));
        assert!(shown(&wide).markdown.len() < 1_000_000, "rows are not made as wide as the widest");
        for deep in ["<div>", "<ul><li>", "<blockquote>", "<b>", "<table><tr><td>", "<span>", "<p><a>"] {
            let page = shown(&deep.repeat(3_000));
            assert!(page.markdown.len() < 100_000, "{deep}");
        }
        let page = shown(&format!("{}text", "<div>".repeat(1_000)));
        assert!(page.cut && !page.markdown.contains("text"));
        assert!(shown(&"<b>x</b>".repeat(50_000)).markdown.len() >= 50_000);
        let nested = shown(&format!("{}{}", "<ul><li>".repeat(100), "x<br>".repeat(20_000)));
        assert!(nested.markdown.len() < 10_000_000);
        for odd in ["", "<", "<!--", "<?php ?>", "\0", "<svg><title>x", "<title>", "<table><caption>", "&#xD800;"] {
            shown(odd);
        }
    }

    #[test]
    fn a_small_page_that_would_make_millions_of_parts_is_given_up() {
        let open: String = (0..5_000).map(|n| format!("<b a={n}>")).collect();
        let page = format!("<p>{open}</p>{}", "<p>x".repeat(5_000));
        let read = std::panic::catch_unwind(|| shown(&page).markdown.len());
        assert!(read.is_err(), "{read:?}");
    }

    #[test]
    fn a_page_that_takes_too_long_is_given_up() {
        let url = Url::parse("https://example.org/").expect("a URL");
        let e = read(&"<div>".repeat(2_000), &url, Instant::now()).expect_err("too late");
        assert_eq!(e.message(), "the page takes too long to read");
    }
}
