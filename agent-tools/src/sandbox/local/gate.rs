//! Start gates: the two shells that hold a program until its limits are set.
//!
//! The outer gate runs outside the isolation backend, the inner one inside it. Neither has a
//! variable of the program in its environment, since a shell executes some of them (exported
//! functions, `PS4`, `ENV`). The program's variables travel through its standard input and are set
//! by the inner gate, immediately before it executes the program.

use std::{
    collections::BTreeMap,
    fs,
    io::{self, Read},
    time::{Duration, Instant},
};

use agent_core::{Error, Result};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// Outer gate: waits for a line before it executes its arguments. Until then, limits are set. It
/// closes the descriptors that the application left open: 3 to 9, and `{more}`.
const OUTER: &str = "IFS= read -r go || exit 126; exec 3<&- 4<&- 5<&- 6<&- 7<&- 8<&- 9<&-{more}; exec \"$@\"";

/// Inner gate: reports that it runs, waits for the line that [`environment`] made, and evaluates it
/// in a subshell. It stays the parent of the program, so that the first process of a PID namespace
/// is never one that could outlive the application. `{most}` is the maximum number of processes,
/// which the namespace counts by itself.
const INNER: &str = "__newline='\n'; ulimit -u {most} 2>/dev/null || ulimit -p {most} 2>/dev/null; printf '\\001'; \
    IFS= read -r go || exit 126; (eval \"$go\"); exit \"$?\"";

/// Variable of the inner gate that holds a line break, which `read` would end at.
const NEWLINE: &str = "__newline";

/// Byte that the inner gate writes when it runs.
const READY: u8 = 1;

/// Maximum number of bytes of an error message of a gate or the backend.
const MESSAGE: u64 = 4 << 10;

/// Time that a gate that failed has for the rest of its error message.
const MESSAGE_TIME: Duration = Duration::from_secs(1);

/// Last descriptor that every shell can close. Higher ones need bash.
const LAST_FOR_ALL: u32 = 9;

/// Variables that shells assign themselves, or react to: `env` sets them instead of the inner gate.
const OF_SHELLS: [&str; 19] = [
    NEWLINE,
    "BASHPID",
    "DIRSTACK",
    "EPOCHREALTIME",
    "EPOCHSECONDS",
    "EUID",
    "FUNCNAME",
    "GID",
    "GROUPS",
    "HISTCMD",
    "LINENO",
    "OPTIND",
    "PIPESTATUS",
    "PPID",
    "RANDOM",
    "SECONDS",
    "SRANDOM",
    "UID",
    "USERNAME",
];

/// Variables that make the dynamic linker or a shell execute something before the program runs.
const REFUSED: [&str; 4] = ["SHELLOPTS", "BASHOPTS", "PS4", "ENV"];

/// Script of the outer gate. Closes `left_open` too, which needs bash.
pub(super) fn outer(left_open: &[u32]) -> String {
    let more: String = left_open.iter().map(|descriptor| format!(" {descriptor}<&-")).collect();
    OUTER.replace("{more}", &more)
}

/// Script of the inner gate.
pub(super) fn inner(processes: u32) -> String {
    INNER.replace("{most}", &processes.to_string())
}

/// Line for the inner gate: exports the variables and executes its arguments. `env` is the path of
/// that program.
pub(super) fn environment(variables: &BTreeMap<String, String>, env: &str) -> String {
    let of_shells = |name: &str| OF_SHELLS.contains(&name) || name.starts_with("LC_");
    let assignments = |of: bool| {
        let chosen = variables.iter().filter(move |(name, _)| of_shells(name) == of);
        chosen.map(|(name, value)| format!(" {name}={}", quoted(value))).collect::<String>()
    };
    let (own, others) = (assignments(true), assignments(false));
    let export = if others.is_empty() { String::new() } else { format!("export{others}; ") };
    let through_env = if own.is_empty() { String::new() } else { format!(" {}{own}", quoted(env)) };
    format!("{export}exec{through_env} \"$@\"\n")
}

/// Quotes the value as one shell word without a line break.
fn quoted(value: &str) -> String {
    format!("'{}'", value.replace('\'', "'\\''").replace('\n', &format!("'\"${NEWLINE}\"'")))
}

