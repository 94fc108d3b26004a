//! The system calls that a sandboxed command may not make.

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch, sock_filter,
};
use std::collections::{BTreeMap, BTreeSet};
use std::io;

/// System calls that bypass files and namespaces, or reach other processes; building and testing programs needs none.
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

/// Bit of the second set of calls of x86-64, x32.
const X32: u32 = 0x4000_0000;
/// Offset of the number of a call in the filter's input.
const CALL_NUMBER: u32 = 0;
/// The place of the architecture in it, behind the number.
const ARCHITECTURE: u32 = 4;
/// The architecture of this program's own calls: an ELF machine of 64 bits, little-endian (`linux/audit.h`).
const OWN_ARCHITECTURE: u32 = MACHINE as u32 | 0xc000_0000;
#[cfg(target_arch = "x86_64")]
const MACHINE: u16 = libc::EM_X86_64;
#[cfg(target_arch = "aarch64")]
const MACHINE: u16 = libc::EM_AARCH64;

/// Sockets to the host of a virtual machine start programs there.
const VSOCK: u64 = libc::AF_VSOCK as u64;
/// The subject of a priority is a process.
const IOPRIO_WHO_PROCESS: u64 = 1;
/// Minus one: all processes that may be signalled.
const EVERYBODY: u64 = 0xffff_ffff;

/// The argument of each call that holds the mode of a file.
const MODES: [(libc::c_long, u8); 8] = [
    (libc::SYS_chmod, 1),
    (libc::SYS_fchmod, 1),
    (libc::SYS_fchmodat, 2),
    (FCHMODAT2, 2),
    (libc::SYS_mkdir, 1),
    (libc::SYS_mkdirat, 2),
    (libc::SYS_mknod, 1),
    (libc::SYS_mknodat, 2),
];
/// The C library has no name for it yet.
const FCHMODAT2: libc::c_long = 452;
/// The calls that make a file if a flag says so, with the arguments of flags and mode.
const OPENS: [(libc::c_long, u8, u8); 2] = [(libc::SYS_open, 1, 2), (libc::SYS_openat, 2, 3)];
/// The bits by which the user of a file gains the rights of its owner or its group.
const GAINING: [libc::mode_t; 2] = [libc::S_ISUID, libc::S_ISGID];

/// Options of the filter, besides its fixed denials.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FilterOptions<'a> {
    /// Allows sockets. Without a network namespace they all lead out; those of paths lead to services that obey their
    /// clients.
    pub(crate) has_sockets: bool,
    /// Set if the command sees the ids of its own processes only.
    pub(crate) has_own_processes: bool,
    /// The processes that look after the command. If it has a number for them, it cannot signal them all the same.
    pub(crate) watchers: &'a [i32],
}

/// The largest segment of shared memory, in bytes: it is not a process's, and there are up to 4,096 of them.
const SEGMENT_BYTES_MAX: u64 = 64 << 10;

/// Returns the filter. The kernel compiles it and runs it for each system call that there is when it is set, before each
/// command, so it is one filter, and calls without a rule are allowed after a few steps.
pub(crate) fn program(options: FilterOptions<'_>) -> io::Result<BpfProgram> {
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
    let is_large = SeccompCondition::new(
        1,
        SeccompCmpArgLen::Qword,
        SeccompCmpOp::Gt,
        SEGMENT_BYTES_MAX,
    );
    let is_large = rule(vec![is_large.map_err(io::Error::other)?])?;
    rules.insert(libc::SYS_shmget, vec![is_large]);
    refuse_gaining(&mut rules)?;
    if !options.has_own_processes {
        refuse_other_processes(&mut rules, options.watchers)?;
    }
    let arch = TargetArch::try_from(std::env::consts::ARCH).map_err(io::Error::other)?;
    let denied = SeccompAction::Errno(libc::EPERM.cast_unsigned());
    let ruled = rules.keys().copied().map(u32::try_from);
    let ruled: BTreeSet<u32> = ruled.collect::<Result<_, _>>().map_err(io::Error::other)?;
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, denied, arch);
    let filter = filter.and_then(BpfProgram::try_from);
    let refused = refused_by_number()?.to_vec();
    let allowed = allowed_by_number(&ruled.into_iter().collect::<Vec<_>>())?;
    Ok([refused, allowed, filter.map_err(io::Error::other)?].concat())
}

