//! System calls that programs are denied. Landlock restricts opening files; this filter covers the
//! rest: other ways to change a file, sockets, and the parts of the kernel that ordinary programs
//! do not need.

use std::{collections::BTreeMap, ops::RangeInclusive};

use libc::{EPERM, c_long};
use seccompiler::{
    BpfProgram, Error, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    apply_filter,
};

/// Calls that concern the machine or the kernel, and that creating mounts and namespaces does not
/// need.
const SYSTEM: &[c_long] = &[
    libc::SYS_acct,
    libc::SYS_add_key,
    libc::SYS_adjtimex,
    libc::SYS_bpf,
    libc::SYS_clock_adjtime,
    libc::SYS_clock_settime,
    libc::SYS_delete_module,
    libc::SYS_fanotify_init,
    libc::SYS_finit_module,
    libc::SYS_init_module,
    // Opens sockets and files by a path that this filter does not see.
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_io_uring_setup,
    libc::SYS_kexec_file_load,
    libc::SYS_kexec_load,
    libc::SYS_keyctl,
    libc::SYS_name_to_handle_at,
    libc::SYS_open_by_handle_at,
    libc::SYS_perf_event_open,
    libc::SYS_quotactl,
    libc::SYS_quotactl_fd,
    libc::SYS_reboot,
    libc::SYS_request_key,
    libc::SYS_settimeofday,
    libc::SYS_swapoff,
    libc::SYS_swapon,
    libc::SYS_syslog,
    libc::SYS_userfaultfd,
    libc::SYS_vhangup,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_ioperm,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_iopl,
];

/// Calls for mounts, namespaces and other processes.
const AROUND: &[c_long] = &[
    libc::SYS_chroot,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fsopen,
    libc::SYS_fspick,
    libc::SYS_mount,
    libc::SYS_mount_setattr,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_pidfd_getfd,
    libc::SYS_pivot_root,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_ptrace,
    libc::SYS_setdomainname,
    libc::SYS_sethostname,
    libc::SYS_setns,
    libc::SYS_umount2,
];

/// Calls that change or watch a file which landlock makes read-only: an open descriptor is enough
/// for its owner.
const METADATA: &[c_long] = &[
    libc::SYS_fchmod,
    libc::SYS_fchmodat,
    libc::SYS_fchmodat2,
    libc::SYS_fchown,
    libc::SYS_fchownat,
    libc::SYS_fremovexattr,
    libc::SYS_fsetxattr,
    libc::SYS_inotify_add_watch,
    libc::SYS_lremovexattr,
    libc::SYS_lsetxattr,
    libc::SYS_removexattr,
    libc::SYS_setxattr,
    libc::SYS_utimensat,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_chmod,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_chown,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_futimesat,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_lchown,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_utime,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_utimes,
];

/// Calls newer than this list. The C library falls back to older ones.
const NEW: RangeInclusive<c_long> = 463..=511;

/// `ioctl` commands that change a file's flags, on any of its descriptors: FS_IOC_SETFLAGS,
/// FS_IOC32_SETFLAGS, FS_IOC_FSSETXATTR.
const SETS_FLAGS: [u64; 3] = [0x4008_6602, 0x4004_6602, 0x401c_5820];

/// Bit of x32 system call numbers, which pass the filter's own architecture check: most calls have
/// the same number with this bit, and some have others.
const X32: c_long = 0x4000_0000;
const X32_OWN: RangeInclusive<c_long> = 512..=547;

/// Socket types that may send to any path, without a `connect` that could be denied.
const DATAGRAMS: [i32; 2] = [libc::SOCK_DGRAM, libc::SOCK_RAW];

/// Denies this thread the calls permanently.
pub(super) fn enter(network: bool) -> Result<(), Error> {
    let mut calls = Calls::default();
    calls.refuse(SYSTEM.iter().chain(AROUND).chain(METADATA).copied().chain(NEW));
    for command in SETS_FLAGS {
        calls.refuse_if(libc::SYS_ioctl, 1, SeccompCmpOp::Eq, command)?;
    }
    // Sockets of host programs have paths, which landlock does not check. Socket pairs stay
    // allowed.
    for kind in DATAGRAMS {
        calls.refuse_if(libc::SYS_socketpair, 1, SeccompCmpOp::MaskedEq(0xf), kind.unsigned_abs().into())?;
    }
    if network {
        calls.refuse_if(libc::SYS_socket, 0, SeccompCmpOp::Eq, libc::AF_UNIX.unsigned_abs().into())?;
    } else {
        calls.refuse([libc::SYS_socket]);
    }
    calls.apply()
}

/// Denies this thread the calls that namespaces do not cover, but allows creating namespaces.
pub(super) fn enter_beside_namespaces() -> Result<(), Error> {
    let mut calls = Calls::default();
    calls.refuse(SYSTEM.iter().copied());
    calls.apply()
}

/// Denied calls, each with alternative conditions; without conditions, always denied.
#[derive(Default)]
struct Calls(BTreeMap<c_long, Vec<SeccompRule>>);

impl Calls {
    fn refuse(&mut self, calls: impl IntoIterator<Item = c_long>) {
        self.0.extend(calls.into_iter().map(|call| (call, Vec::new())));
    }

    fn refuse_if(&mut self, call: c_long, argument: u8, op: SeccompCmpOp, value: u64) -> Result<(), Error> {
        let condition = SeccompCondition::new(argument, SeccompCmpArgLen::Dword, op, value)?;
        self.0.entry(call).or_default().push(SeccompRule::new(vec![condition])?);
        Ok(())
    }

    fn apply(mut self) -> Result<(), Error> {
        if cfg!(target_arch = "x86_64") {
            let again: Vec<_> = self.0.iter().map(|(call, rules)| (call | X32, rules.clone())).collect();
            self.0.extend(again);
            self.refuse(X32_OWN.map(|call| call | X32));
        }
        let refuse = SeccompAction::Errno(EPERM.unsigned_abs());
        let architecture = std::env::consts::ARCH.try_into()?;
        let filter: BpfProgram = SeccompFilter::new(self.0, SeccompAction::Allow, refuse, architecture)?.try_into()?;
        apply_filter(&filter)
    }
}
