//! Colours.

use std::sync::LazyLock;

use image::Rgb;
use ratatui::style::{Color, Modifier, Style};

use super::picture;

use crate::cli::ThemeName;

/// True if the terminal says that it has all colours.
fn has_all_colours() -> bool {
    static ALL: LazyLock<bool> =
        LazyLock::new(|| std::env::var("COLORTERM").is_ok_and(|says| ["truecolor", "24bit"].contains(&says.as_str())));
    *ALL
}

/// Styles of the kinds of text.
#[derive(Clone, Copy, Debug)]
pub(super) struct Theme {
    pub(super) user: Style,
    pub(super) plain: Style,
    pub(super) dim: Style,
    pub(super) code: Style,
    pub(super) accent: Style,
    pub(super) good: Style,
    pub(super) bad: Style,
    /// Colour mode of images; without one, images are not drawn.
    pub(super) image: Option<fn(Rgb<u8>) -> Color>,
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
                image: Some(if has_all_colours() { picture::full } else { picture::of_cube }),
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
                colours(Color::Green, Color::DarkGray, Color::Magenta, Color::Blue, Color::Green, Color::Red)
            }
            ThemeName::None => Self {
                user: Style::new().add_modifier(Modifier::BOLD),
                plain: Style::new(),
                dim: Style::new(),
                code: Style::new(),
                accent: Style::new().add_modifier(Modifier::BOLD),
                good: Style::new(),
                bad: Style::new().add_modifier(Modifier::BOLD),
                image: None,
            },
        }
    }
}
