//! What is started beside each program of a sandbox elsewhere, so that all that it starts can be ended.
//!
//! An engine, or a daemon in a machine, ends one process and no more. So the processes of a command have a mark in their environment, by which
//! they are found and killed. Who empties the environment is not found.

use agent_core::run::new_id;

/// What the gate says first: the directory is there, or is none.
pub(super) const READY: u8 = 1;
pub(super) const NO_DIRECTORY: u8 = 2;

/// Kills the processes with a mark, but for this one, until there is none: each round may meet those that were made in the one before. Processes of
/// another user are not read, and are none of the command's. The mark is no fixed text for `grep`: that of BusyBox seeks one only as far as the first variable.
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

/// Ends with 1 if there still were some.
pub(super) const KILL: &str = concat!(kill!("$1"), "; [ -z \"$found\" ]");

/// Says that the directory is there, runs the program, kills what it left running, and ends as it has ended. The program's output is one, so that its
/// order is kept; what this shell itself complains of is nobody's. It has the mark in its own environment: a shell that sets a variable for what it
/// starts may be one that starts nothing, but forks.
const GATE: &str = concat!(
    "exec 2>/dev/null; cd -- \"$1\" || { printf '\\002'; exit 1; }; printf '\\001'; mark=$2; shift 2
sh -c 'exec \"$@\"' sh \"$@\" 2>&1; code=$?
",
    kill!("$mark"),
    "; exit $code"
);

/// The variable by which a command's processes are known.
pub(super) const MARK: &str = "AGENT_SANDBOX_COMMAND";

/// What the marks of all commands of a sandbox begin with.
pub(super) fn marks(sandbox: &str) -> String {
    format!("{sandbox}.")
}

/// A mark that no other command has, the value of [`MARK`].
pub(super) fn new_mark(sandbox: &str) -> String {
    marks(sandbox) + &new_id()
}

/// The arguments of `sh` for a program that starts in a directory, under a mark.
pub(super) fn gated(dir: &str, mark: &str, program: String, args: Vec<String>) -> Vec<String> {
    let gate = ["-c", GATE, "sh", dir, mark].map(str::to_owned);
    gate.into_iter().chain([program]).chain(args).collect()
}