/// Refuses variables that a sandbox does not set: names that are no identifiers, those with which
/// the dynamic linker or a shell executes something, and values with a NUL byte.
///
/// # Errors
/// Of kind [`Config`](agent_core::ErrorKind::Config), with the name of the variable.
pub(super) fn check_env<'a>(variables: impl IntoIterator<Item = (&'a String, &'a String)>) -> Result<()> {
    for (name, value) in variables {
        let refused =
            |why: &str| Err(Error::config(format!("the variable {name:?} cannot be given to a sandbox: {why}")));
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) || !name.chars().all(is_word) {
            return refused("its name must consist of letters, digits and underscores");
        }
        if ["LD_", "BASH_"].iter().any(|prefix| name.starts_with(prefix)) || REFUSED.contains(&name.as_str()) {
            return refused("set it in the command line, in front of the program");
        }
        if value.contains('\0') {
            return refused("its value contains a NUL byte");
        }
    }
    Ok(())
}

/// Waits until the inner gate runs.
///
/// # Errors
/// The message that a gate or the backend wrote instead, or that none ran within `longest`.
pub(super) fn is_ready(output: &mut io::PipeReader, longest: Duration) -> io::Result<()> {
    let until = Instant::now() + longest;
    let mut first = [0];
    if !is_readable(output, until)? {
        let late = format!("nothing ran within {} s", longest.as_secs_f64());
        return Err(io::Error::new(io::ErrorKind::TimedOut, late));
    }
    let read = output.read(&mut first)?;
    if first[..read] == [READY] {
        return Ok(());
    }
    let mut message = first[..read].to_vec();
    let until = Instant::now() + MESSAGE_TIME;
    let mut piece = [0; 512];
    while (message.len() as u64) < MESSAGE && is_readable(output, until)? {
        match output.read(&mut piece)? {
            0 => break,
            read => message.extend_from_slice(&piece[..read]),
        }
    }
    Err(io::Error::other(String::from_utf8_lossy(&message).trim().to_owned()))
}

/// Returns false if there is nothing to read by `until`.
fn is_readable(output: &io::PipeReader, until: Instant) -> io::Result<bool> {
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let left = Timespec::try_from(left).map_err(io::Error::other)?;
        match poll(&mut [PollFd::new(output, PollFlags::IN)], Some(&left)) {
            Ok(ready) => return Ok(ready > 0),
            Err(rustix::io::Errno::INTR) => {}
            Err(e) => return Err(e.into()),
        }
    }
}

/// Descriptors of the application that programs would inherit, above those that are always closed.
pub(super) fn left_open() -> io::Result<Vec<u32>> {
    const O_CLOEXEC: u32 = 0o2_000_000;
    let mut left = Vec::new();
    for entry in fs::read_dir("/proc/self/fdinfo")?.flatten() {
        let number: u32 = entry.file_name().to_string_lossy().parse().unwrap_or(0);
        if number > LAST_FOR_ALL {
            // The file of a descriptor that was closed meanwhile cannot be read.
            let info = fs::read_to_string(entry.path()).unwrap_or_default();
            let flags = info.lines().find_map(|line| u32::from_str_radix(line.strip_prefix("flags:")?.trim(), 8).ok());
            left.extend(flags.filter(|flags| flags & O_CLOEXEC == 0).map(|_| number));
        }
    }
    Ok(left)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn a_gate_that_stays_silent_is_an_error_and_one_that_complains_is_quoted() {
        let (mut output, mut write) = io::pipe().expect("a pipe");
        let late = is_ready(&mut output, Duration::from_millis(5)).expect_err("nothing was written");
        assert_eq!(late.kind(), io::ErrorKind::TimedOut);
        // The writer keeps its end open, as a gate does that waits for its line.
        write.write_all(b"+ IFS=\n").expect("writes");
        let error = is_ready(&mut output, Duration::from_secs(60)).expect_err("is no ready byte");
        assert_eq!(error.to_string(), "+ IFS=");
        write.write_all(&[READY]).expect("writes");
        is_ready(&mut output, Duration::from_secs(60)).expect("is ready");
    }

    #[test]
    fn values_are_quoted_into_one_line() {
        let variables = [("A", "it's\n$(x)"), ("LC_ALL", "C"), ("UID", "0")];
        let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        let line = environment(&variables, "/usr/bin/env");
        let expected = "export A='it'\\''s'\"$__newline\"'$(x)'; exec '/usr/bin/env' LC_ALL='C' UID='0' \"$@\"\n";
        assert_eq!(line, expected);
        assert_eq!(environment(&BTreeMap::new(), "env"), "exec \"$@\"\n");
    }
}