/// Allows the calls of this architecture whose numbers have no rule; the others continue behind it. It searches by halves,
/// while the rules are compared one after another.
fn allowed_by_number(ruled: &[u32]) -> io::Result<Vec<sock_filter>> {
    let search = search_number(ruled, 0)?;
    let whole = u32::try_from(search.len()).map_err(io::Error::other)?;
    let head = [
        step(LOAD, (0, 0), ARCHITECTURE)?,
        step(JUMP | libc::BPF_JEQ, (1, 0), OWN_ARCHITECTURE)?,
        step(libc::BPF_JMP | libc::BPF_JA, (0, 0), whole + 1)?,
        step(LOAD, (0, 0), CALL_NUMBER)?,
    ];
    Ok([head.to_vec(), search].concat())
}

/// Returns the steps that allow a call unless its number is one of these, which are sorted; then they jump over the `behind`
/// steps that follow them.
fn search_number(numbers: &[u32], behind: usize) -> io::Result<Vec<sock_filter>> {
    let allow = step(libc::BPF_RET | libc::BPF_K, (0, 0), libc::SECCOMP_RET_ALLOW)?;
    let (lower, upper) = numbers.split_at(numbers.len() / 2);
    let Some(first) = upper.first() else {
        return Ok(vec![allow]);
    };
    if lower.is_empty() {
        let behind = u32::try_from(behind + 1).map_err(io::Error::other)?;
        return Ok(vec![
            step(JUMP | libc::BPF_JEQ, (0, 1), *first)?,
            step(libc::BPF_JMP | libc::BPF_JA, (0, 0), behind)?,
            allow,
        ]);
    }
    let upper = search_number(upper, behind)?;
    let lower = search_number(lower, behind + upper.len())?;
    let over = u8::try_from(lower.len()).map_err(io::Error::other)?;
    let split = step(JUMP | libc::BPF_JGE, (over, 0), *first)?;
    Ok([vec![split], lower, upper].concat())
}

/// Refuses modes by which the user of a file gains rights: a file outlives the command that made it.
fn refuse_gaining(rules: &mut BTreeMap<i64, Vec<SeccompRule>>) -> io::Result<()> {
    let has = |argument, bit: u64| condition(argument, SeccompCmpOp::MaskedEq(bit), bit);
    for bit in GAINING.map(u64::from) {
        for (call, mode) in MODES {
            let refused = rules.entry(call).or_default();
            refused.push(rule(vec![has(mode, bit)?])?);
        }
        refuse_creating(rules, bit)?;
        let mode = rule(vec![has(1, bit)?])?;
        rules.entry(libc::SYS_creat).or_default().push(mode);
    }
    Ok(())
}

/// Refuses to open a file with that bit of a mode, if the flags say that it is made: the mode means nothing otherwise.
fn refuse_creating(rules: &mut BTreeMap<i64, Vec<SeccompRule>>, bit: u64) -> io::Result<()> {
    // A temporary file without a name has a flag of two bits, of which one is that of a directory.
    let temporary = libc::O_TMPFILE & !libc::O_DIRECTORY;
    for making in [libc::O_CREAT, temporary] {
        let making = u64::from(making.cast_unsigned());
        for (call, flags, mode) in OPENS {
            let both = vec![
                condition(flags, SeccompCmpOp::MaskedEq(making), making)?,
                condition(mode, SeccompCmpOp::MaskedEq(bit), bit)?,
            ];
            rules.entry(call).or_default().push(rule(both)?);
        }
    }
    Ok(())
}

