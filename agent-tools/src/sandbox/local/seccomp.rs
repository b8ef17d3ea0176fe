//! The system calls that programs are refused. Landlock decides about opening files; this is about what it leaves open: other ways to
//! change a file, sockets, and the parts of the kernel that ordinary programs do without.

use std::collections::BTreeMap;

use libc::{EPERM, c_long};
use seccompiler::{
    BpfProgram, Error, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    apply_filter,
};

/// What concerns the machine, other processes, or the kernel itself.
const SYSTEM: &[c_long] = &[
    libc::SYS_acct,
    libc::SYS_add_key,
    libc::SYS_adjtimex,
    libc::SYS_bpf,
    libc::SYS_chroot,
    libc::SYS_clock_adjtime,
    libc::SYS_clock_settime,
    libc::SYS_delete_module,
    libc::SYS_fanotify_init,
    libc::SYS_finit_module,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fsopen,
    libc::SYS_init_module,
    // It opens sockets and files by a way that this filter does not see.
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_io_uring_setup,
    libc::SYS_kexec_file_load,
    libc::SYS_kexec_load,
    libc::SYS_keyctl,
    libc::SYS_mount,
    libc::SYS_mount_setattr,
    libc::SYS_move_mount,
    libc::SYS_name_to_handle_at,
    libc::SYS_open_by_handle_at,
    libc::SYS_open_tree,
    libc::SYS_perf_event_open,
    libc::SYS_pidfd_getfd,
    libc::SYS_pivot_root,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_ptrace,
    libc::SYS_quotactl,
    libc::SYS_reboot,
    libc::SYS_request_key,
    libc::SYS_setdomainname,
    libc::SYS_sethostname,
    libc::SYS_setns,
    libc::SYS_settimeofday,
    libc::SYS_swapoff,
    libc::SYS_swapon,
    libc::SYS_syslog,
    libc::SYS_umount2,
    libc::SYS_userfaultfd,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_ioperm,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_iopl,
];

/// What changes a file by its path, which landlock does not look at.
const METADATA: &[c_long] = &[
    libc::SYS_fchmodat,
    libc::SYS_fchmodat2,
    libc::SYS_fchownat,
    libc::SYS_lremovexattr,
    libc::SYS_lsetxattr,
    libc::SYS_removexattr,
    libc::SYS_setxattr,
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

/// The same calls under the numbers of x32 programs, which the filter's own check of the architecture lets pass.
const X32: c_long = 0x4000_0000;

/// Refuses this thread the calls, for good.
pub(super) fn enter(network: bool) -> Result<(), Error> {
    let mut calls: BTreeMap<c_long, Vec<SeccompRule>> = BTreeMap::new();
    for call in SYSTEM.iter().chain(METADATA) {
        calls.insert(*call, Vec::new());
    }
    if !network {
        // Also for sockets of the host's own programs, which have paths that landlock does not look at. A pair of connected
        // ones (`socketpair`) stays allowed.
        calls.insert(libc::SYS_socket, Vec::new());
    }
    // Times of a file that the program has open are its own; with a path they may be those of any file.
    let by_path = SeccompCondition::new(1, SeccompCmpArgLen::Qword, SeccompCmpOp::Ne, 0)?;
    calls.insert(libc::SYS_utimensat, vec![SeccompRule::new(vec![by_path])?]);
    if cfg!(target_arch = "x86_64") {
        let again: Vec<_> = calls.iter().map(|(call, rules)| (call | X32, rules.clone())).collect();
        calls.extend(again);
    }
    let refuse = SeccompAction::Errno(EPERM.unsigned_abs());
    let architecture = std::env::consts::ARCH.try_into()?;
    let filter: BpfProgram = SeccompFilter::new(calls, SeccompAction::Allow, refuse, architecture)?.try_into()?;
    apply_filter(&filter)
}
