//! Nested commands, which `sudo`, `xargs` or `bash -c` run.

use super::{Line, command::Command, reader, word::Word};

/// Shells: their arguments, and their input, are programs.
const SHELLS: &[&str] = &["ash", "bash", "csh", "dash", "fish", "ksh", "mksh", "sh", "tcsh", "zsh"];

/// Programs that only run the command that follows.
const PLAIN: &[&str] = &["command", "nohup", "time"];

/// Programs that run other programs or have a scripting language, and commands that change the
/// shell for the rest of the line.
const RUNNERS: &str = ". alias at awk batch bind builtin bun bundle bunx busybox chroot complete crontab declare deno doas \
    docker duckdb ed emacs enable entr env eval ex exec expect export flock gawk gdb hx ionice just kubectl less let local \
    ltrace lua make mapfile mariadb mawk mongosh more most mysql nawk nice ninja node npm npx nsenter nvim osascript \
    parallel perl php pipx pkexec pnpm pnpx podman psql pwsh python python2 python3 rake read readarray readonly rlwrap rsh \
    ruby run0 runuser screen script sed set setsid shopt source sqlite3 ssh sshpass stdbuf strace su sudo systemd-run \
    taskset tclsh timeout tmux toybox trap ts-node tsx typeset unset unshare uv uvx vi view vim watch xargs yarn";

/// Arguments with which `find` runs the command that follows.
const FIND_RUNS: &[&str] = &["-exec", "-execdir", "-ok", "-okdir"];

/// Maximum number of analysed words of a program that runs others. With more, the line is unclear.
const MOST_WORDS: usize = 100;

/// Adds the command, and those that it may run. `depth` counts nested lines.
pub(super) fn add(line: &mut Line, mut command: Command, depth: usize) {
    while let Some(program) = command.program()
        && PLAIN.contains(&program)
        && command.words.get(1).is_some_and(|next| next.exact && !next.text.starts_with('-'))
    {
        command.words.remove(0);
    }
    if let [_, flag, script] = command.words.as_slice()
        && is_shell(&command)
        && !(command.assigns || command.is_fed)
        && (flag.text == "-c" && flag.exact && script.exact)
    {
        return take_in(line, reader::read(&script.text, depth + 1), command.guess);
    }
    command.runs_others = runs_others(&command);
    if command.runs_others {
        guess(line, &command.words[1..], depth);
    }
    line.commands.push(command);
}

/// Treats every word of a program that runs others as the possible start of a command, and as a
/// possible line.
fn guess(line: &mut Line, words: &[Word], depth: usize) {
    line.clear &= words.len() <= MOST_WORDS;
    let words = &words[..words.len().min(MOST_WORDS)];
    for (i, word) in words.iter().enumerate() {
        if word.text.starts_with('-') || !word.exact {
            continue;
        }
        if word.text.contains(|c: char| c.is_whitespace() || ";&|<>()$`\\'\"".contains(c)) {
            take_in(line, reader::read(&word.text, depth + 1), true);
        }
        line.commands.push(Command { words: words[i..].to_vec(), guess: true, ..Command::default() });
    }
}

/// Adds the commands of a nested line.
pub(super) fn take_in(line: &mut Line, inner: Line, guess: bool) {
    line.clear &= inner.clear || guess; // a guess need not be a valid line
    line.commands.extend(inner.commands.into_iter().map(|c| Command { guess: c.guess || guess, ..c }));
}

/// True if the command is a shell.
pub(super) fn is_shell(command: &Command) -> bool {
    command.program().is_some_and(|program| SHELLS.contains(&program))
}

fn runs_others(command: &Command) -> bool {
    let Some(program) = command.program() else { return false };
    let finds = || command.words.iter().any(|word| FIND_RUNS.contains(&word.text.as_str()));
    let versioned = program.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    let is_runner = |name: &str| RUNNERS.split_whitespace().any(|runner| runner == name);
    [program, versioned].iter().any(|p| is_runner(p) || SHELLS.contains(p) || PLAIN.contains(p))
        || (program == "find" && finds())
}
