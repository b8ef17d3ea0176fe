//! Area below the conversation: activity, input or question, and the meters.

use ratatui::{
    layout::Rect,
    style::Style,
    text::{Line, Span},
};
use unicode_width::UnicodeWidthStr;

use super::{
    theme::Theme,
    wrap::{Prefix, wrap},
};
use crate::{
    chat::state::{Asking, Input, Mode, State, completions},
    output::{dollars, plain},
    run::{about, always_what},
};

const SPINNER: [&str; 4] = ["⠋", "⠙", "⠸", "⠴"];

/// The column and the row of the cursor.
type Cursor = Option<(u16, u16)>;

/// The rows, and where the cursor stands in them.
pub(super) fn rows(state: &State, theme: Theme, area: Rect, ticks: usize) -> (Vec<Line<'static>>, Cursor) {
    let width = usize::from(area.width);
    let most = usize::from(area.height / 2).max(1);
    let mut rows = vec![doing(state, theme, width, ticks)];
    let cursor = match &state.mode {
        Mode::Write => {
            let known =
                completions(&state.prompts, state.input.text()).filter(|(name, ..)| *name != state.input.text());
            let known = known.map(|(name, rest, what)| one(&format!("  {name} {rest}  {what}"), theme.dim, width));
            rows.extend(known.take(most.saturating_sub(2)));
            editor(&state.input, "› ", theme, width, most, &mut rows)
        }
        Mode::Search { query, .. } => {
            let found = state.found().unwrap_or("nothing");
            rows.push(one(&format!("  {}", plain(found).replace('\n', " ")), theme.plain, width));
            editor(&Input::of(query), "search: ", theme, width, most, &mut rows)
        }
        Mode::Ask(asking) => ask(asking, theme, width, most, &mut rows),
    };
    rows.push(meters(state, theme, width));
    (rows, cursor)
}

fn one(text: &str, style: Style, width: usize) -> Line<'static> {
    Line::styled(text.chars().take(width).collect::<String>(), style)
}

fn doing(state: &State, theme: Theme, width: usize, ticks: usize) -> Line<'static> {
    let above = if state.scroll > 0 { "  (scrolled up: PageDown)" } else { "" };
    if !state.is_running {
        return one(above, theme.dim, width);
    }
    let doing = plain(&state.doing).into_owned();
    let text = format!("{} {doing} · Esc interrupts, Enter steers{above}", SPINNER[ticks / 3 % SPINNER.len()]);
    one(&text, theme.accent, width)
}

/// Input, with as many rows around the cursor as fit.
fn editor(input: &Input, mark: &str, theme: Theme, width: usize, most: usize, rows: &mut Vec<Line<'static>>) -> Cursor {
    let prefix = Prefix::hanging(mark, theme.user);
    let text = plain(input.text()).replace('\t', " ");
    let lines = wrap(&[(text, theme.plain)], &prefix, width.saturating_sub(1));
    let before = plain(&input.text()[..input.at()]).replace('\t', " ");
    let before = wrap(&[(before, theme.plain)], &prefix, width.saturating_sub(1));
    let row = before.len().saturating_sub(1).min(lines.len().saturating_sub(1));
    let column = before.last().map_or(0, Line::width);
    let first = (row + 1).saturating_sub(most);
    let at = rows.len() + row - first;
    rows.extend(lines.into_iter().skip(first).take(most));
    Some((u16::try_from(column).ok()?, u16::try_from(at).ok()?))
}

fn ask(asking: &Asking, theme: Theme, width: usize, most: usize, rows: &mut Vec<Line<'static>>) -> Cursor {
    let question = asking.question()?;
    let mut text =
        asking.part().and_then(|part| part["question"].as_str()).map_or_else(|| about(question), str::to_owned);
    for (n, option) in (1..).zip(asking.part().and_then(|part| part["options"].as_array()).into_iter().flatten()) {
        text.push_str(&format!("\n{n}  {}", option.as_str().unwrap_or_default()));
    }
    if let Some(why) = question.payload["why"].as_str() {
        text.push_str(&format!("\n({why})"));
    }
    let text = plain(&text).replace('\t', " ");
    let lines = wrap(&[(text, theme.plain)], &Prefix::hanging("? ", theme.bad), width);
    rows.extend(lines.into_iter().take(most.saturating_sub(2).max(2)));
    if let Some(problem) = &asking.problem {
        rows.push(one(&plain(problem), theme.bad, width));
    }
    let Some(input) = &asking.editor else {
        let keys = match asking.question().filter(|_| asking.can_edit()) {
            Some(question) => format!("[y]es [a]lways {}[n]o [e]dit · Esc: later", always_what(question)),
            None => "[y]es [n]o · Esc: later".to_owned(),
        };
        rows.push(one(&keys, theme.accent, width));
        return None;
    };
    let mark = if asking.can_edit() { "arguments: " } else { "answer: " };
    editor(input, mark, theme, width, most, rows)
}

/// The model, the session, the context and the money; on a narrow screen the first of these.
fn meters(state: &State, theme: Theme, width: usize) -> Line<'static> {
    let mut parts = Vec::new();
    if state.prompt > 0 {
        let thousands = |tokens: u64| format!("{:.1}k", tokens as f64 / 1e3);
        parts.push(match state.window {
            Some(window) if window > 0 => format!("{}% of {}", state.prompt * 100 / window, thousands(window)),
            _ => thousands(state.prompt),
        });
    }
    if state.usage.priced > 0 {
        let more = if state.usage.whole_cost().is_some() { "" } else { "+" };
        parts.push(format!("{}{more}", dollars(state.usage.cost)));
    }
    parts.push(state.model.clone());
    parts.push(state.session.clone());
    let mut text = String::new();
    for part in parts {
        let part = plain(&part).into_owned();
        let gap = if text.is_empty() { "" } else { " · " };
        if text.width() + gap.width() + part.width() > width {
            break;
        }
        text.push_str(gap);
        text.push_str(&part);
    }
    Line::from(Span::styled(text, theme.dim))
}
