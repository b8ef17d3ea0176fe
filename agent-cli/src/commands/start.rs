//! `agent run`.

use std::{
    io::{self, IsTerminal, Read},
    path::Path,
};

use agent::{Error, Message, Result, RunRequest, Structured, message::UserMessage};

use super::attach::{attached, read_file};
use crate::{
    cli::{Global, Run},
    load::{is_agent_file, load},
    output::{End, cannot},
    run::{Driver, json_or_text},
    saved_prompts::{expanded, saved_prompts},
    team,
};

/// Answers one prompt.
pub(crate) async fn run(wanted: Run, mut global: Global) -> Result<End> {
    let mut words = wanted.words.iter();
    let mut prompt = words.next().cloned();
    if let Some(file) = prompt.take_if(|word| is_agent_file(word)) {
        global.file = Some(file.into());
        prompt = words.next().cloned();
    }
    if let Some(more) = words.next() {
        return Err(Error::config(format!("'{more}' is a word too many: put the prompt in quotes")));
    }
    let mut parts = wanted.attach.iter().map(|file| attached(file)).collect::<Result<Vec<_>>>()?;
    let prompt = prompt.map_or_else(read_prompt, Ok)?;
    let saved = saved_prompts(global.dir.as_deref().unwrap_or(Path::new(".")));
    parts.push(agent::Part::text(expanded(&saved, &prompt).unwrap_or(prompt)));

    if let Some(found) = team::team_of(&global)? {
        refuse_of_agents(&wanted)?;
        let opened = team::open(found, &global).await?;
        return team::run(&opened, parts, wanted.session, wanted.no_input, &global).await;
    }
    let loaded = load(&global).await?;
    let mut builder = loaded.builder.clone();
    if let Some(file) = &wanted.output_schema {
        let schema = serde_json::from_str(&read_file(file)?)
            .map_err(|e| Error::config(format!("{} is not JSON: {e}", file.display())))?;
        builder = builder.middleware(Structured::from_schema("answer", schema)?);
    }
    if let Some(most) = wanted.max_steps {
        builder = builder.max_steps(most);
    }
    let agent = builder.build()?;
    let mut request = RunRequest::new(vec![Message::User(UserMessage::new(parts))]).streaming(true);
    for (name, value) in wanted.inputs.all {
        request = request.input(name, json_or_text(&value));
    }
    if let Some(session) = wanted.session {
        request = request.session(session);
    }
    let driver = Driver::new(&agent, &global).no_input(wanted.no_input).final_only(wanted.output_schema.is_some());
    driver.drive(request).await
}

/// Refuses options that only one agent has.
fn refuse_of_agents(wanted: &Run) -> Result<()> {
    let given = [
        ("--output-schema", wanted.output_schema.is_some()),
        ("--max-steps", wanted.max_steps.is_some()),
        ("--input", !wanted.inputs.all.is_empty()),
    ];
    match given.iter().find(|(_, is_given)| *is_given) {
        Some((option, _)) => Err(Error::config(format!(
            "{option} is for one agent, and the file describes a team: write it into the files of the agents"
        ))),
        None => Ok(()),
    }
}

fn read_prompt() -> Result<String> {
    let usage = || Error::config("there is no prompt: say it (agent run 'Why?') or write it to standard input");
    if io::stdin().is_terminal() {
        return Err(usage());
    }
    let mut text = String::new();
    io::stdin().lock().read_to_string(&mut text).map_err(|e| cannot("standard input", e))?;
    if text.trim().is_empty() { Err(usage()) } else { Ok(text.trim_end().to_owned()) }
}
