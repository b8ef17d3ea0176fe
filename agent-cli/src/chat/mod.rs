//! `agent chat`: a conversation in the terminal.
//!
//! [`State`](state::State) is what is on the screen and what keys and events do to it; `view` draws it; `runner` has the agent. The
//! loop here only carries between them: keys come from a thread of their own, so that none waits for a drawing, and at most thirty
//! pictures are drawn a second, however many events come.

mod picture;
mod runner;
mod state;
mod view;

use std::{
    io::{self, IsTerminal},
    path::Path,
    time::{Duration, Instant},
};

use agent::{Error, Result};
use crossterm::event::{self, Event as Input};
use ratatui::DefaultTerminal;
use tokio::sync::mpsc;

use self::{
    runner::{Runner, Told},
    state::{Action, State},
    view::View,
};
use crate::{
    cli::{Chat, Global, ThemeName},
    load::load,
    output::{End, cannot, wants_colour},
    run::json_or_text,
    saved_prompts::saved_prompts,
    team,
};

/// The time between two pictures.
const FRAME: Duration = Duration::from_millis(33);
/// Maximum number of events between two polls of the keys.
const AT_ONCE: usize = 256;

/// Talks with the agent until the user goes away.
pub(crate) async fn chat(wanted: Chat, mut global: Global) -> Result<End> {
    global.file = wanted.agent_file.or(global.file);
    if let Some(found) = team::team_of(&global)? {
        if !wanted.inputs.all.is_empty() {
            return Err(Error::config("--input is for one agent, and the file describes a team"));
        }
        let opened = team::open(found, &global).await?;
        return team::chat(&opened, wanted.session, &global).await;
    }
    if !io::stdin().is_terminal() || !io::stdout().is_terminal() {
        return Err(Error::config("a chat needs a terminal: use `agent run` in pipes and scripts"));
    }
    let loaded = load(&global).await?;
    let theme = if wants_colour() { wanted.theme } else { ThemeName::None };
    let (told, mut heard) = mpsc::channel(AT_ONCE);
    let inputs = wanted.inputs.all.into_iter().map(|(name, value)| (name, json_or_text(&value))).collect();
    let mut runner = Runner::new(loaded.build()?, loaded.journal, told).inputs(inputs);
    let mut state = State::new(theme);
    state.prompts = saved_prompts(global.dir.as_deref().unwrap_or(Path::new(".")));
    runner.enter(&mut state, wanted.session).await?;

    let mut terminal = ratatui::try_init().map_err(|e| cannot("the terminal", e))?;
    let _ = crossterm::execute!(io::stdout(), event::EnableBracketedPaste);
    let ended = converse(&mut terminal, &mut state, &mut runner, &mut heard).await;
    let _ = crossterm::execute!(io::stdout(), event::DisableBracketedPaste);
    ratatui::restore();
    drop(heard); // nobody listens any more: what is still said does not wait
    runner.leave().await;
    ended?;
    eprintln!("agent: go on with: agent chat --session {}", crate::run::quoted(&state.session));
    Ok(End::Finished)
}

async fn converse(
    terminal: &mut DefaultTerminal,
    state: &mut State,
    runner: &mut Runner,
    heard: &mut mpsc::Receiver<Told>,
) -> Result<()> {
    let mut inputs = read_inputs();
    let mut view = View::default();
    let mut next = Instant::now();
    loop {
        let now = Instant::now();
        if now >= next {
            terminal.draw(|frame| view.draw(frame, state)).map_err(|e| cannot("the terminal", e))?;
            next = Instant::now() + FRAME;
            state.is_changed = false;
        }
        let picture_is_due = state.is_changed || state.is_running;
        tokio::select! {
            biased;
            input = inputs.recv() => {
                let Some(input) = input else { return Ok(()) };
                let action = match input {
                    Input::Key(key) if key.is_press() => state.key(key),
                    Input::Paste(text) => state.paste(&text),
                    _ => None,
                };
                state.is_changed = true;
                match action {
                    Some(Action::Quit) => return Ok(()),
                    Some(action) => runner.act(state, action).await,
                    None => {}
                }
            }
            told = heard.recv() => {
                let Some(told) = told else { return Ok(()) };
                runner.take(state, told).await;
                for _ in 0..AT_ONCE {
                    let Ok(told) = heard.try_recv() else { break };
                    runner.take(state, told).await;
                }
            }
            () = tokio::time::sleep_until(next.into()), if picture_is_due => {}
        }
    }
}

/// Keys, pastes and changes of the size, read by a thread until the receiver is dropped.
fn read_inputs() -> mpsc::UnboundedReceiver<Input> {
    let (send, receive) = mpsc::unbounded_channel();
    std::thread::spawn(move || {
        while !send.is_closed() {
            match event::poll(Duration::from_millis(100)) {
                Ok(false) => {}
                Ok(true) => match event::read() {
                    Ok(input) => drop(send.send(input)),
                    Err(_) => return,
                },
                Err(_) => return,
            }
        }
    });
    receive
}
