//! Starting a program.

use std::{
    fs,
    io::{self, Read, Write},
    os::unix::process::{CommandExt, ExitStatusExt},
    path::PathBuf,
    process::{Child, Command, ExitStatus},
    sync::{Arc, mpsc},
    thread,
};

use agent_core::{Error, Result};
use bytes::Bytes;
use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit};
use tokio::sync::mpsc as channel;

use super::{cgroup::Cgroup, group::Group, jail::Jail, programs::Programs};
use crate::sandbox::{Exit, Limits, Process, process::Driver};

/// Waits for a line before it becomes what follows: until then, limits are set. What the application left open for others is closed: these, and
/// `{more}`.
const OUTER_GATE: &str = "IFS= read -r go || exit 126; exec 3<&- 4<&- 5<&- 6<&- 7<&- 8<&- 9<&-{more}; exec \"$@\"";

/// The last descriptor that any shell can close. Others need bash.
const LAST_FOR_ALL: u32 = 9;

/// Inside, it says that it is there and waits again: a kill before that closes its input, which ends it. It stays above the program, so that the first process of a
/// namespace is none that could let go of the application. `{most}` is the number of processes, which is the namespace's own here.
const INNER_GATE: &str = "ulimit -u {most} 2>/dev/null || ulimit -p {most} 2>/dev/null; printf '\\001'; IFS= read -r go || exit 126; \"$@\"; exit \"$?\"";

/// What the inner gate says.
const READY: u8 = 1;

/// The most bytes of a complaint of what should have led there.
const COMPLAINT: u64 = 4 << 10;

/// Bytes that are read from a program at a time.
const PIECE: usize = 16 << 10;

/// What is to be started.
pub(super) struct Plan {
    pub(super) program: Vec<String>,
    pub(super) dir: PathBuf,
    pub(super) env: Vec<(String, String)>,
    pub(super) limits: Limits,
    pub(super) jail: Arc<Jail>,
    pub(super) programs: Arc<Programs>,
}

/// A program that has started, and its ends of the pipes.
struct Started {
    child: Child,
    output: io::PipeReader,
    input: io::PipeWriter,
    /// Lets its thread go.
    hold: mpsc::Sender<()>,
}

/// Starts it. A thread keeps it until it has ended.
pub(super) fn launch(plan: Plan) -> Result<Process> {
    let group = Arc::new(Group::default());
    plan.programs.add(&group)?;
    let killed = group.clone();
    let (process, driver) = Process::new(move || killed.kill());
    let (tell, told) = mpsc::channel();
    let failed = |e: io::Error| Error::tool(format!("the program cannot be started: {e}"));
    thread::Builder::new()
        .name("sandbox".to_owned())
        .spawn(move || keep(plan, &group, driver, &tell))
        .map_err(failed)?;
    told.recv().unwrap_or_else(|_| Err(io::Error::other("its thread ended"))).map_err(failed)?;
    Ok(process)
}

fn keep(plan: Plan, group: &Group, driver: Driver, tell: &mpsc::Sender<io::Result<()>>) {
    let Driver { output: read, input: written, exit } = driver;
    let Started { mut child, output, input, hold } = match start(plan, group) {
        Ok(started) => started,
        // Who asked may be gone, and then nobody wants to know; so below.
        Err(e) => return drop(tell.send(Err(e))),
    };
    let moving = on_a_thread(move || pass_output(output, &read))
        .and_then(|()| on_a_thread(move || pass_input(written, input)))
        .inspect_err(|_| group.kill());
    drop(tell.send(moving));
    let ended = group.wait(&mut child);
    drop(hold);
    // One that cannot be waited for is lost, which the end of the channel says.
    if let Ok(status) = ended {
        let _ = exit.send(exit_of(status));
    }
}

fn start(plan: Plan, group: &Group) -> io::Result<Started> {
    let (mut output, write) = io::pipe()?;
    let (read, mut input) = io::pipe()?;
    let (shell, inner) = (plan.jail.shell(), INNER_GATE.replace("{most}", &plan.limits.processes.to_string()));
    let left_open = if plan.jail.is_closed() { left_open()? } else { Vec::new() };
    let more: String = left_open.iter().map(|descriptor| format!(" {descriptor}<&-")).collect();
    let outer = OUTER_GATE.replace("{more}", &more);
    let mut command = match (left_open.first(), plan.jail.bash()) {
        (None, _) => Command::new(shell),
        // It reads no files and takes over no options from variables.
        (Some(_), Some(bash)) => {
            let mut command = Command::new(bash);
            command.args(["--posix", "-p"]);
            command
        }
        (Some(descriptor), None) => {
            let what = format!(
                "the application's descriptor {descriptor} would be open inside: open it with O_CLOEXEC, or install bash"
            );
            return Err(io::Error::other(what));
        }
    };
    command.args(["-c", &outer, "sh"]).args(plan.jail.prefix(&plan.dir));
    command.arg(shell).args(["-c", &inner, "sh"]).args(&plan.program);
    command.current_dir(&plan.dir).env_clear().envs(plan.env);
    command.stdin(read).stdout(write.try_clone()?).stderr(write).process_group(0);
    let (hold, held) = mpsc::channel();
    let cgroup = if plan.jail.groups { Some(Cgroup::new(&plan.limits)?) } else { None };
    let mut child = confined(plan.jail, command, held)?;
    let added = cgroup.as_ref().map_or(Ok(()), |cgroup| cgroup.add(child.id()));
    group.started(&child, cgroup);
    let opened = added
        .and_then(|()| limit(&child, &plan.limits))
        .and_then(|()| input.write_all(b"\n"))
        .and_then(|()| is_ready(&mut output))
        .and_then(|()| if group.is_killed() { Err(killed()) } else { input.write_all(b"\n") });
    if let Err(e) = opened {
        drop(input);
        group.kill();
        drop(group.wait(&mut child));
        return Err(e);
    }
    Ok(Started { child, output, input, hold })
}

