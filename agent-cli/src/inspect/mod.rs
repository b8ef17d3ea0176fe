//! `agent inspect`: what happened in a run, how long it took, and what it cost.

mod changes;
mod flame;
mod spans;
mod timeline;

use std::sync::Arc;

use agent::{
    Error, Result,
    core::Journal,
    journal::{Entry, EntryBody, each_entry},
};
use agent_server::export::conversation;
use serde_json::{Value, json};

use self::spans::{Span, spans};
use crate::{
    cli::{Global, Inspect, Which},
    output::{End, count, dollars, line, moment, print, print_json, span},
    store::{agent_of, existing},
    team,
};

/// A run with those below it, as the session's journal tells it.
pub(crate) struct Recorded {
    pub(crate) run: Arc<str>,
    pub(crate) agent: Arc<str>,
    pub(crate) entries: Vec<Entry>,
}

impl Recorded {
    /// Reads the run that is meant.
    ///
    /// # Errors
    /// Those of the store, and if there is no such run.
    pub(crate) async fn read(journal: &dyn Journal, which: &Which, name: Option<&str>) -> Result<Self> {
        let (session, wanted) = (&which.session, which.run.as_deref());
        let agent = agent_of(journal, session, name).await?;
        let mut found: Option<Self> = None;
        let mut tree: Vec<Arc<str>> = Vec::new();
        each_entry(journal, session, 0, |entry| {
            if let EntryBody::RunStarted { ids, .. } = &entry.body {
                let is_meant = match wanted {
                    Some(run) => *ids.run_id == *run,
                    None => ids.parent_run_id.is_none() && ids.agent_id == agent,
                };
                if is_meant {
                    tree = vec![ids.run_id.clone()];
                    found = Some(Self { run: ids.run_id.clone(), agent: ids.agent_id.clone(), entries: Vec::new() });
                } else if ids.parent_run_id.as_ref().is_some_and(|above| tree.contains(above)) {
                    tree.push(ids.run_id.clone());
                }
            }
            if let Some(found) = found.as_mut().filter(|_| tree.contains(&entry.run)) {
                found.entries.push(entry.clone());
            }
        })
        .await?;
        found.ok_or_else(|| Error::config(format!("session '{session}' holds no such run")))
    }
}

/// Looks into a run.
pub(crate) async fn inspect(wanted: Inspect, global: &Global) -> Result<End> {
    let journal = existing(global).await?;
    let nothing_said = !(wanted.messages || wanted.changes || wanted.timeline || wanted.flame);
    if nothing_said
        && wanted.which.run.is_none()
        && let Some(end) = team::inspect(&*journal, &wanted.which.session, global).await?
    {
        return Ok(end);
    }
    let recorded = Recorded::read(&*journal, &wanted.which, global.name.as_deref()).await?;
    let spans = spans(&recorded.entries);
    if global.json {
        return in_json(&wanted, &*journal, &recorded, &spans, nothing_said).await;
    }
    let mut text = String::new();
    if nothing_said {
        text.push_str(&summary(&wanted.which.session, &recorded, &spans));
    }
    if wanted.timeline || nothing_said {
        text.push_str(&timeline::text(&recorded.entries));
    }
    if wanted.flame || nothing_said {
        text.push_str(&flame::chart(&spans, columns()));
    }
    if wanted.changes {
        text.push_str(&changes::text(&recorded));
    }
    if wanted.messages {
        let history = journal.whole_index(&wanted.which.session).await?.look(|index| index.history(&recorded.agent));
        text.push_str(&conversation(history.iter()));
    }
    print(&text)?;
    Ok(End::Finished)
}

async fn in_json(
    wanted: &Inspect,
    journal: &dyn Journal,
    recorded: &Recorded,
    spans: &[Span],
    all: bool,
) -> Result<End> {
    let mut value = json!({"session": wanted.which.session, "run": recorded.run, "agent": recorded.agent});
    if all {
        let (calls, cost, tools) = totals(spans);
        value["model_calls"] = json!(calls);
        value["tool_calls"] = json!(tools);
        value["cost_micros"] = json!(cost);
    }
    if wanted.flame || all {
        value["spans"] = spans.iter().map(Span::to_json).collect();
    }
    if wanted.timeline || all {
        value["timeline"] = timeline::rows(&recorded.entries).into_iter().map(|row| row.to_json()).collect();
    }
    if wanted.changes {
        value["changes"] = changes::steps(recorded).iter().map(changes::Step::to_json).collect();
    }
    if wanted.messages {
        let history = journal.whole_index(&wanted.which.session).await?.look(|index| index.history(&recorded.agent));
        value["messages"] = history.iter().map(|message| json!(message)).collect::<Value>();
    }
    print_json(&value)?;
    Ok(End::Finished)
}

/// Model calls, what they cost, and tool calls.
fn totals(spans: &[Span]) -> (usize, u64, usize) {
    let calls = spans.iter().filter(|span| span.usage.is_some()).count();
    let cost = spans.iter().filter_map(|span| span.usage.as_ref()).map(|usage| usage.cost).sum();
    let tools = spans.iter().filter(|span| matches!(span.kind, spans::Kind::Tool)).count();
    (calls, cost, tools)
}

fn summary(session: &str, recorded: &Recorded, spans: &[Span]) -> String {
    let (calls, cost, tools) = totals(spans);
    let sum = |field: fn(&agent::Usage) -> u64| spans.iter().filter_map(|s| s.usage.as_ref()).map(field).sum::<u64>();
    let unpriced = sum(|usage| usage.calls) - sum(|usage| usage.priced);
    let (first, last) = (recorded.entries.first(), recorded.entries.last());
    let (began, ended) = (first.map_or(0, |e| e.time), last.map_or(0, |e| e.time));
    let mut text = format!("session   {}\nrun       {} of {}\n", line(session, 200), recorded.run, recorded.agent);
    text.push_str(&format!("began     {} UTC, {} in all\n", moment(began), span(ended - began)));
    text.push_str(&format!("calls     {calls} of models, {tools} of tools\n"));
    text.push_str(&format!(
        "tokens    {} in ({} cached), {} out\n",
        count(sum(agent::Usage::prompt)),
        count(sum(|usage| usage.cached)),
        count(sum(|usage| usage.output)),
    ));
    let unpriced =
        if unpriced > 0 { format!(", without {unpriced} calls whose price is not known") } else { String::new() };
    text.push_str(&format!("cost      {}{unpriced}\n\n", dollars(cost)));
    text
}

/// Columns that a chart may take.
fn columns() -> usize {
    let known = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    known
        .or_else(|| console::Term::stdout().size_checked().map(|(_, columns)| columns))
        .map_or(100, usize::from)
        .clamp(40, 200)
}
