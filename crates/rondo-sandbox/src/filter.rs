//! The system calls that a sandboxed command may not make.

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch, sock_filter,
};
use std::collections::BTreeMap;
use std::io;

/// What reaches past files and namespaces, or other processes; none is needed to build and test programs.
const DENIED: [libc::c_long; 35] = [
    libc::SYS_add_key,
    libc::SYS_bpf,
    libc::SYS_chroot,
    libc::SYS_delete_module,
    libc::SYS_finit_module,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fsopen,
    libc::SYS_fspick,
    libc::SYS_init_module,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_io_uring_setup,
    libc::SYS_kexec_load,
    libc::SYS_keyctl,
    libc::SYS_mount,
    libc::SYS_mount_setattr,
    libc::SYS_move_mount,
    libc::SYS_name_to_handle_at,
    libc::SYS_open_by_handle_at,
    libc::SYS_open_tree,
    OPEN_TREE_ATTR,
    libc::SYS_perf_event_open,
    libc::SYS_pidfd_getfd,
    libc::SYS_pivot_root,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_ptrace,
    libc::SYS_reboot,
    libc::SYS_request_key,
    libc::SYS_setns,
    libc::SYS_swapon,
    libc::SYS_umount2,
    libc::SYS_unshare,
    libc::SYS_userfaultfd,
];

/// It changes mounts as `mount_setattr` does, since Linux 6.15; the C library has no name for it yet.
const OPEN_TREE_ATTR: libc::c_long = 467;
/// The last system call that was looked at, `file_setattr` of Linux 6.17. Later ones are not there: new ones have the same
/// numbers on all architectures.
const LAST_KNOWN: u32 = 469;

/// New namespaces, as flags of `clone`.
const NAMESPACES: [libc::c_int; 7] = [
    libc::CLONE_NEWCGROUP,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWNET,
    libc::CLONE_NEWNS,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWUTS,
];

/// What marks the second set of calls that x86-64 has, x32.
const X32: u32 = 0x4000_0000;
/// Where the number of a call is in what a filter looks at.
const CALL_NUMBER: u32 = 0;

/// Sockets to the host of a virtual machine start programs there.
const VSOCK: u64 = libc::AF_VSOCK as u64;
/// Minus one: all processes that may be signalled.
const EVERYBODY: u64 = 0xffff_ffff;

/// What the filter denies beside what it always does.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FilterOptions {
    /// Whether there may be sockets. Where there is no namespace of the network, all lead out; those of paths lead to
    /// services that do as they are told.
    pub(crate) has_sockets: bool,
    /// Whether something else keeps signals from other processes.
    pub(crate) scopes_signals: bool,
}

/// Returns the filter. The kernel runs it for each call that there is when it is set, and compiles it, so it is one, and
/// short.
pub(crate) fn program(options: FilterOptions) -> io::Result<BpfProgram> {
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> =
        DENIED.into_iter().map(|it| (it, Vec::new())).collect();
    let namespaces = NAMESPACES.iter().map(|flag| {
        let flag = u64::try_from(*flag).unwrap_or_default();
        first_argument(SeccompCmpOp::MaskedEq(flag), flag)
    });
    rules.insert(libc::SYS_clone, namespaces.collect::<io::Result<_>>()?);
    let sockets = match options.has_sockets {
        true => vec![first_argument(SeccompCmpOp::Eq, VSOCK)?],
        false => Vec::new(),
    };
    rules.insert(libc::SYS_socket, sockets);
    if !options.scopes_signals {
        let everybody =
            SeccompCondition::new(0, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, EVERYBODY);
        let rule = everybody.and_then(|it| SeccompRule::new(vec![it]));
        rules.insert(libc::SYS_kill, vec![rule.map_err(io::Error::other)?]);
    }
    let arch = TargetArch::try_from(std::env::consts::ARCH).map_err(io::Error::other)?;
    let denied = SeccompAction::Errno(libc::EPERM.cast_unsigned());
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, denied, arch);
    let filter = filter.and_then(BpfProgram::try_from);
    let refused = refused_by_number()?.to_vec();
    Ok([refused, filter.map_err(io::Error::other)?].concat())
}

/// Refuses calls of which another error or more than one number is meant, which the rules cannot say; all others go on.
fn refused_by_number() -> io::Result<[sock_filter; 7]> {
    let step = |code: u32, (jt, jf), k| {
        let code = u16::try_from(code).map_err(io::Error::other)?;
        Ok::<_, io::Error>(sock_filter { code, jt, jf, k })
    };
    let refuse = |errno: libc::c_int| {
        let errno = libc::SECCOMP_RET_ERRNO | errno.cast_unsigned();
        step(libc::BPF_RET | libc::BPF_K, (0, 0), errno)
    };
    let jump = libc::BPF_JMP | libc::BPF_K;
    let newer = u32::try_from(libc::SYS_clone3).map_err(io::Error::other)?;
    let load = libc::BPF_LD | libc::BPF_W | libc::BPF_ABS;
    Ok([
        step(load, (0, 0), CALL_NUMBER)?,
        // The flags of `clone3` cannot be seen; the C library takes `clone` where it is not there.
        step(jump | libc::BPF_JEQ, (0, 1), newer)?,
        refuse(libc::ENOSYS)?,
        // Programs of x32 are there no more; what is denied would have to be denied by its numbers there too.
        step(jump | libc::BPF_JSET, (0, 1), X32)?,
        refuse(libc::EPERM)?,
        step(jump | libc::BPF_JGT, (0, 1), LAST_KNOWN)?,
        refuse(libc::ENOSYS)?,
    ])
}

fn first_argument(op: SeccompCmpOp, value: u64) -> io::Result<SeccompRule> {
    let condition = SeccompCondition::new(0, SeccompCmpArgLen::Qword, op, value);
    SeccompRule::new(vec![condition.map_err(io::Error::other)?]).map_err(io::Error::other)
}
