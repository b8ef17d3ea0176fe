//! Results of the tools so far.

use serde_json::Value;

use super::{
    exchange::{Done, Exchange},
    outline::{HEADING, Outline},
    parse::{Hit, Line, hits, lines, paths},
    passages::{Passage, cut, group, rank, spread},
    roles::{Roles, Search},
    terms::Terms,
};

/// Results of the tools so far, by kind.
#[derive(Debug, Default)]
pub(super) struct Evidence {
    hits: Vec<Hit>,
    pub(super) paths: Vec<String>,
    /// Passages of files that were read.
    pub(super) read: Vec<Passage>,
    outline: Outline,
    /// Sub-agents and their answers.
    pub(super) said: Vec<(String, String)>,
    /// Failed tools, with their errors.
    pub(super) failed: Vec<(String, String)>,
    /// True if files were listed, or read, whatever the result.
    pub(super) has_listed: bool,
    pub(super) has_read: bool,
}

impl Evidence {
    pub(super) fn of(exchange: &Exchange, roles: &Roles<'_>) -> Self {
        let mut evidence = Self::default();
        for done in &exchange.done {
            let is_read = roles.read.as_ref().is_some_and(|read| read.tool == done.tool);
            let is_find = roles.find.as_ref().is_some_and(|find| find.tool == done.tool);
            let is_list = roles.list.as_ref().is_some_and(|list| list.tool == done.tool);
            evidence.has_read |= is_read;
            evidence.has_listed |= is_list;
            if done.failed {
                evidence.failed.push((done.tool.clone(), done.text.clone()));
            } else if let Some(agent) = roles.agents.iter().find(|agent| agent.did(done)) {
                evidence.said.push((agent.name().to_owned(), done.text.clone()));
            } else if let Some(read) = roles.read.as_ref().filter(|_| is_read) {
                let first = read.start.and_then(|start| done.args.get(start)).and_then(Value::as_u64);
                let first = first.and_then(|line| u32::try_from(line).ok()).unwrap_or(1);
                evidence.read.extend(cut(done.arg(read.path).unwrap_or(&done.tool), &lines(&done.text, first)));
            } else if is_find || is_list {
                evidence.paths.extend(paths(&done.text));
            } else if let Some(search) = roles.search.as_ref().filter(|search| search.tool == done.tool) {
                evidence.take_search(done, search);
            }
        }
        let read = evidence.read.iter().flat_map(|read| read.lines.iter().map(|line| (&read.source, line)));
        for (path, line) in evidence.hits.iter().map(|hit| (&hit.path, &hit.line)).chain(read) {
            evidence.outline.take(path, line);
        }
        evidence
    }

    /// Adds a search result: hits of a file search, or prose from another search, which is quoted
    /// verbatim.
    fn take_search(&mut self, done: &Done, search: &Search<'_>) {
        let found = hits(&done.text);
        if done.arg(search.param) == Some(HEADING) {
            return found.iter().for_each(|hit| self.outline.take(&hit.path, &hit.line));
        }
        let says_nothing = done.text.trim().to_lowercase().starts_with("no ");
        if found.is_empty() && !search.regex && !says_nothing {
            let lines = lines(&done.text, 1).into_iter().map(|line| Line { number: None, ..line });
            self.read.extend(cut(search.tool, &lines.collect::<Vec<_>>()));
        }
        self.hits.extend(found);
    }

    /// Returns true if the search found nothing to read or quote.
    pub(super) fn is_empty(&self) -> bool {
        self.hits.is_empty() && self.paths.is_empty() && self.read.is_empty() && self.said.is_empty()
    }

    /// Returns locations with hits, best first.
    pub(super) fn places(&self, terms: &Terms) -> Vec<Passage> {
        rank(group(self.hits.clone()), terms, &self.outline).into_iter().map(|(place, _)| place).collect()
    }

    /// Returns passages to quote, best first, with scores: from files that were read, and hits from
    /// other searches.
    pub(super) fn passages(&self, terms: &Terms) -> Vec<(Passage, f64)> {
        let was_read = |place: &Passage| self.read.iter().any(|passage| passage.source == place.source);
        let places = group(self.hits.clone()).into_iter().filter(|place| !was_read(place));
        spread(rank(self.read.iter().cloned().chain(places).collect(), terms, &self.outline))
    }
}
