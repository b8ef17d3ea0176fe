//! Wrapper around each program of a remote sandbox, so that all its descendants can be killed.
//!
//! An engine, or a daemon in a machine, kills one process only. Therefore the processes of a
//! command have a mark in their environment, by which they are found and killed. A process that
//! empties its environment is not found.

use agent_core::run::new_id;

/// First byte of the wrapper's output: the directory exists, or does not.
pub(super) const READY: u8 = 1;
pub(super) const NO_DIRECTORY: u8 = 2;

/// Kills the processes with a mark, except this one, until none is left: each round may find
/// processes started during the previous one. Processes of another user are unreadable, and do not
/// belong to the command. The mark is matched as a pattern, since BusyBox's `grep -F` searches only
/// as far as the first variable.
macro_rules! kill {
    ($mark:literal) => {
        concat!(
            "i=0; while [ $i -lt 50 ]; do i=$((i+1)); found=
for p in $(grep -ls -- \"",
            $mark,
            "\" /proc/[0-9]*/environ 2>/dev/null); do p=${p#/proc/}; p=${p%/environ}
[ $p = $$ ] || { kill -9 $p 2>/dev/null && found=1; }; done
[ -n \"$found\" ] || break; done"
        )
    };
}

/// Exits with 1 if some processes were left.
pub(super) const KILL: &str = concat!(kill!("$1"), "; [ -z \"$found\" ]");

/// Reports that the directory exists, runs the program, kills its remaining descendants, and exits
/// with its status. The output streams are merged to keep their order; error messages of this shell
/// are discarded. The wrapper has the mark in its own environment: a shell that sets a variable for
/// a child may fork without executing anything.
const GATE: &str = concat!(
    "exec 2>/dev/null; cd -- \"$1\" || { printf '\\002'; exit 1; }; printf '\\001'; mark=$2; shift 2
sh -c 'exec \"$@\"' sh \"$@\" 2>&1; code=$?
",
    kill!("$mark"),
    "; exit $code"
);

/// Environment variable that marks a command's processes.
pub(super) const MARK: &str = "AGENT_SANDBOX_COMMAND";

/// Returns the common prefix of the marks of all commands of a sandbox.
pub(super) fn marks(sandbox: &str) -> String {
    format!("{sandbox}.")
}

/// Returns a unique mark, the value of [`MARK`].
pub(super) fn new_mark(sandbox: &str) -> String {
    marks(sandbox) + &new_id()
}

/// Returns the arguments of `sh` for a program that starts in a directory, with a mark.
pub(super) fn gated(dir: &str, mark: &str, program: String, args: Vec<String>) -> Vec<String> {
    let gate = ["-c", GATE, "sh", dir, mark].map(str::to_owned);
    gate.into_iter().chain([program]).chain(args).collect()
}
