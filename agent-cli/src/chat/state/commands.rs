//! Commands of a chat: lines that begin with `/`.

use super::{Action, State};
use crate::{cli::ThemeName, saved_prompts::SavedPrompt};

/// The commands: name, what follows it, what it does.
const COMMANDS: [(&str, &str, &str); 13] = [
    ("/attach", "FILE", "send a file along with what you say next"),
    ("/compact", "", "sum up the conversation"),
    ("/fork", "NAME", "go on in a copy of this session"),
    ("/help", "", "commands and keys"),
    ("/model", "PROVIDER:NAME", "ask another model from here on"),
    ("/new", "", "begin a new session"),
    ("/quit", "", "end the chat"),
    ("/resume", "", "go on with a run that was interrupted, or with its question"),
    ("/session", "NAME", "go to a session"),
    ("/sessions", "", "list sessions"),
    ("/theme", "dark, light, none", "set the colours"),
    ("/undo", "", "take the newest run back"),
    ("/usage", "", "tokens and money"),
];

const KEYS: &str = "\
Enter sends; while a run is under way it steers it. Alt-Enter begins a new line.
Esc interrupts. Ctrl-C interrupts, empties the line, or ends the chat. Ctrl-D ends it.
Up and Down recall what was said; Ctrl-R searches it. Tab completes commands.
PageUp and PageDown scroll. Alt-Up and Alt-Down choose a tool call or a sub-agent; Ctrl-O folds it, and unfolds it.";

/// The commands that the line may become.
pub(in crate::chat) fn completions<'a>(
    prompts: &'a [SavedPrompt],
    line: &'a str,
) -> impl Iterator<Item = (&'a str, &'a str, &'a str)> {
    let saved = prompts.iter().map(|prompt| (prompt.name.as_str(), "TEXT", prompt.about.as_str()));
    let all = COMMANDS.iter().copied().chain(saved);
    all.filter(move |(name, ..)| line.starts_with('/') && name.starts_with(line))
}

/// Returns true for a line with a command of the chat itself.
pub(super) fn is_builtin(line: &str) -> bool {
    COMMANDS.iter().any(|(name, ..)| line.split_whitespace().next() == Some(name))
}

impl State {
    /// Completes an unambiguous command.
    pub(super) fn complete(&mut self) {
        let names: Vec<_> = completions(&self.prompts, self.input.text()).map(|(name, ..)| name).collect();
        let Some(first) = names.first() else { return };
        let same = |at: usize| names.iter().all(|name| name.get(..at) == first.get(..at));
        let common = (0..=first.len()).rev().find(|at| same(*at)).unwrap_or(0);
        let more = if names.len() == 1 { " " } else { "" };
        let line = format!("{}{more}", first.get(..common).unwrap_or_default());
        self.write(&line);
    }

    /// Does what a line with a command says.
    pub(super) fn command(&mut self, line: &str) -> Option<Action> {
        let (name, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let rest = Some(rest.trim()).filter(|rest| !rest.is_empty()).map(str::to_owned);
        match (name, rest) {
            ("/quit" | "/exit", _) => return Some(Action::Quit),
            ("/resume", _) => return Some(Action::Resume),
            ("/sessions", _) => return Some(Action::Sessions),
            ("/undo", _) => return Some(Action::Undo),
            ("/compact", _) => return Some(Action::Compact),
            ("/new", _) => return Some(Action::Session(None)),
            ("/attach", Some(file)) => return Some(Action::Attach(file)),
            ("/session", Some(name)) => return Some(Action::Session(Some(name))),
            ("/fork", Some(name)) => return Some(Action::Fork(name)),
            ("/model", Some(name)) => return Some(Action::Model(name)),
            ("/session", None) => self.note(&format!("This is session {}.", self.session)),
            ("/model", None) => self.note(&format!("{} answers. `agent models` lists others.", self.model)),
            ("/usage", _) => self.tell_usage(),
            ("/help", _) => self.help(),
            ("/theme", Some(theme)) => match theme.as_str() {
                "dark" => self.theme = ThemeName::Dark,
                "light" => self.theme = ThemeName::Light,
                "none" => self.theme = ThemeName::None,
                _ => self.problem("The themes are dark, light and none."),
            },
            (name, None) if completions(&[], name).any(|(known, ..)| known == name) => {
                self.problem(&format!("{name} needs a word after it: see /help"));
            }
            _ => self.problem(&format!("There is no command {name}: see /help")),
        }
        None
    }

    fn help(&mut self) {
        let rows = completions(&self.prompts, "/").map(|(name, rest, what)| format!("{name:<10} {rest}\n    {what}"));
        self.note(&format!("{}\n\n{KEYS}", rows.collect::<Vec<_>>().join("\n")));
    }

    fn tell_usage(&mut self) {
        use crate::output::{count, dollars};
        let usage = self.usage;
        let text = format!(
            "{} calls, {} tokens in ({} cached), {} out, {}",
            usage.calls,
            count(usage.prompt()),
            count(usage.cached),
            count(usage.output),
            usage.whole_cost().map_or_else(|| "not all prices are known".into(), dollars),
        );
        self.note(&text);
    }
}
