//! Commands about runs that were: go on, answer, fork, replay, compare.

use agent::{
    Checkpoint, Error, Message, Result, RunRequest,
    core::Journal,
    journal::{Recording, diff as parting},
    message::Message as M,
};
use serde_json::{Value, json};

use crate::{
    cli::{Approve, Diff, Fork, Global, Replay, Resume},
    load::{Loaded, load},
    output::{End, print, print_json},
    run::{self, Driver},
    store::{agent_of, existing},
    team,
};

/// The agent that the options mean, under the name that the session knows it by.
async fn known(session: &str, global: &Global) -> Result<Loaded> {
    existing(global).await?;
    let mut loaded = load(global).await?;
    let name = agent_of(&*loaded.journal, session, global.name.as_deref()).await?;
    if global.name.is_none() && global.file.is_none() {
        loaded.builder = loaded.builder.name(&*name);
    }
    Ok(loaded)
}

/// Checkpoint of the newest run of a session, if it is incomplete.
async fn open_run(loaded: &Loaded, session: &str) -> Result<Checkpoint> {
    let agent = loaded.build()?;
    if let Some(open) = agent.unfinished(session).await? {
        return Ok(open);
    }
    let agents = loaded.journal.info(session).await?.map(|info| info.agents).unwrap_or_default();
    for other in agents.iter().filter(|other| ***other != *agent.name()) {
        let Some(open) = loaded.builder.clone().name(&**other).build()?.unfinished(session).await? else { continue };
        let state = match open.questions.len() {
            0 => "has an incomplete run".to_owned(),
            count => format!("waits for {count} answer(s)"),
        };
        return Err(Error::config(format!(
            "agent '{}' has no incomplete run in session '{session}'; agent '{other}' {state} there: name its file with \
             --file",
            agent.name()
        )));
    }
    Err(Error::config(format!("session '{session}' has no incomplete run")))
}

/// Resumes a run that stopped.
pub(crate) async fn resume(wanted: Resume, global: &Global) -> Result<End> {
    if let Some(found) = team::team_of(global)? {
        let opened = team::open(found, global).await?;
        return team::resume(&opened, &wanted.session, wanted.allow_changed_agent, !wanted.no_input, global).await;
    }
    let loaded = known(&wanted.session, global).await?;
    open_run(&loaded, &wanted.session).await?;
    let request = RunRequest::recover(wanted.session, []).streaming(true);
    let agent = loaded.build()?;
    let driver = Driver::new(&agent, global).no_input(wanted.no_input).allow_changed_agent(wanted.allow_changed_agent);
    driver.drive(request).await
}

/// Answers what a run waits for.
pub(crate) async fn approve(wanted: Approve, global: &Global) -> Result<End> {
    if let Some(found) = team::team_of(global)? {
        let opened = team::open(found, global).await?;
        let given = Given::of(&wanted)?;
        let value = |question: &agent::Question| given.as_ref().map(|given| given.to(question));
        return team::approve(&opened, &wanted.session, wanted.question.as_deref(), value, global).await;
    }
    let loaded = known(&wanted.session, global).await?;
    let open = open_run(&loaded, &wanted.session).await?;
    let meant = |id: &str| wanted.question.as_deref().is_none_or(|question| question == id);
    let questions: Vec<_> = open.questions.iter().filter(|question| meant(&question.id)).collect();
    if questions.is_empty() {
        let ids: Vec<_> = open.questions.iter().map(|question| question.id.as_str()).collect();
        let there = if ids.is_empty() { "it waits for none".into() } else { format!("open are {}", ids.join(", ")) };
        return Err(Error::config(format!("session '{}' has no such question: {there}", wanted.session)));
    }
    let Some(answer) = Given::of(&wanted)? else {
        if global.json {
            print_json(&json!({"session": wanted.session, "questions": open.questions}))?;
        } else {
            print(&run::waiting(&open, global))?;
        }
        return Ok(End::Waits);
    };
    if matches!(answer, Given::Edit(_)) && questions.len() > 1 {
        let ids: Vec<_> = questions.iter().map(|question| question.id.as_str()).collect();
        let why = format!("other arguments are for one call: say for which question, of {}", ids.join(", "));
        return Err(Error::config(why));
    }
    let answers: Vec<_> = questions.iter().map(|question| question.answer(answer.to(question))).collect();
    let agent = loaded.build()?;
    let request = RunRequest::recover_with(wanted.session, answers).streaming(true);
    Driver::new(&agent, global).allow_changed_agent(wanted.allow_changed_agent).drive(request).await
}

