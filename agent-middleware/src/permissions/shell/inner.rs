//! Commands inside commands: what `sudo`, `xargs` or `bash -c` run.

use super::{Command, Line, Word, reader};

/// Shells: their arguments, and what they read, are programs.
const SHELLS: &[&str] = &["ash", "bash", "csh", "dash", "fish", "ksh", "mksh", "sh", "tcsh", "zsh"];

/// Programs that run what follows, and do nothing else.
const PLAIN: &[&str] = &["command", "nohup", "time"];

/// Programs that run others, or a language of their own.
const RUNNERS: &[&str] = &[
    ".",
    "awk",
    "builtin",
    "busybox",
    "chroot",
    "deno",
    "doas",
    "docker",
    "emacs",
    "entr",
    "env",
    "eval",
    "exec",
    "expect",
    "flock",
    "gawk",
    "gdb",
    "ionice",
    "kubectl",
    "lua",
    "make",
    "mawk",
    "nawk",
    "nice",
    "node",
    "nsenter",
    "osascript",
    "parallel",
    "perl",
    "php",
    "podman",
    "pwsh",
    "python",
    "python2",
    "python3",
    "ruby",
    "runuser",
    "script",
    "sed",
    "setsid",
    "source",
    "ssh",
    "stdbuf",
    "strace",
    "su",
    "sudo",
    "systemd-run",
    "taskset",
    "tclsh",
    "timeout",
    "toybox",
    "trap",
    "unshare",
    "vi",
    "vim",
    "watch",
    "xargs",
];

/// Arguments with which `find` runs what follows.
const FIND_RUNS: &[&str] = &["-exec", "-execdir", "-ok", "-okdir"];

/// How many words of a program that runs others are looked at. With more, the line is unclear.
const MOST_WORDS: usize = 100;

/// Puts commands into a line with what is inside them.
#[derive(Debug)]
pub(super) struct Inner;

impl Inner {
    /// Adds the command, and those that it may run. `depth` counts lines within lines.
    pub(super) fn add(line: &mut Line, mut command: Command, depth: usize) {
        while let Some(program) = command.program()
            && PLAIN.contains(&program)
            && command.words.get(1).is_some_and(|next| next.exact && !next.text.starts_with('-'))
        {
            command.words.remove(0);
        }
        if let [_, flag, script] = command.words.as_slice()
            && is_shell(&command)
            && !command.assigns
            && (flag.text == "-c" && flag.exact && script.exact)
        {
            return Self::take_in(line, reader::read(&script.text, depth + 1), command.guess);
        }
        command.runs_others = runs_others(&command);
        if command.runs_others {
            Self::guess(line, &command.words[1..], depth);
        }
        line.commands.push(command);
    }

    /// Any word of a program that runs others may begin a command, and any may be a line of its own.
    fn guess(line: &mut Line, words: &[Word], depth: usize) {
        let words = if words.len() > MOST_WORDS {
            line.clear = false;
            &words[..MOST_WORDS]
        } else {
            words
        };
        for (i, word) in words.iter().enumerate() {
            if word.text.starts_with('-') || !word.exact {
                continue;
            }
            if word.text.contains(|c: char| c.is_whitespace() || ";&|<>()$`\\'\"".contains(c)) {
                Self::take_in(line, reader::read(&word.text, depth + 1), true);
            }
            line.commands.push(Command { words: words[i..].to_vec(), guess: true, ..Command::default() });
        }
    }

    /// Takes the commands of a line within a line.
    pub(super) fn take_in(line: &mut Line, inner: Line, guess: bool) {
        line.clear &= inner.clear || guess; // what is a guess anyway need not be a line
        line.commands.extend(inner.commands.into_iter().map(|c| Command { guess: c.guess || guess, ..c }));
    }
}

/// True if the command is a shell.
pub(super) fn is_shell(command: &Command) -> bool {
    command.program().is_some_and(|program| SHELLS.contains(&program))
}

fn runs_others(command: &Command) -> bool {
    let Some(program) = command.program() else { return false };
    let finds = || command.words.iter().any(|word| FIND_RUNS.contains(&word.text.as_str()));
    let versioned = program.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    [program, versioned].iter().any(|p| RUNNERS.contains(p) || SHELLS.contains(p) || PLAIN.contains(p))
        || (program == "find" && finds())
}
