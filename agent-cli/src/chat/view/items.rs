//! Items as rows.

use ratatui::{
    style::Modifier,
    text::{Line, Span},
};

use super::{
    markdown, picture,
    theme::Theme,
    wrap::{Prefix, wrap},
};
use crate::{
    chat::state::{Item, Kind, Stage},
    output::{line, plain},
};

/// Rows of an unfolded text at most; more is a matter for `agent inspect`.
const MOST_ROWS: usize = 400;
/// Rows of a failure that is folded.
const FEW_ROWS: usize = 3;

pub(super) fn rows(item: &Item, has_focus: bool, theme: Theme, width: usize) -> Vec<Line<'static>> {
    let text = clean(&item.text.text());
    let text = text.trim_end();
    let mut rows = match &item.kind {
        Kind::User => wrap(&[(text.to_owned(), theme.user)], &Prefix::hanging("› ", theme.user), width),
        Kind::Answer if item.depth > 0 => folded_out(text, &format!("{}│ ", indent(item)), theme, width, MOST_ROWS),
        Kind::Answer => markdown::lines(text, theme, width),
        Kind::Note => wrap(&[(text.to_owned(), theme.dim)], &Prefix::default(), width),
        Kind::Problem => wrap(&[(text.to_owned(), theme.bad)], &Prefix::hanging("! ", theme.bad), width),
        Kind::Agent => {
            vec![Line::styled(cut(&format!("{}{} {text}", indent(item), fold_mark(item)), width), theme.accent)]
        }
        Kind::Thought => thought(item, text, theme, width),
        Kind::Image(shown) => picture::rows(shown, theme, width),
        Kind::Tool { name, arguments, stage } => tool(item, (name, arguments, *stage), text, theme, width),
    };
    if has_focus {
        for span in rows.first_mut().into_iter().flat_map(|row| &mut row.spans) {
            span.style = span.style.add_modifier(Modifier::REVERSED);
        }
    }
    let is_apart = matches!(item.kind, Kind::User | Kind::Answer | Kind::Note | Kind::Problem | Kind::Image(_));
    if is_apart && item.depth == 0 {
        rows.push(Line::default());
    }
    rows
}

fn indent(item: &Item) -> String {
    "  ".repeat(item.depth.min(8) as usize)
}

/// Text that a terminal can show unchanged.
fn clean(text: &str) -> String {
    plain(text).replace('\t', "    ")
}

pub(super) fn cut(text: &str, width: usize) -> String {
    text.chars().take(width).collect()
}

fn fold_mark(item: &Item) -> &'static str {
    if item.is_unfolded { "▾" } else { "▸" }
}

fn thought(item: &Item, text: &str, theme: Theme, width: usize) -> Vec<Line<'static>> {
    let head = format!("{} thought", fold_mark(item));
    let first = if item.is_unfolded { head } else { format!("{head}: {}", line(text, width.saturating_sub(14))) };
    let mut rows = vec![Line::styled(cut(&first, width), theme.dim)];
    if item.is_unfolded {
        rows.extend(folded_out(text, "  ", theme, width, MOST_ROWS));
    }
    rows
}

fn tool(
    item: &Item,
    (name, arguments, stage): (&str, &str, Stage),
    text: &str,
    theme: Theme,
    width: usize,
) -> Vec<Line<'static>> {
    let indent = indent(item);
    let (mark, style) = match stage {
        Stage::Waits => ("·", theme.dim),
        Stage::Runs => ("…", theme.accent),
        Stage::Done => ("✓", theme.good),
        Stage::Failed => ("✗", theme.bad),
    };
    let name = cut(&clean(name), width);
    let head = format!("{indent}{} {mark} ", fold_mark(item));
    let room = width.saturating_sub(head.chars().count() + name.chars().count() + 1);
    let about = cut(&line(arguments, room.saturating_sub(1)), room);
    let first =
        vec![Span::styled(head, style), Span::styled(name, theme.accent), Span::styled(format!(" {about}"), theme.dim)];
    let mut rows = vec![Line::from(first)];
    let inside = format!("{indent}  │ ");
    if item.is_unfolded {
        let pretty = serde_json::from_str::<serde_json::Value>(arguments);
        let pretty = pretty.and_then(|value| serde_json::to_string_pretty(&value));
        rows.extend(folded_out(
            &clean(&pretty.unwrap_or_else(|_| arguments.to_owned())),
            &inside,
            theme,
            width,
            MOST_ROWS,
        ));
        rows.extend(folded_out(text, &inside, theme, width, MOST_ROWS));
    } else if stage == Stage::Failed {
        rows.extend(folded_out(text, &inside, theme, width, FEW_ROWS));
    }
    rows
}

/// The first rows and the last of a text; how many are between them is said.
fn folded_out(text: &str, prefix: &str, theme: Theme, width: usize, most: usize) -> Vec<Line<'static>> {
    if text.is_empty() {
        return Vec::new();
    }
    let prefix = Prefix::same(prefix, theme.dim);
    let rows = |lines: &[&str]| wrap(&[(lines.join("\n"), theme.plain)], &prefix, width);
    let lines: Vec<_> = text.split('\n').collect();
    let mut shown = if lines.len() <= most {
        rows(&lines)
    } else {
        let half = (most / 2).max(1);
        let left_out = lines.len() - 2 * half;
        let mut shown = rows(&lines[..half]);
        shown.extend(wrap(&[(format!("… {left_out} lines …"), theme.dim)], &prefix, width));
        shown.extend(rows(&lines[lines.len() - half..]));
        shown
    };
    if shown.len() > 4 * most {
        shown.drain(2 * most..shown.len() - 2 * most);
    }
    shown
}