/// Refuses what changes other processes by their numbers. Those of a command's own threads cannot be told from others, so
/// calls of which a thread is the usual subject are left: affinity, and the priority of one.
fn refuse_other_processes(
    rules: &mut BTreeMap<i64, Vec<SeccompRule>>,
    watchers: &[i32],
) -> io::Result<()> {
    const OWN: u64 = 0;
    let not_own = || condition(0, SeccompCmpOp::Ne, OWN).and_then(|it| rule(vec![it]));
    for call in [
        libc::SYS_prlimit64,
        libc::SYS_sched_setscheduler,
        libc::SYS_sched_setparam,
        libc::SYS_sched_setattr,
    ] {
        rules.insert(call, vec![not_own()?]);
    }
    // The first argument says whether a process, a group or a user is meant, the second which one.
    for (call, process) in [
        (libc::SYS_setpriority, u64::from(libc::PRIO_PROCESS)),
        (libc::SYS_ioprio_set, IOPRIO_WHO_PROCESS),
    ] {
        let other_kind = condition(0, SeccompCmpOp::Ne, process)?;
        let other_one = condition(1, SeccompCmpOp::Ne, OWN)?;
        rules.insert(call, vec![rule(vec![other_kind])?, rule(vec![other_one])?]);
    }
    let is = |value| condition(0, SeccompCmpOp::Eq, value).and_then(|it| rule(vec![it]));
    let mut signalled = vec![is(EVERYBODY)?];
    for watcher in watchers.iter().filter(|it| **it > 1) {
        // A negative number means the group that a process leads.
        for target in [*watcher, -*watcher] {
            signalled.push(is(u64::from(target.cast_unsigned()))?);
        }
    }
    for call in [
        libc::SYS_kill,
        libc::SYS_tgkill,
        libc::SYS_rt_sigqueueinfo,
        libc::SYS_rt_tgsigqueueinfo,
    ] {
        rules.insert(call, signalled.clone());
    }
    for call in [libc::SYS_tkill, libc::SYS_pidfd_send_signal] {
        rules.insert(call, Vec::new());
    }
    // Shared memory, queues and semaphores are the machine's: a command would reach those of the user's programs, and leave
    // its own behind.
    for call in [
        libc::SYS_shmget,
        libc::SYS_shmat,
        libc::SYS_msgget,
        libc::SYS_msgsnd,
        libc::SYS_msgrcv,
        libc::SYS_semget,
        libc::SYS_semop,
        libc::SYS_semtimedop,
        libc::SYS_mq_open,
    ] {
        rules.insert(call, Vec::new());
    }
    Ok(())
}

fn condition(argument: u8, op: SeccompCmpOp, value: u64) -> io::Result<SeccompCondition> {
    let condition = SeccompCondition::new(argument, SeccompCmpArgLen::Dword, op, value);
    condition.map_err(io::Error::other)
}

fn rule(conditions: Vec<SeccompCondition>) -> io::Result<SeccompRule> {
    SeccompRule::new(conditions).map_err(io::Error::other)
}

/// Refuses calls of which another error or more than one number is meant, which the rules cannot say; all others continue.
fn refused_by_number() -> io::Result<[sock_filter; 9]> {
    let refuse = |errno: libc::c_int| {
        let errno = libc::SECCOMP_RET_ERRNO | errno.cast_unsigned();
        step(libc::BPF_RET | libc::BPF_K, (0, 0), errno)
    };
    let newer = u32::try_from(libc::SYS_clone3).map_err(io::Error::other)?;
    let opening = u32::try_from(libc::SYS_openat2).map_err(io::Error::other)?;
    Ok([
        step(LOAD, (0, 0), CALL_NUMBER)?,
        // The flags of `clone3` cannot be seen; the C library takes `clone` if it is not there.
        step(JUMP | libc::BPF_JEQ, (0, 1), newer)?,
        refuse(libc::ENOSYS)?,
        // Neither can the modes of `openat2`; programs take `openat` if it is not there.
        step(JUMP | libc::BPF_JEQ, (0, 1), opening)?,
        refuse(libc::ENOSYS)?,
        // Programs of x32 are there no more; what is denied would have to be denied by its numbers there too.
        step(JUMP | libc::BPF_JSET, (0, 1), X32)?,
        refuse(libc::EPERM)?,
        step(JUMP | libc::BPF_JGT, (0, 1), LAST_KNOWN)?,
        refuse(libc::ENOSYS)?,
    ])
}

