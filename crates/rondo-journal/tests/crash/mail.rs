//! Kills a process, or takes its room away, while it submits mail and acknowledges it with records: what is left
//! belongs together.
//!
//! The victim works on several sessions at once, so that their appends share commits. For each it submits a message,
//! then appends a record about it, and writes the returned value to its standard output.

use crate::MAIL_ARGS;
use rondo_core::Journal;
use rondo_core::ports::{
    Append, AppendError, Commit, MailBody, Mailbox as _, NewMail, Pushed, Record, RecordBody, Seq,
    settled,
};
use rondo_core::session::Delivery;
use rondo_journal::{NewSession, Options, Store};
use rondo_types::{Message, SessionId, TimeMs, TurnId};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::Path;
use std::process::Stdio;
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader};
use tokio::process::Command;
use tokio::task::JoinSet;

/// Sessions of a victim.
const SESSIONS: u64 = 4;
/// Processes that are killed, one after another, on the same store.
pub(crate) const KILLS: usize = 24;
/// After how many of its lines at most a process is killed.
const LINES_MAX: usize = 60;
/// Coprime to that, so that the kills spread.
const SPREAD: usize = 17;
/// Line of a victim that does not know whether its records exist.
const UNKNOWN: &str = "unknown";
/// Bytes that a message has where room runs out.
const LONG: usize = 20_000;

pub(crate) fn session(number: u64) -> SessionId {
    SessionId::new(format!("s{number}"))
}

fn record(n: u64) -> Record {
    Record {
        turn: TurnId::new("t"),
        step: 0,
        at_ms: TimeMs(1),
        body: RecordBody::UserMessage {
            message: Message::user(n.to_string()),
        },
    }
}

/// Works until it is killed or something fails.
pub(crate) fn victim(dir: &Path, is_long: bool, options: Options) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let store = Store::open(dir, options).unwrap();
        let mut sessions = JoinSet::new();
        for number in 0..SESSIONS {
            let store = store.clone();
            sessions.spawn(async move { work(&store, number, is_long).await });
        }
        sessions.join_all().await;
    });
}

async fn work(store: &Store, number: u64, is_long: bool) {
    let id = session(number);
    let owned = store
        .own(&id)
        .or_else(|_| store.begin(NewSession::new(id.clone(), TimeMs(1))))
        .unwrap();
    let text = "x".repeat(if is_long { LONG } else { 1 });
    for n in owned.at().0.. {
        let mail = NewMail {
            session: id.clone(),
            key: n.to_string(),
            actor: "ann".to_owned(),
            at_ms: TimeMs(1),
            body: MailBody::Message {
                message: Message::user(text.clone()),
                delivery: Delivery::Queue,
            },
        };
        let Ok(pushed) = store.push(mail).await else {
            return println!("unsent {number} {n}");
        };
        println!("sent {number} {n}");
        let fence = owned.fence().clone();
        let commit = Commit::of(pushed.id());
        let appended = owned
            .append(
                &fence,
                Append {
                    expected: Seq(n),
                    batch: vec![record(n)],
                    commit,
                },
            )
            .await;
        if matches!(appended, Err(AppendError::Unknown { .. })) {
            println!("{UNKNOWN} {number} {n}");
        }
        if settled(&owned, appended).await.is_err() {
            return println!("unkept {number} {n}");
        }
        println!("kept {number} {n}");
    }
}

/// Last line of a victim about each session: its word and number.
pub(crate) type Said = BTreeMap<u64, (String, u64)>;

fn said(output: &str) -> Said {
    let mut said = Said::new();
    for line in output.lines() {
        let words: Vec<_> = line.split(' ').collect();
        // What was killed may have said its last word by half.
        if let [word, session, n] = words[..]
            && let (Ok(session), Ok(n)) = (session.parse(), n.parse())
        {
            said.insert(session, (word.to_owned(), n));
        }
    }
    said
}

/// Compares what is there with what was said.
pub(crate) async fn check(store: &Store, said: &Said, is_cut: bool) {
    for (number, (word, n)) in said {
        let id = session(*number);
        // A session that has no records never began.
        let is_begun = store.session(&id).is_ok();
        let records = match is_begun {
            true => store.load(&id).unwrap(),
            false => Vec::new(),
        };
        let expected: Vec<_> = (0..).map(record).take(records.len()).collect();
        assert_eq!(records, expected);
        assert!(!is_begun || store.check(&id).unwrap().defect.is_none());
        let mail = store.list(&id).await.unwrap();
        let keys: Vec<_> = mail.iter().map(|it| it.key.clone()).collect();
        let (kept, n) = (records.len() as u64, *n);
        let place = format!("session {number} after `{word} {n}`: {kept} records, {keys:?} wait");
        // Of a message whose record is there nothing waits; only the next one may.
        assert!(keys.is_empty() || keys == [kept.to_string()], "{place}");
        let sent = kept + keys.len() as u64;
        match word.as_str() {
            "sent" => assert!(sent == n + 1 || is_cut && sent == n + 2, "{place}"),
            "kept" => assert!(kept == n + 1 && sent <= n + 2, "{place}"),
            "unkept" => assert!(kept == n && sent == n + 1, "{place}"),
            "unsent" => assert!(kept == n && sent == n, "{place}"),
            _ => panic!("{place}"),
        }
    }
}

