//! A screen of tmux, with its colours, as a picture.

use std::fmt::Write;

const CELL: (f32, f32) = (8.0, 17.0);
const GROUND: &str = "#16181d";
const TEXT: &str = "#d7dae0";
/// The sixteen colours that have names.
const NAMED: [&str; 16] = [
    "#1e2127", "#e06c75", "#7fb36b", "#d19a66", "#61afef", "#c678dd", "#56b6c2", "#abb2bf", "#6b7280", "#f08a92",
    "#98c379", "#e5c07b", "#8cc4ff", "#d7a1e8", "#7fd4de", "#ffffff",
];

/// Font metrics.
#[derive(Clone, Default, PartialEq)]
struct Look {
    colour: Option<String>,
    ground: Option<String>,
    is_bold: bool,
    is_reversed: bool,
}

/// The rows of a screen (`tmux capture-pane -p -e`) as SVG.
pub(crate) fn picture(screen: &str, columns: usize) -> String {
    let rows: Vec<_> = screen.trim_end_matches('\n').split('\n').collect();
    let (width, height) = (columns as f32 * CELL.0 + 24.0, rows.len() as f32 * CELL.1 + 24.0);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" font-family=\"monospace\" font-size=\"13\">\n\
         <rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"{GROUND}\"/>\n"
    );
    let mut look = Look::default();
    for (y, row) in rows.iter().enumerate() {
        let top = 12.0 + y as f32 * CELL.1;
        let mut column = 0;
        for (text, look) in pieces(row, &mut look) {
            let (x, length) = (12.0 + column as f32 * CELL.0, text.chars().count());
            column += length;
            let wide = length as f32 * CELL.0;
            let (colour, ground) = match look.is_reversed {
                true => (look.ground.clone().or(Some(GROUND.into())), look.colour.clone().or(Some(TEXT.into()))),
                false => (look.colour.clone(), look.ground.clone()),
            };
            if let Some(ground) = ground {
                writeln!(svg, "<rect x=\"{x}\" y=\"{top}\" width=\"{wide}\" height=\"{}\" fill=\"{ground}\"/>", CELL.1)
                    .unwrap();
            }
            if text.trim().is_empty() {
                continue;
            }
            let weight = if look.is_bold { " font-weight=\"bold\"" } else { "" };
            let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
            writeln!(
                svg,
                "<text x=\"{x}\" y=\"{}\" textLength=\"{wide}\" fill=\"{}\"{weight} xml:space=\"preserve\">{text}</text>",
                top + 13.0,
                colour.as_deref().unwrap_or(TEXT),
            )
            .unwrap();
        }
    }
    svg + "</svg>\n"
}

/// Pieces of one look; how a row ends is how the next one begins.
fn pieces(row: &str, look: &mut Look) -> Vec<(String, Look)> {
    let mut pieces: Vec<(String, Look)> = Vec::new();
    let mut rest = row;
    while let Some(c) = rest.chars().next() {
        if let Some(after) = rest.strip_prefix("\x1b[") {
            let end = after.find('m').expect("a sequence of colours");
            apply(look, &after[..end]);
            rest = &after[end + 1..];
            continue;
        }
        match pieces.last_mut() {
            Some((text, last)) if last == look => text.push(c),
            _ => pieces.push((c.into(), look.clone())),
        }
        rest = &rest[c.len_utf8()..];
    }
    pieces
}

fn apply(look: &mut Look, codes: &str) {
    let mut codes = codes.split([';', ':']).map(|code| code.parse::<usize>().unwrap_or(0));
    while let Some(code) = codes.next() {
        match code {
            0 => *look = Look::default(),
            1 => look.is_bold = true,
            7 => look.is_reversed = true,
            22 => look.is_bold = false,
            27 => look.is_reversed = false,
            30..=37 => look.colour = Some(NAMED[code - 30].into()),
            39 => look.colour = None,
            40..=47 => look.ground = Some(NAMED[code - 40].into()),
            49 => look.ground = None,
            90..=97 => look.colour = Some(NAMED[code - 82].into()),
            100..=107 => look.ground = Some(NAMED[code - 92].into()),
            38 | 48 => {
                let colour = match codes.next() {
                    Some(2) => {
                        let [red, green, blue] = [(); 3].map(|()| codes.next().unwrap_or(0));
                        format!("#{red:02x}{green:02x}{blue:02x}")
                    }
                    _ => indexed(codes.next().unwrap_or(0)),
                };
                *(if code == 38 { &mut look.colour } else { &mut look.ground }) = Some(colour);
            }
            _ => {}
        }
    }
}

fn indexed(index: usize) -> String {
    match index {
        0..=15 => NAMED[index].into(),
        16..=231 => {
            let part = |n: usize| if n.is_multiple_of(6) { 0 } else { 55 + 40 * (n % 6) };
            let at = index - 16;
            format!("#{:02x}{:02x}{:02x}", part(at / 36), part(at / 6), part(at))
        }
        _ => format!("#{0:02x}{0:02x}{0:02x}", 8 + 10 * (index.min(255) - 232)),
    }
}
