//! Start of a program.

use std::{
    collections::BTreeMap,
    io::{self, Read, Write},
    os::unix::process::{CommandExt, ExitStatusExt},
    path::PathBuf,
    process::{Child, Command, ExitStatus},
    sync::{Arc, mpsc},
    thread,
    time::Duration,
};

use agent_core::{Error, Result};
use bytes::Bytes;
use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit};
use tokio::sync::mpsc as channel;

use super::{
    builder::PATH,
    cgroup::Cgroup,
    gate::{environment, inner, is_ready, left_open, outer},
    group::Group,
    jail::IsolationBackend,
    programs::Programs,
};
use crate::sandbox::{Exit, Limits, Process, process::Driver};

/// Time within which the inner gate must run.
const START: Duration = Duration::from_secs(30);

/// Bytes that are read from a program at a time.
const PIECE: usize = 16 << 10;

/// Program to start.
pub(super) struct Plan {
    pub(super) program: Vec<String>,
    pub(super) dir: PathBuf,
    pub(super) env: BTreeMap<String, String>,
    pub(super) limits: Limits,
    pub(super) jail: Arc<IsolationBackend>,
    pub(super) programs: Arc<Programs>,
}

/// Started program with its pipe ends.
struct Started {
    child: Child,
    output: io::PipeReader,
    input: io::PipeWriter,
    /// Releases the thread of the program.
    hold: mpsc::Sender<()>,
}

/// Starts the program. A thread owns it until it has ended.
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
        // The caller may be gone, and then nothing receives the result; likewise below.
        Err(e) => return drop(tell.send(Err(e))),
    };
    let moving = on_a_thread(move || pass_output(output, &read))
        .and_then(|()| on_a_thread(move || pass_input(written, input)))
        .inspect_err(|_| group.kill());
    drop(tell.send(moving));
    let ended = group.wait(&mut child);
    drop(hold);
    // A program that cannot be waited for is lost, which the closed channel reports.
    if let Ok(status) = ended {
        let _ = exit.send(exit_of(status));
    }
}

fn start(plan: Plan, group: &Group) -> io::Result<Started> {
    let (mut output, write) = io::pipe()?;
    let (read, mut input) = io::pipe()?;
    let shell = plan.jail.shell();
    let left_open = if plan.jail.is_closed() { left_open()? } else { Vec::new() };
    let mut command = match (left_open.first(), plan.jail.bash()) {
        (None, _) => Command::new(shell),
        // With -p, bash reads no files and takes no options or functions from variables.
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
    command.args(["-c", &outer(&left_open), "sh"]).args(plan.jail.prefix(&plan.dir));
    command.arg(shell).args(["-c", &inner(plan.limits.processes), "sh"]).args(&plan.program);
    // No variables of the program: this shell and the backend run outside.
    command.current_dir(&plan.dir).env_clear().env("PATH", PATH);
    let variables = environment(&plan.env, plan.jail.env());
    command.stdin(read).stdout(write.try_clone()?).stderr(write).process_group(0);
    let (hold, held) = mpsc::channel();
    let cgroup = if plan.jail.groups { Some(Cgroup::new(&plan.limits)?) } else { None };
    let mut child = confined(plan.jail, command, held)?;
    let added = cgroup.as_ref().map_or(Ok(()), |cgroup| cgroup.add(child.id()));
    group.started(&child, cgroup);
    let opened = added
        .and_then(|()| limit(&child, &plan.limits))
        .and_then(|()| input.write_all(b"\n"))
        .and_then(|()| is_ready(&mut output, START))
        .and_then(|()| if group.is_killed() { Err(killed()) } else { input.write_all(variables.as_bytes()) });
    if let Err(e) = opened {
        drop(input);
        group.kill();
        drop(group.wait(&mut child));
        return Err(e);
    }
    Ok(Started { child, output, input, hold })
}

/// Starts the program on a confined thread that lives until `held` ends: the confinement of the
/// thread applies to the program, and the kernel kills the program with its thread.
fn confined(jail: Arc<IsolationBackend>, mut command: Command, held: mpsc::Receiver<()>) -> io::Result<Child> {
    let (tell, told) = mpsc::channel();
    on_a_thread(move || {
        let child = jail.enter().map_err(io::Error::other).and_then(|()| command.spawn());
        drop(command); // closes this process's copies of the pipe ends
        let started = child.is_ok();
        if tell.send(child).is_ok() && started {
            // Nothing is ever sent: the channel closes when the program has ended.
            let _ = held.recv();
        }
    })?;
    told.recv().unwrap_or_else(|_| Err(io::Error::other("its thread ended")))
}

fn killed() -> io::Error {
    io::Error::new(io::ErrorKind::Interrupted, "it was killed")
}

fn limit(child: &Child, limits: &Limits) -> io::Result<()> {
    for (resource, most) in [
        (Resource::Core, 0),
        (Resource::Cpu, limits.cpu.as_secs().max(1)),
        (Resource::Data, limits.memory),
        (Resource::Fsize, limits.file),
        (Resource::Nofile, limits.open_files.into()),
    ] {
        // A lower existing limit is kept.
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
