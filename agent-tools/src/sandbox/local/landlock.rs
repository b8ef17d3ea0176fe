//! What the kernel's landlock lets a thread do, and what it starts.

use std::thread;

use landlock::{
    ABI, Access, AccessFs, CompatLevel, Compatible, Ruleset, RulesetAttr, RulesetCreatedAttr, RulesetError, Scope,
    path_beneath_rules,
};

use super::{
    room::{ETC, Room, SYSTEM},
    seccomp,
};

/// Reading, writing, renaming and truncating, which all are needed: Linux 6.2.
const NEEDED: ABI = ABI::V3;

/// What is asked for where the kernel has it: devices (6.10), signals and sockets without a path (6.12).
const WANTED: ABI = ABI::V6;

/// Devices that harm nobody.
const DEVICES: [&str; 5] = ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"];

/// Keeps this thread in, for good.
pub(super) fn enter(room: &Room) -> Result<(), String> {
    restrict(room).map_err(|e| e.to_string())?;
    seccomp::enter(room.network).map_err(|e| e.to_string())
}

/// Says why it does not work here.
pub(super) fn try_out(room: &Room) -> Result<(), String> {
    let entered = thread::scope(|scope| {
        let thread = thread::Builder::new().spawn_scoped(scope, || enter(room)).map_err(|e| e.to_string())?;
        thread.join().unwrap_or_else(|_| Err("its thread panicked".to_owned()))
    });
    entered.map_err(|e| format!("the kernel has no landlock, or none of Linux 6.2 or newer ({e})"))
}

fn restrict(room: &Room) -> Result<(), RulesetError> {
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