/// A submission that was taken is known when it is repeated.
pub(crate) async fn check_repeated(store: &Store, said: &Said) {
    for number in said.keys() {
        let id = session(*number);
        if let Ok(info) = store.session(&id) {
            let again = NewMail {
                session: id,
                key: (info.head.0 - 1).to_string(),
                actor: String::new(),
                at_ms: TimeMs(1),
                body: MailBody::Cancel,
            };
            let again = store.push(again).await.unwrap();
            assert!(matches!(again, Pushed::Duplicate(_)), "{again:?}");
        }
    }
}

pub(crate) fn run(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime.unwrap().block_on(test);
}

/// The test of processes that are killed.
pub(crate) fn killed() {
    run(async {
        let dir = TempDir::new().unwrap();
        let mut most = 0;
        for kill in 0..KILLS {
            let arguments = [MAIL_ARGS[0].as_ref(), dir.path().as_os_str()];
            let said = killed_after(lines_of(kill), arguments).await;
            let store = Store::open(dir.path(), Options::default()).unwrap();
            check(&store, &said, true).await;
            check_repeated(&store, &said).await;
            most = said.values().map(|it| it.1).max().unwrap_or(most);
        }
        assert!(most > 0, "they were killed before they did anything");
    });
}

/// Returns after how many of its lines a victim is killed.
pub(crate) fn lines_of(kill: usize) -> usize {
    1 + kill * SPREAD % LINES_MAX
}

/// Starts a victim, kills it, and returns what it said.
pub(crate) async fn killed_after(
    lines: usize,
    arguments: impl IntoIterator<Item = impl AsRef<OsStr>>,
) -> Said {
    let mut victim = Command::new(std::env::current_exe().unwrap())
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut reader = BufReader::new(victim.stdout.take().unwrap());
    let mut output = String::new();
    for _ in 0..lines {
        reader.read_line(&mut output).await.unwrap();
    }
    victim.start_kill().unwrap();
    reader.read_to_string(&mut output).await.unwrap();
    victim.wait().await.unwrap();
    said(&output)
}

/// The test of processes whose files cannot grow, which fails in the middle of a commit.
pub(crate) fn without_room() {
    run(async {
        let mut unknown = 0;
        for kib in [300, 333, 500, 777, 1200] {
            let dir = TempDir::new().unwrap();
            let script = format!("trap '' XFSZ; ulimit -f {}; exec \"$0\" \"$@\"", kib * 2);
            let output = Command::new("/bin/sh")
                .args(["-c", &script])
                .arg(std::env::current_exe().unwrap())
                .args([MAIL_ARGS[1].as_ref(), dir.path().as_os_str()])
                .stdin(Stdio::null())
                .output()
                .await
                .unwrap();
            assert!(output.status.success(), "{output:?}");
            let output = String::from_utf8(output.stdout).unwrap();
            unknown += output.matches(UNKNOWN).count();
            let said = said(&output);
            assert_eq!(said.len() as u64, SESSIONS);
            assert!(said.values().all(|(word, _)| word.starts_with("un")));
            let store = Store::open(dir.path(), Options::default()).unwrap();
            check(&store, &said, false).await;
            check_repeated(&store, &said).await;
        }
        assert!(unknown > 0, "no commit failed in the midst");
    });
}

/// The test of a disk that is full, if this process may mount one.
pub(crate) fn on_a_full_disk() {
    run(async {
        let dir = TempDir::new().unwrap();
        let script = "mount -t tmpfs -o size=2m none \"$1\" || exit 77
            \"$0\" \"$2\" \"$1\" > \"$1.said\" && exec \"$0\" \"$3\" \"$1\"";
        let checked = Command::new("unshare")
            .args(["-m", "/bin/sh", "-c", script])
            .arg(std::env::current_exe().unwrap())
            .arg(dir.path())
            .args([MAIL_ARGS[1], MAIL_ARGS[2]])
            .stdin(Stdio::null())
            .output()
            .await;
        let said = dir.path().with_extension("said");
        let said = std::fs::read_to_string(&said).and(std::fs::remove_file(&said));
        match checked {
            Ok(output) if said.is_ok() => assert!(output.status.success(), "{output:?}"),
            refused => println!("not tried: this process may not mount anything: {refused:?}"),
        }
    });
}

/// Checks what a victim left on the disk that is full.
pub(crate) fn checker(dir: &Path) {
    run(async {
        let output = std::fs::read_to_string(dir.with_extension("said")).unwrap();
        let said = said(&output);
        assert_eq!(said.len() as u64, SESSIONS);
        assert!(said.values().all(|(word, _)| word.starts_with("un")));
        let store = Store::open_to_read(dir, Options::default()).unwrap();
        check(&store, &said, false).await;
    });
}
