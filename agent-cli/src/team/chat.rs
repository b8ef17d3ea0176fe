//! `agent chat` with a team: the members speak, and the user writes to any of them.

use std::{
    io::{self, BufRead, IsTerminal, Write},
    sync::Arc,
    time::Duration,
};

use agent::{
    Error, Result,
    run::new_id,
    team::{TeamChange, TeamEnd, TeamEvent, TeamEventKind, TeamQuestion, TeamRequest, TeamRun, TeamSession},
};
use futures::StreamExt;
use tokio::sync::mpsc;

use super::{answer::answer, open::Opened, show};
use crate::{
    cli::Global,
    output::{End, Paint, explained, plain, print},
    run::{interrupted, quoted},
};

const HELP: &str = "\
TEXT            write to the leader (with a pattern: run it on the text)
@MEMBER TEXT    write to a member, such as @builder-1; @builder is the first builder
/board          show the task board
/members        show the members
/questions      show the open questions
/answer [MEMBER] ANSWER   answer the first open question, or that of a member: yes, no REASON, a text or JSON
/resume         continue a run that was suspended
/stop           end the run of the team
/quit           leave; the run is suspended
";

/// Talks with a team until the user leaves, or the input ends and the team is done.
///
/// # Errors
/// Those of the store.
pub(crate) async fn chat(opened: &Opened, session: Option<String>, global: &Global) -> Result<End> {
    let name: Arc<str> = session.unwrap_or_else(|| format!("team-{}", new_id())).into();
    let mut chat = Chat { opened, session: opened.team.session(name.clone()), run: None };
    chat.greet().await?;
    let ended = chat.converse().await;
    chat.leave().await;
    ended?;
    let file = global.file.as_ref().map_or_else(String::new, |file| quoted(&file.to_string_lossy()));
    eprintln!("agent: go on with: agent chat {file} --session {}", quoted(&name));
    Ok(End::Finished)
}

struct Chat<'a> {
    opened: &'a Opened,
    session: TeamSession,
    /// The run that is in progress.
    run: Option<TeamRun>,
}

