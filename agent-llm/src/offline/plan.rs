//! What to do next: derived from the conversation alone.

use std::collections::HashSet;

use super::{
    agents::{fitting, part_for},
    answer::{self, Answer},
    evidence::Evidence,
    exchange::Exchange,
    intent::Intent,
    kinds::{is_prose, prose_glob, prose_globs},
    outline::HEADING,
    rank::{Text, index},
    roles::{Roles, Wanted},
    terms::{Term, Terms},
    words::stems,
};

/// Messages with calls before the answer.
const ROUNDS: usize = 3;
/// Searches in one message.
const SEARCHES: usize = 4;
/// Files that are read at once.
const FILES: usize = 4;
/// Lines that are read before and after the hits of a place, and of a file without hits.
const BEFORE: u32 = 8;
const AFTER: u32 = 30;
const OPENING: u32 = 80;

/// What the model says next.
#[derive(Debug)]
pub(super) enum Step {
    /// It calls tools, and says why.
    Call(String, Vec<Wanted>),
    /// It is done.
    Answer(String),
}

/// The next step of an exchange. A sub-agent answers shorter: its answer is for a model.
pub(super) fn next(exchange: &Exchange, roles: &Roles<'_>, is_sub_agent: bool) -> Step {
    let asked = std::iter::once(&exchange.question).chain(&exchange.earlier);
    let terms = asked.map(|question| Terms::of(question)).find(|terms| !terms.is_empty()).unwrap_or_default();
    let answer = |text: &str| Step::Answer(answer::signed(text, is_sub_agent));
    match Intent::of(&exchange.question) {
        Intent::Arithmetic => return answer(answer::CANNOT_CALCULATE),
        Intent::Making => return answer(answer::CANNOT_MAKE),
        Intent::Lookup if roles.is_empty() => return answer(answer::HAS_NO_TOOLS),
        Intent::Lookup if terms.is_empty() => return answer(answer::HAS_NO_TERMS),
        Intent::Lookup => {}
    }
    let evidence = Evidence::of(exchange, roles);
    let calls = match exchange.rounds {
        0 => look(&exchange.question, &terms, roles),
        1..ROUNDS => follow(&terms, roles, &evidence),
        _ => Vec::new(),
    };
    if calls.is_empty() {
        return answer(&Answer { terms: &terms, evidence: &evidence, is_sub_agent }.write());
    }
    let doing = if exchange.rounds == 0 { "Looking for" } else { "Looking closer at" };
    Step::Call(format!("{doing} {}.", answer::quoted_names(&terms)), calls)
}

/// The first round: search for what the question names, find its files, and ask a sub-agent who fits.
fn look(question: &str, terms: &Terms, roles: &Roles<'_>) -> Vec<Wanted> {
    let mut calls = Vec::new();
    if let Some(search) = &roles.search {
        let what = if search.regex { patterns(terms) } else { plain_query(terms) };
        calls.extend(what.iter().map(|what| search.call(what)));
        if !calls.is_empty() && search.regex {
            let prose = if terms.wants_prose() { what.as_slice() } else { &[] };
            let prose = prose.iter().map(String::as_str).chain([HEADING]);
            calls.extend(prose.filter_map(|what| search.call_within(what, &prose_glob())));
        }
    }
    match (&roles.find, &roles.read) {
        (Some(find), _) => calls.extend(terms.files().iter().take(FILES).map(|file| find.call(&format!("**/{file}")))),
        (None, Some(read)) => calls.extend(terms.files().iter().take(FILES).map(|file| read.call(file, 1, OPENING))),
        (None, None) => {}
    }
    if let Some(agent) = fitting(&roles.agents, terms) {
        calls.push(agent.call(&part_for(agent, question)));
    }
    if calls.is_empty() { list(roles) } else { calls }
}

/// One expression for each of the strongest terms, and one for all the others.
fn patterns(terms: &Terms) -> Vec<String> {
    let strong: Vec<_> = terms.strong().map(Term::pattern).collect();
    let (single, rest) = strong.split_at(if strong.len() > SEARCHES { SEARCHES - 1 } else { strong.len() });
    let rest = (!rest.is_empty()).then(|| rest.join("|"));
    single.iter().cloned().chain(rest).map(|pattern| format!("(?i){pattern}")).collect()
}

fn plain_query(terms: &Terms) -> Vec<String> {
    let words: Vec<_> = terms.strong().map(|term| term.word.as_str()).collect();
    if words.is_empty() { Vec::new() } else { vec![words.join(" ")] }
}

/// The later rounds: read around the best hits; if there was nothing at all, see what files there are.
fn follow(terms: &Terms, roles: &Roles<'_>, evidence: &Evidence) -> Vec<Wanted> {
    if evidence.is_empty() && !evidence.has_listed {
        return list(roles);
    }
    match &roles.read {
        Some(read) if !evidence.has_read => {
            let windows = windows(terms, evidence).into_iter().take(FILES);
            windows.map(|(path, first, last)| read.call(&path, first, last)).collect()
        }
        _ => Vec::new(),
    }
}

fn list(roles: &Roles<'_>) -> Vec<Wanted> {
    let found = || prose_globs().filter_map(|glob| Some(roles.find.as_ref()?.call(&glob))).collect();
    roles.list.as_ref().map_or_else(found, |list| vec![list.call()])
}

/// What to read, best first: files that the question names, places with hits, files that are called like what is sought.
/// A question about nothing in particular is answered from what people read first.
fn windows(terms: &Terms, evidence: &Evidence) -> Vec<(String, u32, u32)> {
    let opening = |path: &String| (path.clone(), 1, OPENING);
    let is_named = |path: &&String| terms.files().iter().any(|file| path.ends_with(file));
    let named = evidence.paths.iter().filter(is_named).map(opening);
    let places = evidence.places(terms).into_iter().map(|place| {
        let (first, last) = place.range().unwrap_or((1, OPENING));
        (place.source, first.saturating_sub(BEFORE).max(1), last.saturating_add(AFTER))
    });
    let called_so =
        index(evidence.paths.iter().map(|path| Text { name: stems(path), ..Text::default() })).rank(terms.query());
    let called_so = called_so.into_iter().map(|(at, _)| opening(&evidence.paths[at]));
    let prose = if terms.strong().next().is_none() { prose(&evidence.paths) } else { Vec::new() };
    let all = named.chain(places).chain(called_so).chain(prose.into_iter().map(opening));
    let mut seen = HashSet::new();
    all.filter(|(path, ..)| seen.insert(path.clone())).collect()
}

/// Files for people: those that are nearest to the top.
fn prose(paths: &[String]) -> Vec<&String> {
    let depth = |path: &&String| path.matches('/').count();
    let prose: Vec<_> = paths.iter().filter(|path| is_prose(path)).collect();
    let top = prose.iter().map(depth).min();
    prose.into_iter().filter(|path| Some(depth(path)) == top).collect()
}
