//! Landlock rules for a thread and the processes that it starts.

use std::thread;

use landlock::{
    ABI, Access, AccessFs, CompatLevel, Compatible, Ruleset, RulesetAttr, RulesetCreatedAttr, RulesetError, Scope,
    path_beneath_rules,
};

use super::{
    room::{ETC, Mounts, SYSTEM},
    seccomp,
};

/// Required access rights: reading, writing, renaming and truncating (Linux 6.2).
const NEEDED: ABI = ABI::V3;

/// Optional access rights, used if the kernel supports them: devices (6.10), signals and abstract
/// sockets (6.12).
const WANTED: ABI = ABI::V6;

/// Harmless devices.
const DEVICES: [&str; 5] = ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"];

/// Confines this thread permanently.
pub(super) fn enter(room: &Mounts) -> Result<(), String> {
    restrict(room).map_err(|e| e.to_string())?;
    seccomp::enter(room.network).map_err(|e| e.to_string())
}

/// Tests landlock; the error explains why it does not work here.
pub(super) fn try_out(room: &Mounts) -> Result<(), String> {
    let entered = thread::scope(|scope| {
        let thread = thread::Builder::new().spawn_scoped(scope, || enter(room)).map_err(|e| e.to_string())?;
        thread.join().unwrap_or_else(|_| Err("its thread panicked".to_owned()))
    });
    entered.map_err(|e| format!("the kernel has no landlock, or none of Linux 6.2 or newer ({e})"))
}

fn restrict(room: &Mounts) -> Result<(), RulesetError> {
    let (read, all) = (AccessFs::from_read(WANTED), AccessFs::from_all(WANTED));
    let write = all & !(AccessFs::MakeChar | AccessFs::MakeBlock | AccessFs::IoctlDev);
    let device = AccessFs::ReadFile | AccessFs::WriteFile;
    Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(NEEDED))?
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(all)?
        .scope(Scope::from_all(WANTED))?
        .create()?
        .add_rules(path_beneath_rules(SYSTEM.iter().chain(&ETC), read))?
        .add_rules(path_beneath_rules(&room.readable, read))?
        .add_rules(path_beneath_rules(DEVICES, device))?
        .add_rules(path_beneath_rules(room.writable.iter().chain([&room.work, &room.temp]), write))?
        .restrict_self()?;
    Ok(())
}