const LOAD: u32 = libc::BPF_LD | libc::BPF_W | libc::BPF_ABS;
const JUMP: u32 = libc::BPF_JMP | libc::BPF_K;

fn step(code: u32, (jt, jf): (u8, u8), k: u32) -> io::Result<sock_filter> {
    let code = u16::try_from(code).map_err(io::Error::other)?;
    Ok(sock_filter { code, jt, jf, k })
}

fn first_argument(op: SeccompCmpOp, value: u64) -> io::Result<SeccompRule> {
    let condition = SeccompCondition::new(0, SeccompCmpArgLen::Qword, op, value);
    SeccompRule::new(vec![condition.map_err(io::Error::other)?]).map_err(io::Error::other)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: FilterOptions<'_> = FilterOptions {
        has_sockets: false,
        has_own_processes: false,
        watchers: &[4711],
    };

    /// Runs the steps for a call with these arguments; returns what it is answered, and after how many steps.
    fn run(program: &[sock_filter], architecture: u32, number: u32, arguments: u32) -> (u32, u32) {
        let (mut at, mut loaded, mut steps) = (0_usize, 0_u32, 0);
        loop {
            let step = &program[at];
            (at, steps) = (at + 1, steps + 1);
            let chosen = |holds: bool| usize::from(if holds { step.jt } else { step.jf });
            match u32::from(step.code) {
                LOAD => {
                    loaded = match step.k {
                        CALL_NUMBER => number,
                        ARCHITECTURE => architecture,
                        _ => arguments,
                    }
                }
                code if code == libc::BPF_JMP | libc::BPF_JA => at += step.k as usize,
                code if code == JUMP | libc::BPF_JEQ => at += chosen(loaded == step.k),
                code if code == JUMP | libc::BPF_JGE => at += chosen(loaded >= step.k),
                code if code == JUMP | libc::BPF_JGT => at += chosen(loaded > step.k),
                code if code == JUMP | libc::BPF_JSET => at += chosen(loaded & step.k != 0),
                code if code == libc::BPF_ALU | libc::BPF_AND | libc::BPF_K => loaded &= step.k,
                code if code == libc::BPF_RET | libc::BPF_K => return (step.k, steps),
                code => panic!("no such step: {code:#x}"),
            }
        }
    }

    #[test]
    fn the_search_allows_what_the_rules_would_allow_and_in_a_few_steps() {
        let whole = program(ALL).unwrap();
        let tail = whole
            .iter()
            .rposition(|it| it.k == ARCHITECTURE && u32::from(it.code) == LOAD);
        let rules = &whole[tail.unwrap()..];
        let (mut denied, mut quick) = (0, 0);
        for number in 0..=LAST_KNOWN {
            for arguments in [0, 1, 4711, u32::MAX] {
                let (answer, steps) = run(&whole, OWN_ARCHITECTURE, number, arguments);
                if [libc::SYS_clone3, libc::SYS_openat2].contains(&number.into()) {
                    continue;
                }
                assert_eq!(
                    answer,
                    run(rules, OWN_ARCHITECTURE, number, arguments).0,
                    "{number}"
                );
                denied += u32::from(answer != libc::SECCOMP_RET_ALLOW);
                quick += u32::from(steps < 20);
            }
        }
        assert!(denied > 4 * 35 && quick > 4 * 390, "{denied} {quick}");
        // A call of another architecture has other numbers.
        let foreign = run(&whole, OWN_ARCHITECTURE ^ 1, 0, 0);
        assert_eq!(foreign.0, libc::SECCOMP_RET_KILL_PROCESS);
    }
}