/// Answer of the command line.
enum Given {
    Allow,
    Deny(Option<String>),
    Edit(Value),
    Value(Value),
}

impl Given {
    fn of(wanted: &Approve) -> Result<Option<Self>> {
        let answer = &wanted.answer;
        if let Some(text) = &answer.edit {
            let arguments: Value =
                serde_json::from_str(text).map_err(|e| Error::config(format!("--edit takes a JSON object: {e}")))?;
            return Ok(Some(Self::Edit(arguments)));
        }
        Ok(match &answer.answer {
            Some(text) => Some(Self::Value(run::json_or_text(text))),
            None if answer.allow => Some(Self::Allow),
            None if answer.deny => Some(Self::Deny(wanted.reason.clone())),
            None => None,
        })
    }

    fn to(&self, question: &agent::Question) -> Value {
        match self {
            Self::Allow => run::decision(question, true, None),
            Self::Deny(reason) => run::decision(question, false, reason.as_deref()),
            Self::Edit(arguments) => json!({"decision": "edit", "arguments": arguments}),
            Self::Value(value) => value.clone(),
        }
    }
}

/// Goes on from a step of a run, in a new session.
pub(crate) async fn fork(wanted: Fork, global: &Global) -> Result<End> {
    let session = &wanted.which.session;
    let loaded = known(session, global).await?;
    let agent = loaded.build()?;
    let mut fork = match &wanted.which.run {
        Some(run) => agent.fork_run(session, run, wanted.step, wanted.into).await?,
        None => agent.fork(session, wanted.step, wanted.into).await?,
    };
    if let Some(text) = wanted.message {
        let is_user = |message: &Message| matches!(message, M::User(_));
        let said = fork.history.iter().enumerate().filter(|(_, message)| is_user(message)).map(|(at, _)| at).last();
        let at = said.ok_or_else(|| Error::config("the user had said nothing at that step: fork at a later one"))?;
        fork.edit(at, Message::user(text))?;
    }
    Driver::new(&agent, global).drive(RunRequest::resume(fork, []).streaming(true)).await
}

/// Drives a run again with what was recorded of it.
pub(crate) async fn replay(wanted: Replay, global: &Global) -> Result<End> {
    let loaded = known(&wanted.which.session, global).await?;
    let mut request = RunRequest::replay(wanted.which.session);
    if let Some(run) = wanted.which.run {
        request = request.run_id(run);
    }
    let agent = loaded.build()?;
    Driver::new(&agent, global).no_input(true).drive(request).await
}

/// Finds where two runs part.
pub(crate) async fn diff(wanted: &Diff, global: &Global) -> Result<End> {
    let journal = existing(global).await?;
    if let Some(end) = team::diff(&*journal, &wanted.one, &wanted.two, global).await? {
        return Ok(end);
    }
    let one = recording(&*journal, &wanted.one, global).await?;
    let two = recording(&*journal, &wanted.two, global).await?;
    let Some(parts) = parting(&one, &two) else {
        if global.json {
            print_json(&json!({"same": true}))?;
        } else {
            print("no difference\n")?;
        }
        return Ok(End::Finished);
    };
    if global.json {
        let sides = json!({"same": false, "step": parts.step, "what": parts.what, "one": parts.one, "two": parts.two});
        print_json(&sides)?;
    } else {
        print(&format!("{parts}\n"))?;
    }
    Ok(End::Failed)
}

/// A run by `SESSION` or `SESSION#ID`.
async fn recording(journal: &dyn Journal, named: &str, global: &Global) -> Result<Recording> {
    match named.rsplit_once('#') {
        Some((session, run)) => Recording::of_run(journal, session, run).await,
        None => {
            let agent = agent_of(journal, named, global.name.as_deref()).await?;
            Recording::read(journal, named, &agent).await
        }
    }
}
