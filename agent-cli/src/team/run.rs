//! `agent run` of a team.

use std::pin::pin;

use agent::{
    Error, ErrorKind, Part, Result,
    team::{TeamEnd, TeamEndReason, TeamEvent, TeamRequest},
};
use futures::StreamExt;

use super::{open::Opened, show};
use crate::{
    cli::Global,
    output::{End, Paint, plain, print, print_json},
    run::{ask_at_terminal, interrupted, quoted, somebody_is_there},
};

/// Runs a team on one message and writes its result. Questions are asked at the terminal.
///
/// # Errors
/// Those of the run.
pub(crate) async fn run(
    opened: &Opened,
    parts: Vec<Part>,
    session: Option<String>,
    no_input: bool,
    global: &Global,
) -> Result<End> {
    let request = TeamRequest::parts(parts).streaming(true);
    let request = session.into_iter().fold(request, TeamRequest::session);
    drive(opened, request, !no_input, global).await
}

/// Drives a request to its end, or to a question that nobody is there to answer.
pub(super) async fn drive(opened: &Opened, mut request: TeamRequest, asks: bool, global: &Global) -> Result<End> {
    let asks = asks && !global.json && somebody_is_there();
    loop {
        let (end, stopped) = once(opened, request, global).await?;
        if end.reason == TeamEndReason::Waiting && asks && stopped.is_none() {
            request = TeamRequest::resume(end.session.clone()).streaming(true);
            let mut answered = 0;
            for asked in &end.questions {
                eprintln!("{}", Paint::stderr().dim(&format!("{} asks:", asked.member)));
                let Some(answers) = ask_at_terminal(std::slice::from_ref(&asked.question)).await? else { break };
                for (id, answer) in answers {
                    request = request.answer(asked.member.clone(), id, answer);
                    answered += 1;
                }
            }
            if answered > 0 {
                continue;
            }
        }
        ended(&end, global)?;
        return Ok(stopped.filter(|_| !end.reason.is_final()).unwrap_or_else(|| show::status(&end)));
    }
}

/// One attempt: until the run ends or waits. A signal cancels it, so that the journal says so; a second one
/// does not wait for its end.
async fn once(opened: &Opened, request: TeamRequest, global: &Global) -> Result<(TeamEnd, Option<End>)> {
    let mut run = opened.team.start(request);
    let handle = run.handle();
    let mut stop = pin!(interrupted());
    let mut stopped = None;
    loop {
        tokio::select! {
            event = run.next() => match event {
                Some(event) => if let Err(error) = tell(&event, global) {
                    handle.cancel(); // nobody reads any more; the journal is to say so
                    drop(run.await);
                    return Err(error);
                },
                None => break,
            },
            signal = &mut stop => {
                if handle.cancellation().is_cancelled() {
                    return Err(Error::new(ErrorKind::Cancelled, "interrupted"));
                }
                stopped = Some(signal);
                handle.cancel();
                stop.set(interrupted());
            }
        }
    }
    Ok((run.await?, stopped))
}

fn tell(event: &TeamEvent, global: &Global) -> Result<()> {
    if global.json {
        let value = serde_json::to_value(event).map_err(|e| Error::new(ErrorKind::Protocol, e.to_string()))?;
        return print_json(&value);
    }
    let paint = Paint::stderr();
    if let Some((member, text)) = show::said(event) {
        eprintln!("{}", plain(&format!("[{member}] {}", text.trim_end())));
    }
    if let Some(told) = show::told(event) {
        eprintln!("{}", paint.dim(&told));
    }
    Ok(())
}

/// Writes the result, and how the run ended if it did not finish.
fn ended(end: &TeamEnd, global: &Global) -> Result<()> {
    if global.json {
        return print_json(&show::end_in_json(end));
    }
    if !end.text.is_empty() && end.reason.is_final() {
        print(&format!("{}\n", end.text.trim_end()))?;
    }
    let paint = Paint::stderr();
    let (session, file) = (quoted(&end.session), global.file.as_ref());
    let file = file.map_or_else(String::new, |file| quoted(&file.to_string_lossy()));
    match &end.reason {
        TeamEndReason::Finished => {}
        TeamEndReason::Waiting => {
            for asked in &end.questions {
                eprintln!("{}", plain(&show::question(asked)));
            }
            eprintln!("agent: session {session} waits. Answer with: agent chat {file} --session {session}");
        }
        TeamEndReason::Paused | TeamEndReason::Cancelled => {
            eprintln!("agent: interrupted. Resume with: agent resume {session} --file {file}");
        }
        reason => eprintln!("{}", paint.dim(&format!("agent: the team ended: {reason}"))),
    }
    Ok(())
}
