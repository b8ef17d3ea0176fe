//! Colours.

use ratatui::style::{Color, Modifier, Style};

use crate::cli::ThemeName;

/// How each kind of text looks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Theme {
    pub(super) user: Style,
    pub(super) plain: Style,
    pub(super) dim: Style,
    pub(super) code: Style,
    pub(super) accent: Style,
    pub(super) good: Style,
    pub(super) bad: Style,
}

impl Theme {
    pub(super) fn named(name: ThemeName) -> Self {
        let colours = |user, dim, code, accent, good, bad| {
            let of = |colour| Style::new().fg(colour);
            Self {
                user: of(user).add_modifier(Modifier::BOLD),
                plain: Style::new(),
                dim: of(dim),
                code: of(code),
                accent: of(accent),
                good: of(good),
                bad: of(bad),
            }
        };
        match name {
            ThemeName::Dark => colours(
                Color::LightGreen,
                Color::DarkGray,
                Color::LightYellow,
                Color::LightCyan,
                Color::Green,
                Color::LightRed,
            ),
            ThemeName::Light => {
                colours(Color::Green, Color::Gray, Color::Magenta, Color::Blue, Color::Green, Color::Red)
            }
            ThemeName::None => Self {
                user: Style::new().add_modifier(Modifier::BOLD),
                plain: Style::new(),
                dim: Style::new(),
                code: Style::new(),
                accent: Style::new().add_modifier(Modifier::BOLD),
                good: Style::new(),
                bad: Style::new().add_modifier(Modifier::BOLD),
            },
        }
    }
}
