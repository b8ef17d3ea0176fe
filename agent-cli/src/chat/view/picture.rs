//! Images as rows: two points above one another are one character, whose colour is the upper one and whose ground the lower one.

use image::{Rgb, RgbImage};
use ratatui::{
    style::{Color, Style},
    text::{Line, Span},
};

use super::theme::Theme;
use crate::chat::picture::Picture;

pub(super) fn rows(picture: &Picture, theme: Theme, width: usize) -> Vec<Line<'static>> {
    let mut rows = vec![Line::styled(super::items::cut(&format!("▣ {}", picture.about), width), theme.dim)];
    if let (Some(points), Some(colour)) = (&picture.points, theme.image) {
        rows.extend(drawn(points, colour, u32::try_from(width).unwrap_or(u32::MAX)));
    }
    rows
}

fn drawn(points: &RgbImage, colour: fn(Rgb<u8>) -> Color, width: u32) -> Vec<Line<'static>> {
    let columns = points.width().min(width).max(1);
    let height = (points.height() * columns / points.width().max(1)).max(1);
    let at = |x: u32, y: u32| {
        let (x, y) = (x * points.width() / columns, y * points.height() / height);
        points.get_pixel_checked(x, y).map(|point| colour(*point))
    };
    let cell = |x, y| {
        let style = Style::new().fg(at(x, y).unwrap_or_default());
        Span::styled("▀", at(x, y + 1).map_or(style, |lower| style.bg(lower)))
    };
    (0..height).step_by(2).map(|y| Line::from((0..columns).map(|x| cell(x, y)).collect::<Vec<_>>())).collect()
}

/// A colour of a terminal that has all of them.
pub(super) fn full(Rgb([red, green, blue]): Rgb<u8>) -> Color {
    Color::Rgb(red, green, blue)
}

/// The nearest colour of the cube of 216 that terminals with 256 colours have.
pub(super) fn of_cube(Rgb(parts): Rgb<u8>) -> Color {
    let [red, green, blue] =
        parts.map(|part| (u16::from(part) * 5 + 127) / 255).map(|part| u8::try_from(part).unwrap_or(5));
    Color::Indexed(16 + 36 * red + 6 * green + blue)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_is_as_wide_as_the_screen_at_most_and_keeps_its_form() {
        let points = RgbImage::from_fn(40, 20, |x, _| if x < 20 { Rgb([255, 0, 0]) } else { Rgb([0, 0, 255]) });
        let rows = drawn(&points, full, 100);
        assert_eq!((rows.len(), rows[0].spans.len()), (10, 40));
        assert_eq!(rows[0].spans[0].style, Style::new().fg(Color::Rgb(255, 0, 0)).bg(Color::Rgb(255, 0, 0)));
        let rows = drawn(&points, of_cube, 10);
        assert_eq!((rows.len(), rows[0].spans.len()), (3, 10));
        assert_eq!(rows[0].spans[9].style.fg, Some(Color::Indexed(21)));
        assert_eq!(of_cube(Rgb([255, 255, 255])), Color::Indexed(231));
    }
}
