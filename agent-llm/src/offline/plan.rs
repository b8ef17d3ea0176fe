//! Planning of the next step from the conversation alone.

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

/// Maximum number of messages with calls before the answer.
const ROUNDS: usize = 3;
/// Maximum number of searches per message.
const SEARCHES: usize = 4;
/// Maximum number of files read at once.
const FILES: usize = 4;
/// Lines read before and after the hits in a file, and lines read from a file without hits.
const BEFORE: u32 = 8;
const AFTER: u32 = 30;
const OPENING: u32 = 80;

/// Next step.
#[derive(Debug)]
pub(super) enum Step {
    /// Call tools, with an explanation.
    Call(String, Vec<Wanted>),
    /// Answer.
    Answer(String),
}

/// Plans the next step of an exchange. Sub-agents answer more briefly, since their reader is a
/// model.
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

/// Plans the first round: search for the question's terms, find the files that it names, and call a
/// matching sub-agent.
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

/// Returns one expression for each of the strongest terms, and one for all others.
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

/// Plans the later rounds: read around the best hits; list files if nothing was found.
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

/// Returns the parts to read, best first: files that the question names, locations with hits, files
/// named like the search terms. A general question is answered from the files for newcomers.
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

/// Returns prose files, those nearest to the root first.
fn prose(paths: &[String]) -> Vec<&String> {
    let depth = |path: &&String| path.matches('/').count();
    let prose: Vec<_> = paths.iter().filter(|path| is_prose(path)).collect();
    let top = prose.iter().map(depth).min();
    prose.into_iter().filter(|path| Some(depth(path)) == top).collect()
}
