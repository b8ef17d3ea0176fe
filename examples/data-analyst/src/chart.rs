//! Charts as SVG.

use std::fmt::Write;

use agent::prelude::*;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::database::Table;

/// Maximum number of points: their labels must fit.
const MOST_POINTS: usize = 36;
/// Size of the picture.
const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 400.0;
/// Edges of the area in which values are drawn.
const LEFT: f64 = 80.0;
const RIGHT: f64 = 700.0;
const TOP: f64 = 56.0;
const BOTTOM: f64 = 330.0;
const COLOUR: &str = "#2f6f9f";

/// Kind of a chart.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Kind {
    /// A bar for each value.
    Bar,
    /// A line through all values.
    Line,
}

/// A label and its value.
pub(crate) type Point = (String, f64);

/// Reads the points from the first two columns of a result.
pub(crate) fn points(table: &Table) -> Result<Vec<Point>> {
    let points: Option<Vec<Point>> = table
        .rows
        .iter()
        .map(|row| {
            let label = row.first()?;
            let label = label.as_str().map_or_else(|| label.to_string(), str::to_owned);
            Some((label, row.get(1)?.as_f64()?))
        })
        .collect();
    match points {
        None => Err(Error::tool("the second column must have a number in each row: select a label and a value")),
        Some(points) if points.is_empty() => Err(Error::tool("the query has no rows: there is nothing to draw")),
        Some(points) if points.len() > MOST_POINTS || table.is_truncated => {
            Err(Error::tool(format!("a chart has at most {MOST_POINTS} points: group or limit the rows")))
        }
        Some(points) => Ok(points),
    }
}

/// A chart of at least one point.
#[derive(Debug)]
pub(crate) struct Chart<'a> {
    pub(crate) title: &'a str,
    pub(crate) kind: Kind,
    pub(crate) points: &'a [Point],
}

impl Chart<'_> {
    /// Draws the chart.
    pub(crate) fn to_svg(&self) -> String {
        let scale = Scale::of(self.points);
        let mut svg = format!(
            r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="12">
<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>
<text x="{LEFT}" y="30" font-size="18">{}</text>
"#,
            escaped(self.title)
        );
        svg.push_str(&scale.grid());
        match self.kind {
            Kind::Bar => svg.push_str(&self.bars(&scale)),
            Kind::Line => svg.push_str(&self.line(&scale)),
        }
        for (index, (label, _)) in self.points.iter().enumerate() {
            let (x, y) = (scale.x(index), BOTTOM + 16.0);
            let label = escaped(&label.chars().take(14).collect::<String>());
            let _ = writeln!(
                svg,
                r#"<text x="{x:.1}" y="{y}" text-anchor="end" transform="rotate(-40 {x:.1} {y})">{label}</text>"#
            );
        }
        svg + "</svg>\n"
    }

    fn bars(&self, scale: &Scale) -> String {
        let bar = |(index, (_, value)): (usize, &Point)| {
            let (upper, lower) = (scale.y(value.max(0.0)), scale.y(value.min(0.0)));
            let (left, width, height) = (scale.x(index) - scale.step * 0.35, scale.step * 0.7, lower - upper);
            format!(
                r#"<rect x="{left:.1}" y="{upper:.1}" width="{width:.1}" height="{height:.1}" fill="{COLOUR}"/>{}"#,
                "\n"
            )
        };
        self.points.iter().enumerate().map(bar).collect()
    }

    fn line(&self, scale: &Scale) -> String {
        let place = |(index, (_, value)): (usize, &Point)| format!("{:.1},{:.1} ", scale.x(index), scale.y(*value));
        let places: String = self.points.iter().enumerate().map(place).collect();
        format!("<polyline points=\"{}\" fill=\"none\" stroke=\"{COLOUR}\" stroke-width=\"2\"/>\n", places.trim_end())
    }
}

/// Maps points to places in the picture.
#[derive(Debug)]
struct Scale {
    /// Value at the bottom: 0, or less if a value is negative.
    least: f64,
    /// Difference between the values at the top and at the bottom.
    span: f64,
    /// Width of one point.
    step: f64,
}

impl Scale {
    fn of(points: &[Point]) -> Self {
        let values = || points.iter().map(|(_, value)| *value);
        let most = round_up(values().fold(0.0, f64::max));
        let least = -round_up(-values().fold(0.0, f64::min));
        let span = if most > least { most - least } else { 1.0 };
        Self { least, span, step: (RIGHT - LEFT) / points.len() as f64 }
    }

    fn x(&self, index: usize) -> f64 {
        LEFT + (index as f64 + 0.5) * self.step
    }

    fn y(&self, value: f64) -> f64 {
        BOTTOM - (value - self.least) / self.span * (BOTTOM - TOP)
    }

    /// Horizontal lines with their values.
    fn grid(&self) -> String {
        let line = |quarter: i32| {
            let value = self.least + self.span * f64::from(quarter) / 4.0;
            let shown = (value * 1e6).round() / 1e6;
            let (y, left, below) = (self.y(value), LEFT - 8.0, self.y(value) + 4.0);
            format!(
                "<line x1=\"{LEFT}\" x2=\"{RIGHT}\" y1=\"{y:.1}\" y2=\"{y:.1}\" stroke=\"#ddd\"/>\n\
                 <text x=\"{left}\" y=\"{below:.1}\" text-anchor=\"end\">{shown}</text>\n"
            )
        };
        (0..=4).map(line).collect()
    }
}

/// Returns the next number of the form 1, 2 or 5 times a power of ten; 0 for 0.
fn round_up(value: f64) -> f64 {
    if value <= 0.0 {
        return 0.0;
    }
    let power = 10_f64.powf(value.log10().floor());
    [1.0, 2.0, 5.0].map(|digit| digit * power).into_iter().find(|rounded| *rounded >= value).unwrap_or(10.0 * power)
}

/// Escapes a text of the database or the model for SVG.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
