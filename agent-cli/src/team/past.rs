//! `agent inspect` and `agent resume` of a team.

use agent::{
    Error, Question, Result,
    core::Journal,
    team::{TeamChange, TeamHistory, TeamRecord, TeamRequest},
};
use serde_json::{Value, json};

use super::{open::Opened, run::drive, show};
use crate::{
    cli::Global,
    output::{End, dollars, line, moment, print, print_json},
};

/// Resumes the newest run of a team's session.
///
/// # Errors
/// Those of the run; if there is nothing to resume.
pub(crate) async fn resume(
    opened: &Opened,
    session: &str,
    allow_changed: bool,
    asks: bool,
    global: &Global,
) -> Result<End> {
    let request = TeamRequest::resume(session).streaming(true);
    let request = if allow_changed { request.allow_changed_agents() } else { request };
    drive(opened, request, asks, global).await
}

/// Answers questions of members, those with this id or all, and resumes the run. Without an answer, the open
/// questions are shown.
///
/// # Errors
/// If there is no such question; those of the run.
pub(crate) async fn approve(
    opened: &Opened,
    session: &str,
    question: Option<&str>,
    answer: impl Fn(&Question) -> Option<Value>,
    global: &Global,
) -> Result<End> {
    let open = opened.team.session(session).questions().await?;
    let meant: Vec<_> = open.iter().filter(|asked| question.is_none_or(|id| asked.question.id == id)).collect();
    if meant.is_empty() {
        let ids: Vec<_> = open.iter().map(|asked| asked.question.id.as_str()).collect();
        let there = if ids.is_empty() { "it waits for none".into() } else { format!("open are {}", ids.join(", ")) };
        return Err(Error::config(format!("team session '{session}' has no such question: {there}")));
    }
    let mut request = TeamRequest::resume(session).streaming(true);
    for asked in meant {
        let Some(value) = answer(&asked.question) else {
            let all: Vec<_> =
                open.iter().map(|asked| format!("{}  {}\n", asked.question.id, show::question(asked))).collect();
            match global.json {
                true => print_json(&json!({"session": session, "questions": open}))?,
                false => print(&all.concat())?,
            }
            return Ok(End::Waits);
        };
        let (id, answer) = asked.question.answer(value);
        request = request.answer(asked.member.clone(), id, answer);
    }
    drive(opened, request, false, global).await
}

/// Shows a session if it is that of a team: the course, the members and the board. `None` if it is not.
///
/// # Errors
/// Those of the store.
pub(crate) async fn inspect(journal: &dyn Journal, session: &str, global: &Global) -> Result<Option<End>> {
    let history = TeamHistory::read(journal, session).await?;
    if !history.is_team() {
        return Ok(None);
    }
    let state = &history.state;
    if global.json {
        print_json(&json!({
            "session": session, "run": state.run(), "pattern": state.pattern(),
            "end": state.reason().map(agent::team::TeamEndReason::as_str), "rounds": state.rounds(),
            "usage": state.usage(), "tasks": state.board().tasks().collect::<Vec<_>>(),
            "members": state.member_infos(), "questions": state.questions(), "changes": history.records,
        }))?;
        return Ok(Some(End::Finished));
    }
    let course = state.pattern().map_or_else(|| "a leader with members".to_owned(), |name| format!("pattern {name}"));
    let end = state.reason().map_or_else(|| "open".to_owned(), ToString::to_string);
    let run = state.run().map(ToString::to_string).unwrap_or_default();
    let usage = state.usage();
    let mut text = format!("session   {}\nrun       {run}, {course}\nend       {end}\n", line(session, 200));
    text.push_str(&format!(
        "turns     {}, {} model calls, {} tokens, {}\n\n",
        state.rounds(),
        usage.calls,
        usage.total(),
        dollars(usage.cost)
    ));
    text.push_str(&show::members(&state.member_infos()));
    text.push('\n');
    if state.pattern().is_none() {
        text.push_str(&show::board(state.board()));
        text.push('\n');
    }
    for record in &history.records {
        let who = record.member.as_deref().unwrap_or("-");
        let told = match &record.change {
            TeamChange::Started { run } => Some(format!("run {run} started")),
            TeamChange::TurnBegan { messages, .. } => Some(format!("turn began, {} messages", messages.len())),
            TeamChange::TurnEnded { end: agent::team::TurnEnd::Finished { text, .. }, .. } => {
                Some(format!("turn ended: {}", line(text, 120)))
            }
            TeamChange::Ended { reason } => Some(format!("run ended: {reason}")),
            change => show::changed(change),
        };
        if let Some(told) = told {
            text.push_str(&format!("{}  {who:<12}  {told}\n", moment(record.time)));
        }
    }
    for asked in state.questions() {
        text.push_str(&format!("{}\n", show::question(&asked)));
    }
    text.push_str(&format!("\nA member's conversation: agent inspect {session}:MEMBER\n"));
    print(&text)?;
    Ok(Some(End::Finished))
}

/// Compares two sessions if both are those of teams. `None` if they are not.
///
/// # Errors
/// Those of the store.
pub(crate) async fn diff(journal: &dyn Journal, one: &str, two: &str, global: &Global) -> Result<Option<End>> {
    let (first, second) = (TeamHistory::read(journal, one).await?, TeamHistory::read(journal, two).await?);
    if !first.is_team() || !second.is_team() {
        return Ok(None);
    }
    let Some(difference) = first.difference(&second) else {
        match global.json {
            true => print_json(&json!({"same": true}))?,
            false => print("no difference\n")?,
        }
        return Ok(Some(End::Finished));
    };
    if global.json {
        let (one, two) = (difference.one, difference.two);
        print_json(&json!({"same": false, "change": difference.at + 1, "one": one, "two": two}))?;
    } else {
        let told = |record: Option<&TeamRecord>| match record {
            None => "nothing".to_owned(),
            Some(record) => {
                let who = record.member.as_deref().unwrap_or("team");
                let what = show::changed(&record.change).unwrap_or_else(|| format!("{:?}", record.change));
                format!("[{who}] {}", line(&what, 200))
            }
        };
        let number = difference.at + 1;
        print(&format!("change {number}\none: {}\ntwo: {}\n", told(difference.one), told(difference.two)))?;
    }
    Ok(Some(End::Failed))
}
