//! The report: a table of the topics.

use std::{collections::BTreeMap, fmt::Write};

use crate::{
    classifier::{Sentiment, Topic},
    results::Row,
};

/// Texts of one topic.
#[derive(Debug, Default)]
struct Counts<'a> {
    all: usize,
    negative: usize,
    /// Points of negative texts, with their number.
    complaints: BTreeMap<&'a str, usize>,
}

/// Formats the report: topics by their number of texts, with the most frequent complaint.
pub(crate) fn markdown(rows: &[Row]) -> String {
    let mut topics: BTreeMap<Topic, Counts<'_>> = BTreeMap::new();
    for row in rows {
        let counts = topics.entry(row.voice.topic).or_default();
        counts.all += 1;
        if row.voice.sentiment == Sentiment::Negative {
            counts.negative += 1;
            *counts.complaints.entry(&row.voice.point).or_default() += 1;
        }
    }
    let mut topics: Vec<_> = topics.into_iter().collect();
    topics.sort_by_key(|(_, counts)| std::cmp::Reverse(counts.all));

    let mut text = format!("# What {} customers say\n\n", rows.len());
    text.push_str("| topic | texts | negative | most frequent complaint |\n|---|---|---|---|\n");
    for (topic, Counts { all, negative, complaints }) in topics {
        let complaint = complaints.iter().max_by_key(|(_, count)| **count).map_or("", |(point, _)| point);
        let topic = format!("{topic:?}").to_lowercase();
        let complaint = complaint.replace('|', "\\|").replace('\n', " ");
        let _ = writeln!(text, "| {topic} | {all} | {} % | {complaint} |", 100 * negative / all);
    }
    text
}
