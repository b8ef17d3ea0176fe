//! Probe of a container's guarantees.

use agent_core::Result;
use bollard::models::ContainerInspectResponse;

use super::{ContainerSandbox, builder::TEMP};
use crate::sandbox::{Command, Guarantees, Limits, Sandbox};

/// Maximum of bytes of the probe's output.
const LONGEST: usize = 4 << 10;

/// Prints properties of the container, one per line: network interfaces, the first process, limits
/// of memory and of processes, and whether the directories are writable.
const TRIAL: &str = "echo net $(sed -n 's/^ *\\([^:]*\\):.*/\\1/p' /proc/net/dev)
echo first $(tr '\\000' ' ' < /proc/1/cmdline)
echo memory $(cat /sys/fs/cgroup/memory.max /sys/fs/cgroup/memory/memory.limit_in_bytes 2>/dev/null)
echo processes $(cat /sys/fs/cgroup/pids.max /sys/fs/cgroup/pids/pids.max 2>/dev/null)
for dir in . \"$1\"; do [ -w \"$dir\" ] && echo writable; done";

/// Result of the probe.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) guarantees: Guarantees,
    pub(super) is_writable: bool,
}

pub(super) async fn try_out(sandbox: &ContainerSandbox, by: &str, limits: &Limits) -> Result<Found> {
    let said = trial(sandbox).await?;
    let of = |name: &str| {
        let found = said.lines().find_map(|line| line.strip_prefix(name));
        found.unwrap_or_default().split_whitespace().map(str::to_owned).collect::<Vec<_>>()
    };
    let within = |said: Vec<String>, most: u64| {
        said.first().and_then(|said| said.parse().ok()).is_some_and(|is: u64| is <= most)
    };
    let inspected = sandbox.engine.docker().inspect_container(&sandbox.id, None).await;
    let inspected = inspected.map_err(|e| sandbox.engine.failed("say what the sandbox is", e))?;
    let net = of("net ");
    let guarantees = Guarantees {
        files: is_closed(&inspected),
        network: !net.is_empty() && net.iter().all(|name| name == "lo"),
        processes: of("first ").first().is_some_and(|program| program == "sh"),
        process_count: within(of("processes "), limits.processes.into()),
        memory: within(of("memory "), limits.memory),
        no_survivors: false,
        ..Guarantees::none(by)
    };
    Ok(Found { guarantees, is_writable: said.lines().filter(|line| *line == "writable").count() == 2 })
}

async fn trial(sandbox: &ContainerSandbox) -> Result<String> {
    let mut process = sandbox.start(Command::shell(TRIAL).arg("sh").arg(TEMP)).await?;
    drop(process.take_input());
    let mut said = Vec::new();
    while said.len() < LONGEST
        && let Some(piece) = process.output().await
    {
        said.extend_from_slice(&piece);
    }
    Ok(String::from_utf8_lossy(&said).into_owned())
}

/// Returns true if no host files are mounted, and the container has no privileges on the host.
fn is_closed(container: &ContainerInspectResponse) -> bool {
    let bound = container.mounts.iter().flatten().any(|mount| mount.typ.as_deref() == Some("bind"));
    let host = container.host_config.as_ref();
    let privileged = host.is_none_or(|host| host.privileged == Some(true));
    let devices = host.and_then(|host| host.devices.as_ref()).is_some_and(|devices| !devices.is_empty());
    !bound && !privileged && !devices
}