impl Chat<'_> {
    /// Says who is there, and shows a session that exists.
    async fn greet(&self) -> Result<()> {
        let team = &self.opened.team;
        let who = match team.pattern() {
            Some(pattern) => format!("pattern {}", pattern.name()),
            None => {
                let roles: Vec<_> = team.roles().map(|(role, _)| role).collect();
                let roles = if roles.is_empty() { "none".to_owned() } else { roles.join(", ") };
                format!("a leader; roles: {roles}")
            }
        };
        note(&format!("team {}: {who}. /help lists what you can write", team.name()));
        if !self.opened.description.is_empty() {
            note(&self.opened.description);
        }
        let state = self.session.state().await?;
        if state.run().is_some() {
            print(&show::members(&state.member_infos()))?;
            print(&show::board(state.board()))?;
        }
        if state.is_open() {
            self.ask(&state.questions());
            note("the newest run is suspended: /resume continues it");
        }
        Ok(())
    }

    async fn converse(&mut self) -> Result<()> {
        let mut lines = read_lines();
        let mut is_over = false;
        loop {
            prompt(is_over);
            tokio::select! {
                line = lines.recv(), if !is_over => match line {
                    None if self.run.is_none() => return Ok(()),
                    None => is_over = true,
                    Some(line) if line.trim() == "/quit" => return Ok(()),
                    Some(line) => if let Err(error) = self.take(line.trim()).await {
                        note(&explained(&error));
                    },
                },
                event = next(&mut self.run) => match event {
                    Some(event) => self.event(&event).await?,
                    None => {
                        let ended = match self.run.take() {
                            Some(run) => run.await,
                            None => return Ok(()),
                        };
                        match ended {
                            Ok(end) => self.ended(&end)?,
                            Err(error) => note(&explained(&error)),
                        }
                        if is_over {
                            return Ok(());
                        }
                    }
                },
                _ = interrupted() => return Ok(()),
            }
        }
    }

    /// Does what a line says.
    async fn take(&mut self, line: &str) -> Result<()> {
        let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        match word {
            "" => {}
            "/help" => print(HELP)?,
            "/board" => print(&show::board(&self.session.board().await?))?,
            "/members" => print(&show::members(&self.session.members().await?))?,
            "/questions" => self.ask(&self.session.questions().await?),
            "/answer" => self.answer(rest.trim()).await?,
            "/stop" => self.session.stop().await?,
            "/resume" => self.start(TeamRequest::resume(self.session.name().clone()))?,
            command if command.starts_with('/') => {
                return Err(Error::config(format!("unknown command '{command}'; /help lists the commands")));
            }
            member if member.starts_with('@') && member.len() > 1 => {
                let member = self.member(&member[1..]).await?;
                self.session.message(member, rest.trim()).await?;
                self.continue_open().await?;
            }
            _ => self.say(line).await?,
        }
        Ok(())
    }

    /// Writes to the leader: starts a run, or sends a message to the one that is open.
    async fn say(&mut self, text: &str) -> Result<()> {
        let is_pattern = self.opened.team.pattern().is_some();
        let is_open = self.session.state().await?.is_open();
        match (is_open, self.run.is_some()) {
            (true, _) if is_pattern => Err(Error::config(
                "the pattern has not ended, and takes no further messages: wait, /resume or /stop it",
            )),
            (true, true) => self.session.message(agent::team::LEADER, text).await.map(drop),
            // A run that has begun in this moment is not in the journal yet.
            (false, true) => Err(Error::config("the team is about to begin: write again in a moment")),
            _ => self.start(TeamRequest::user(text).session(self.session.name().clone())),
        }
    }

    /// The member of this id, or the first member of this role.
    async fn member(&self, word: &str) -> Result<Arc<str>> {
        let members = self.session.members().await?;
        let of_role = || members.iter().find(|member| *member.role == *word);
        let member = members.iter().find(|member| *member.id == *word).or_else(of_role);
        let known = || members.iter().map(|member| &*member.id).collect::<Vec<_>>().join(", ");
        let unknown = || Error::config(format!("there is no member '{word}'; members: {}", known()));
        member.map(|member| member.id.clone()).ok_or_else(unknown)
    }

    /// Answers an open question: the first one, or that of a member whose id comes first.
    async fn answer(&mut self, text: &str) -> Result<()> {
        let questions = self.session.questions().await?;
        let (word, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        let of_member = questions.iter().find(|asked| *asked.member == *word && !rest.is_empty());
        let (asked, text) = match of_member {
            Some(asked) => (Some(asked), rest),
            None => (questions.first(), text),
        };
        let asked = asked.ok_or_else(|| Error::config("no question is open"))?;
        let value = answer(&asked.question, text)?;
        self.session.answer(asked.member.clone(), asked.question.id.clone(), value).await?;
        self.continue_open().await
    }

    /// Drives an open run that nobody drives.
    async fn continue_open(&mut self) -> Result<()> {
        match self.run.is_none() && self.session.state().await?.is_open() {
            true => self.start(TeamRequest::resume(self.session.name().clone())),
            false => Ok(()),
        }
    }

    fn start(&mut self, request: TeamRequest) -> Result<()> {
        if self.run.is_some() {
            return Err(Error::config("the team is at work"));
        }
        self.run = Some(self.opened.team.start(request.streaming(true)));
        Ok(())
    }

    async fn event(&self, event: &TeamEvent) -> Result<()> {
        if let Some((member, text)) = show::said(event) {
            print(&format!("[{member}] {}\n", text.trim_end()))?;
        }
        if let Some(told) = show::told(event) {
            note(&told);
        }
        if let TeamEventKind::Change(TeamChange::TurnSuspended { member, .. }) = &event.kind {
            let questions = self.session.questions().await?;
            self.ask(&questions.into_iter().filter(|asked| asked.member == *member).collect::<Vec<_>>());
        }
        Ok(())
    }

    fn ask(&self, questions: &[TeamQuestion]) {
        for asked in questions {
            note(&format!("{}. Answer with: /answer {} ..", show::question(asked), asked.member));
        }
    }

    fn ended(&self, end: &TeamEnd) -> Result<()> {
        if end.reason.is_final() && !end.text.is_empty() {
            print(&format!("[team] {}\n", end.text.trim_end()))?;
        }
        match end.reason.is_final() {
            true => note(&format!("the team ended: {}", end.reason)),
            false => note(&format!("the team is suspended: {}", end.reason)),
        }
        Ok(())
    }

    /// Cancels the run, so that the journal records it.
    async fn leave(&mut self) {
        if let Some(run) = self.run.take() {
            run.handle().cancel();
            let _ = tokio::time::timeout(Duration::from_secs(5), run).await;
        }
    }
}

/// The next event of the run; pending without a run.
async fn next(run: &mut Option<TeamRun>) -> Option<TeamEvent> {
    match run {
        Some(run) => run.next().await,
        None => std::future::pending().await,
    }
}

/// Shows the prompt at a terminal.
fn prompt(is_over: bool) {
    if !is_over && io::stdin().is_terminal() && io::stdout().is_terminal() {
        print!("> ");
        let _ = io::stdout().flush(); // a closed terminal ends the input
    }
}

fn note(text: &str) {
    eprintln!("{}", Paint::stderr().dim(&plain(text)));
}

/// Lines of the input, read by a thread until the receiver is dropped.
fn read_lines() -> mpsc::UnboundedReceiver<String> {
    let (send, receive) = mpsc::unbounded_channel();
    std::thread::spawn(move || {
        for line in io::stdin().lock().lines() {
            let Ok(line) = line else { return };
            if send.send(line).is_err() {
                return;
            }
        }
    });
    receive
}
