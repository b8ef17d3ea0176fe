//! Draws the state of a chat. The output depends on the state alone; unchanged items are cached.

mod bottom;
mod items;
mod markdown;
mod picture;
mod theme;
mod wrap;

use std::{collections::HashMap, sync::Arc};

use ratatui::{
    Frame,
    layout::{Constraint, Layout, Position, Rect},
    text::Line,
    widgets::Paragraph,
};

use self::theme::Theme;
use super::state::{Item, State};
use crate::cli::ThemeName;

/// Rows of something on the screen.
type Rows = Arc<Vec<Line<'static>>>;

/// Cache of drawn items.
#[derive(Default)]
pub(super) struct View {
    /// By the item's id: its version, and its rows.
    kept: HashMap<u64, (u64, Rows)>,
    /// For which width and colours, and what had the focus.
    of: Option<(u16, ThemeName, Option<u64>)>,
    ticks: usize,
}

impl View {
    /// Draws the state into the frame, and puts its scrolling right: only here it is known how many rows there are.
    pub(super) fn draw(&mut self, frame: &mut Frame<'_>, state: &mut State) {
        let (area, theme) = (frame.area(), Theme::named(state.theme));
        self.ticks += 1;
        let of = Some((area.width, state.theme, state.items.focus));
        if self.of != of {
            self.kept.clear();
            self.of = of;
        }
        let (rows, cursor) = bottom::rows(state, theme, area, self.ticks);
        let low = u16::try_from(rows.len()).unwrap_or(u16::MAX).min(area.height);
        let [top, bottom] = Layout::vertical([Constraint::Min(0), Constraint::Length(low)]).areas(area);
        frame.render_widget(Paragraph::new(self.transcript(state, theme, top)), top);
        frame.render_widget(Paragraph::new(rows), bottom);
        if let Some((column, row)) = cursor {
            frame.set_cursor_position(Position::new(bottom.x + column, bottom.y + row));
        }
    }

    /// The rows of the conversation that are on the screen, made from the end: what is above it costs nothing.
    fn transcript(&mut self, state: &mut State, theme: Theme, area: Rect) -> Vec<Line<'static>> {
        let height = usize::from(area.height);
        if std::mem::take(&mut state.items.is_sought) {
            self.seek(state, theme, area);
        }
        let (mut shown, mut below): (Vec<Rows>, usize) = (Vec::new(), 0);
        for item in state.items.shown().rev() {
            let rows = self.rows(item, state.items.focus == Some(item.id), theme, area.width);
            below += rows.len();
            shown.push(rows);
            if below >= height + state.scroll {
                break;
            }
        }
        let all = shown.iter().rev().flat_map(|rows| rows.iter());
        state.scroll = state.scroll.min(below.saturating_sub(height));
        let skip = below.saturating_sub(height + state.scroll);
        if self.kept.len() > 4_000 {
            self.kept.clear(); // items that are gone are not drawn again
        }
        all.skip(skip).take(height).cloned().collect()
    }

    /// Scrolls to where the focus is, if it cannot be seen.
    fn seek(&mut self, state: &mut State, theme: Theme, area: Rect) {
        let (height, mut below) = (usize::from(area.height), 0);
        for item in state.items.shown().rev() {
            let has_focus = state.items.focus == Some(item.id);
            below += self.rows(item, has_focus, theme, area.width).len();
            if has_focus {
                if below > height + state.scroll || below <= state.scroll {
                    state.scroll = below.saturating_sub(height);
                }
                return;
            }
        }
    }

    fn rows(&mut self, item: &Item, has_focus: bool, theme: Theme, width: u16) -> Rows {
        match self.kept.get(&item.id) {
            Some((version, rows)) if *version == item.version => rows.clone(),
            _ => {
                let rows = Arc::new(items::rows(item, has_focus, theme, usize::from(width)));
                self.kept.insert(item.id, (item.version, rows.clone()));
                rows
            }
        }
    }
}

#[cfg(test)]
mod tests;
