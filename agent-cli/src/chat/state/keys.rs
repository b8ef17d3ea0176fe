//! Handling of keys.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::{Action, Input, Kind, Mode, State, asking::Outcome, commands::is_builtin};
use crate::saved_prompts::expanded;

/// Rows that a page is scrolled by.
const PAGE: usize = 10;

impl State {
    /// Takes a key; gives what is to be done that is not of the screen alone.
    pub(in crate::chat) fn key(&mut self, key: KeyEvent) -> Option<Action> {
        let is_ctrl = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::PageUp => self.scroll += PAGE,
            KeyCode::PageDown => self.scroll = self.scroll.saturating_sub(PAGE),
            KeyCode::Char('o') if is_ctrl => self.items.fold(),
            KeyCode::Up if key.modifiers.contains(KeyModifiers::ALT) => self.items.move_focus(true),
            KeyCode::Down if key.modifiers.contains(KeyModifiers::ALT) => self.items.move_focus(false),
            KeyCode::Char('c') if is_ctrl => return self.stop(),
            _ => {
                return match &mut self.mode {
                    Mode::Write => self.write_key(key, is_ctrl),
                    Mode::Search { .. } => self.search_key(key, is_ctrl),
                    Mode::Ask(asking) => match asking.key(key) {
                        Outcome::Open => None,
                        Outcome::Answered(answers) => {
                            self.mode = Mode::Write;
                            Some(Action::Answer(answers))
                        }
                        Outcome::Left => {
                            self.mode = Mode::Write;
                            self.note("The run waits for your answer: /resume asks again.");
                            None
                        }
                    },
                };
            }
        }
        None
    }

    /// Takes what was pasted: it is text, whatever is in it.
    pub(in crate::chat) fn paste(&mut self, text: &str) -> Option<Action> {
        match &mut self.mode {
            Mode::Ask(asking) => asking.paste(text),
            Mode::Search { query, .. } => query.push_str(text),
            Mode::Write => self.input.insert(text),
        }
        None
    }

    fn stop(&mut self) -> Option<Action> {
        if self.is_running {
            return Some(Action::Interrupt);
        }
        if self.input.is_empty() {
            return Some(Action::Quit);
        }
        self.input.take();
        None
    }

    fn write_key(&mut self, key: KeyEvent, is_ctrl: bool) -> Option<Action> {
        match key.code {
            KeyCode::Enter if key.modifiers.is_empty() => return self.submit(),
            KeyCode::Enter => self.input.insert("\n"),
            KeyCode::Char('j') if is_ctrl => self.input.insert("\n"),
            KeyCode::Esc if self.is_running => return Some(Action::Interrupt),
            KeyCode::Char('d') if is_ctrl && self.input.is_empty() => return Some(Action::Quit),
            KeyCode::Char('r') if is_ctrl => self.mode = Mode::Search { query: String::new(), skip: 0 },
            KeyCode::Tab => self.complete(),
            KeyCode::Up => self.recall(true),
            KeyCode::Down => self.recall(false),
            _ => self.input.key(key),
        }
        None
    }

    fn search_key(&mut self, key: KeyEvent, is_ctrl: bool) -> Option<Action> {
        let Mode::Search { query, skip } = &mut self.mode else { return None };
        match key.code {
            KeyCode::Char('r') if is_ctrl => {
                *skip += 1;
                if self.found().is_none()
                    && let Mode::Search { skip, .. } = &mut self.mode
                {
                    *skip -= 1;
                }
            }
            KeyCode::Char(c) if !is_ctrl => {
                query.push(c);
                *skip = 0;
            }
            KeyCode::Backspace => {
                query.pop();
                *skip = 0;
            }
            KeyCode::Enter | KeyCode::Tab | KeyCode::Right => {
                if let Some(found) = self.found().map(str::to_owned) {
                    self.write(&found);
                }
                self.mode = Mode::Write;
            }
            _ => self.mode = Mode::Write,
        }
        None
    }

    fn submit(&mut self) -> Option<Action> {
        let text = self.input.take().trim().to_owned();
        (self.recalled, self.scroll) = (None, 0);
        if text.is_empty() {
            return None;
        }
        let saved = expanded(&self.prompts, &text).filter(|_| !is_builtin(&text));
        if saved.is_none() && text.starts_with('/') && !text.contains('\n') {
            return self.command(&text);
        }
        if self.said.last() != Some(&text) {
            self.said.push(text.clone());
        }
        let text = saved.unwrap_or(text);
        self.items.push(Kind::User, 0, &text);
        Some(if self.is_running { Action::Steer(text) } else { Action::Send(text) })
    }

    fn recall(&mut self, back: bool) {
        let next = match (self.recalled, back) {
            (None, true) => Some(0),
            (Some(at), true) => Some((at + 1).min(self.said.len().saturating_sub(1))),
            (None | Some(0), false) => None,
            (Some(at), false) => Some(at - 1),
        };
        let text = next.and_then(|at| self.said.iter().rev().nth(at)).cloned();
        self.recalled = next.filter(|_| text.is_some());
        self.write(&text.unwrap_or_default());
    }
}

impl Input {
    /// Takes a key that writes.
    pub(super) fn key(&mut self, key: KeyEvent) {
        let is_ctrl = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Char('a') if is_ctrl => self.home(),
            KeyCode::Char('e') if is_ctrl => self.end(),
            KeyCode::Char('w') if is_ctrl => self.rub_word(),
            KeyCode::Char('u') if is_ctrl => self.rub_line(),
            KeyCode::Char(c) if !is_ctrl => self.insert(c.encode_utf8(&mut [0; 4])),
            KeyCode::Enter => self.insert("\n"),
            KeyCode::Backspace => self.backspace(),
            KeyCode::Delete => self.delete(),
            KeyCode::Left => self.left(),
            KeyCode::Right => self.right(),
            KeyCode::Home => self.home(),
            KeyCode::End => self.end(),
            _ => {}
        }
    }
}