/// Starts the program on a thread that is confined and lives until `held` ends: what confines the thread confines the program, and the
/// kernel ends the program with its thread.
fn confined(jail: Arc<Jail>, mut command: Command, held: mpsc::Receiver<()>) -> io::Result<Child> {
    let (tell, told) = mpsc::channel();
    on_a_thread(move || {
        let child = jail.enter().map_err(io::Error::other).and_then(|()| command.spawn());
        drop(command); // it has ends of the pipes
        let started = child.is_ok();
        if tell.send(child).is_ok() && started {
            // Nothing is ever sent: it ends when the program has.
            let _ = held.recv();
        }
    })?;
    told.recv().unwrap_or_else(|_| Err(io::Error::other("its thread ended")))
}

fn killed() -> io::Error {
    io::Error::new(io::ErrorKind::Interrupted, "it was killed")
}

/// Waits for the inner gate, or for what stands before it to complain.
fn is_ready(output: &mut io::PipeReader) -> io::Result<()> {
    let mut first = [0];
    match output.read(&mut first)? {
        1 if first[0] == READY => Ok(()),
        read => {
            let mut complaint = first[..read].to_vec();
            output.take(COMPLAINT).read_to_end(&mut complaint)?;
            Err(io::Error::other(String::from_utf8_lossy(&complaint).trim().to_owned()))
        }
    }
}

/// Variables of the dynamic linker, and the file that bash reads first, would hold for what stands around the program, too, outside.
pub(super) fn check_env<'a>(names: impl IntoIterator<Item = &'a String>) -> Result<()> {
    let refused = names.into_iter().find(|name| name.starts_with("LD_") || *name == "BASH_ENV");
    refused.map_or(Ok(()), |name| {
        let what = "set it in the command line, in front of the program";
        Err(Error::config(format!("the variable '{name}' cannot be given to a sandbox: {what}")))
    })
}

/// Descriptors of the application that programs would have too, above those that are closed always.
fn left_open() -> io::Result<Vec<u32>> {
    const O_CLOEXEC: u32 = 0o2_000_000;
    let mut left = Vec::new();
    for entry in fs::read_dir("/proc/self/fdinfo")?.flatten() {
        let number: u32 = entry.file_name().to_string_lossy().parse().unwrap_or(0);
        if number > LAST_FOR_ALL {
            // One that is closed by now is none.
            let info = fs::read_to_string(entry.path()).unwrap_or_default();
            let flags = info.lines().find_map(|line| u32::from_str_radix(line.strip_prefix("flags:")?.trim(), 8).ok());
            left.extend(flags.filter(|flags| flags & O_CLOEXEC == 0).map(|_| number));
        }
    }
    Ok(left)
}

fn limit(child: &Child, limits: &Limits) -> io::Result<()> {
    for (resource, most) in [
        (Resource::Core, 0),
        (Resource::Cpu, limits.cpu.as_secs().max(1)),
        (Resource::Data, limits.memory),
        (Resource::Fsize, limits.file),
        (Resource::Nofile, limits.open_files.into()),
    ] {
        // A limit that is lower already stays.
        let most = getrlimit(resource).maximum.map_or(most, |hard| hard.min(most));
        prlimit(Some(Pid::from_child(child)), resource, Rlimit { current: Some(most), maximum: Some(most) })?;
    }
    Ok(())
}

fn on_a_thread(work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    thread::Builder::new().name("sandbox".to_owned()).spawn(work).map(drop)
}

fn pass_output(mut output: io::PipeReader, to: &channel::Sender<Bytes>) {
    let mut piece = vec![0; PIECE];
    while let Ok(read) = output.read(&mut piece)
        && read > 0
        && to.blocking_send(Bytes::copy_from_slice(&piece[..read])).is_ok()
    {}
}

fn pass_input(mut from: channel::Receiver<Bytes>, mut input: io::PipeWriter) {
    while let Some(bytes) = from.blocking_recv()
        && input.write_all(&bytes).is_ok()
    {}
}

fn exit_of(status: ExitStatus) -> Exit {
    match (status.code(), status.signal()) {
        (Some(code), _) => Exit::code(code),
        (None, signal) => Exit { code: None, signal },
    }
}
