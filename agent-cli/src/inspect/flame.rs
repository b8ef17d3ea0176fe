//! Flame chart as text.

use super::spans::{Kind, Span};
use crate::output::{count, dollars, line, span as time};

/// Rows of spans, each with a bar at its place in time. The chart has at most so many columns.
pub(super) fn chart(spans: &[Span], columns: usize) -> String {
    let Some(start) = spans.iter().map(|span| span.start).min() else { return String::new() };
    let end = spans.iter().map(|span| span.end).max().unwrap_or(start);
    let names = (columns / 3).clamp(12, 36);
    let bars = columns.saturating_sub(names + 12).clamp(10, 100);
    let mut text = format!("{:names$}  {}\n", "", scale(end - start, bars));
    for span in spans {
        let name = line(&format!("{}{}", "  ".repeat(span.depth), span.name), usize::MAX);
        let name = format!("{}{name}", "  ".repeat(span.depth));
        let name: String =
            if name.chars().count() > names { name.chars().take(names - 1).chain(['…']).collect() } else { name };
        let bar = bar(span, start, end, bars);
        text.push_str(&format!("{name:names$}  {bar:bars$}  {}{}\n", time(span.end - span.start), used(span)));
    }
    text.push('\n');
    text
}

fn scale(all: u64, bars: usize) -> String {
    let right = time(all);
    format!("0{right:>0$}", bars.saturating_sub(1))
}

/// Each kind has a letter of its own, so that no colour is needed.
fn bar(span: &Span, start: u64, end: u64, bars: usize) -> String {
    let all = (end - start).max(1) as f64;
    let at = |moment: u64| ((moment - start) as f64 / all * bars as f64).floor() as usize;
    let from = at(span.start).min(bars - 1);
    let width = at(span.end).saturating_sub(from).clamp(1, bars - from);
    let mark = match span.kind {
        Kind::Run => "─",
        Kind::Model => "█",
        Kind::Tool => "▒",
    };
    let mut bar = " ".repeat(from) + &mark.repeat(width);
    if span.is_open {
        bar.push('…');
    }
    bar
}

fn used(span: &Span) -> String {
    span.usage.as_ref().map_or_else(String::new, |usage| {
        let cost = if usage.priced > 0 { format!(" {}", dollars(usage.cost)) } else { String::new() };
        format!("  {}→{}{cost}", count(usage.prompt()), count(usage.output))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_stands_where_its_time_was_and_is_never_outside_the_chart() {
        let span = |kind, start, end| Span {
            kind,
            name: "x".into(),
            depth: 0,
            start,
            end,
            usage: None,
            is_open: false,
            worker: None,
        };
        assert_eq!(bar(&span(Kind::Tool, 50, 100), 0, 100, 10), "     ▒▒▒▒▒");
        assert_eq!(bar(&span(Kind::Model, 100, 100), 0, 100, 10), "         █", "what took no time is still seen");
        assert_eq!(bar(&span(Kind::Run, 5, 5), 5, 5, 10), "─");
        for columns in [1, 40, 200] {
            let chart = chart(&[span(Kind::Run, 0, 100), span(Kind::Tool, 99, 100)], columns);
            assert_eq!(chart.lines().count(), 4);
        }
    }
}
