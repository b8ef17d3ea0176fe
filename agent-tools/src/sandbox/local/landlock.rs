//! What the kernel's landlock lets a thread do, and what it starts.

use std::{io, thread};

use landlock::{
    ABI, Access, AccessFs, CompatLevel, Compatible, Ruleset, RulesetAttr, RulesetCreated, RulesetCreatedAttr,
    RulesetError, Scope, path_beneath_rules,
};

use super::{
    jail::{ETC, Room, SYSTEM},
    seccomp,
};

/// Reading, writing, renaming and truncating, which all are needed: Linux 6.2.
const NEEDED: ABI = ABI::V3;

/// What is asked for where the kernel has it: devices (6.10) and signals (6.12).
const WANTED: ABI = ABI::V6;

/// Devices that harm nobody.
const DEVICES: [&str; 5] = ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"];

/// Keeps this thread in, for good.
pub(super) fn enter(room: &Room) -> Result<(), String> {
    restrict(room, false).map_err(|e| e.to_string())?;
    seccomp::enter(room.network).map_err(|e| e.to_string())
}

/// Says why it does not work here, or whether signals stay inside.
pub(super) fn try_out(room: &Room) -> Result<bool, String> {
    let on_a_thread = |work: &(dyn Fn() -> Result<(), String> + Sync)| {
        thread::scope(|scope| {
            let thread = thread::Builder::new().spawn_scoped(scope, work)?;
            thread.join().map_err(|_| io::Error::other("the kernel's answer was lost"))
        })
        .map_err(|e: io::Error| e.to_string())?
    };
    let old = "the kernel has no landlock, or none of Linux 6.2 or newer";
    on_a_thread(&|| enter(room).map_err(|e| format!("{old} ({e})")))?;
    Ok(on_a_thread(&|| restrict(room, true).map_err(|e| e.to_string())).is_ok())
}

fn restrict(room: &Room, needs_signals: bool) -> Result<(), RulesetError> {
    let (read, all) = (AccessFs::from_read(WANTED), AccessFs::from_all(WANTED));
    let device = AccessFs::ReadFile | AccessFs::WriteFile;
    let mut ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(NEEDED))?
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(all)?;
    if needs_signals {
        ruleset = ruleset.set_compatibility(CompatLevel::HardRequirement);
    }
    let created: RulesetCreated =
        ruleset.scope(Scope::from_all(WANTED))?.set_compatibility(CompatLevel::BestEffort).create()?;
    created
        .add_rules(path_beneath_rules(SYSTEM.iter().chain(&ETC), read))?
        .add_rules(path_beneath_rules(&room.readable, read))?
        .add_rules(path_beneath_rules(DEVICES, device))?
        .add_rules(path_beneath_rules(room.writable.iter().chain([&room.work, &room.temp]), all))?
        .restrict_self()?;
    Ok(())
}
