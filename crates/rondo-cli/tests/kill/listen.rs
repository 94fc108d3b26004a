//! A listener in a process of its own, which is killed and continues with its last cursor.
//!
//! It writes its updates to a file, one a line, and nothing else is left of it. In the end these must
//! match the records.

use crate::case::CaseDir;
use crate::random::Random;
use rondo_runtime::service::{Cursor, NoHost, SessionHandle, SessionService};
use rondo_runtime::{Env, Layer, NoNotices, Runtime, SessionOptions, SetupError};
use serde_json::Value;
use std::fs::{File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

/// The first argument of a listener, and of the one that compares in the end.
pub(crate) const LISTEN_ARG: &str = "__listen";
const COMPARE_ARG: &str = "__compare";
/// How long a listener lives at the most.
const LIFE_MS_MAX: u64 = 600;
/// How long the last one may take.
const COMPARE_MAX: Duration = Duration::from_secs(60);
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// The listeners of a case, one after another.
pub(crate) struct Listeners {
    end: CancellationToken,
    killed: tokio::task::JoinHandle<u64>,
}

impl Listeners {
    /// Starts and kills listeners until the case is over.
    pub(crate) fn start(dir: &CaseDir, mut random: Random) -> Self {
        let end = CancellationToken::new();
        let ended = end.clone();
        let commands = dir.listener(LISTEN_ARG);
        let killed = tokio::spawn(async move {
            let mut killed = 0;
            while !ended.is_cancelled() {
                let mut listener = commands.command().spawn().unwrap();
                let life = Duration::from_millis(random.below(LIFE_MS_MAX));
                tokio::select! {
                    () = sleep(life) => {}
                    () = ended.cancelled() => {}
                    // It is killed, and does not end by itself: the comparison says so if it fails.
                    _ = listener.wait() => {}
                }
                let _ = listener.kill().await;
                killed += 1;
            }
            killed
        });
        Self { end, killed }
    }

    /// Ends them. Returns how many there were, and what is wrong with what they heard together, if anything is.
    pub(crate) async fn end(self, dir: &CaseDir, is_recorded: bool) -> (u64, Option<String>) {
        self.end.cancel();
        let killed = self.killed.await.unwrap();
        if !is_recorded {
            return (killed, None);
        }
        let compared = dir.listener(COMPARE_ARG).command().output();
        let problem = match timeout(COMPARE_MAX, compared).await {
            Ok(Ok(output)) if output.status.success() => None,
            Ok(Ok(output)) => Some(String::from_utf8_lossy(&output.stderr).into_owned()),
            Ok(Err(err)) => Some(err.to_string()),
            Err(_) => Some("it did not hear the end of the turn".to_owned()),
        };
        (killed, problem.map(|it| format!("a killed listener: {it}")))
    }
}

/// Is a listener, if the arguments say so.
pub(crate) fn run(args: &[String]) -> Option<ExitCode> {
    let [kind, log] = args else {
        return None;
    };
    let compares = match kind.as_str() {
        LISTEN_ARG => false,
        COMPARE_ARG => true,
        _ => return None,
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let listened = runtime.block_on(listen(Path::new(log), compares));
    Some(match listened {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            let _ = writeln!(std::io::stderr(), "{problem}");
            ExitCode::FAILURE
        }
    })
}

async fn listen(log: &Path, compares: bool) -> Result<(), String> {
    let failed = |err: SetupError| err.to_string();
    let env = Env::from_env();
    let runtime = Runtime::new(env, Layer::default(), Arc::new(NoNotices));
    let service = SessionService::open(runtime, PathBuf::from("."), NoHost).map_err(failed)?;
    let session = loop {
        let options = SessionOptions::in_directory(".");
        match service.find("latest", options).await {
            Ok(session) => break session,
            Err(_) => sleep(LOOK_EVERY).await,
        }
    };
    let mut heard = Heard::open(log);
    let cursor = heard.cursor()?;
    let mut listener = session.subscribe(cursor);
    while !(compares && heard.is_over()) {
        let update = listener.next().await.map_err(failed)?;
        heard.keep(serde_json::to_value(&update).map_err(|err| err.to_string())?);
    }
    let told = heard.page();
    let recorded = by_the_records(&session).await.map_err(failed)?;
    match told == recorded {
        true => Ok(()),
        false => Err(difference(&told, &recorded)),
    }
}

/// Reports the first place where the listener's events differ from the records.
fn difference(told: &[Line], recorded: &[Line]) -> String {
    let same = told.iter().zip(recorded).take_while(|(a, b)| a == b);
    let at = same.count();
    format!(
        "after {at} lines it heard {:?}, and the records say {:?}; before that {:?}",
        told.get(at),
        recorded.get(at),
        at.checked_sub(1).and_then(|it| told.get(it)),
    )
}

async fn by_the_records(session: &SessionHandle) -> Result<Vec<Line>, SetupError> {
    let mut listener = session.subscribe(Cursor::START);
    let mut all = Vec::new();
    while !all.last().is_some_and(is_result) {
        let update = listener.next().await?;
        all.extend(serde_json::to_value(&update));
    }
    Ok(page(&all))
}

/// Updates of this process and those before it.
struct Heard {
    log: File,
    updates: Vec<Value>,
}

impl Heard {
    /// Reads the existing output, without the half of a line that a killed process left.
    fn open(path: &Path) -> Self {
        let mut options = OpenOptions::new();
        let mut log = options
            .create(true)
            .read(true)
            .append(true)
            .open(path)
            .unwrap();
        let mut text = String::new();
        log.read_to_string(&mut text).unwrap();
        let whole = text.rfind('\n').map_or(0, |at| at + 1);
        log.set_len(whole as u64).unwrap();
        let lines = text.get(..whole).unwrap_or_default().lines();
        let updates = lines.map(|it| serde_json::from_str(it).unwrap());
        Self {
            updates: updates.collect(),
            log,
        }
    }

    fn cursor(&self) -> Result<Cursor, String> {
        match self.updates.last() {
            Some(last) => {
                let cursor = last["cursor"].as_str().unwrap_or_default().parse();
                cursor.map_err(|_| format!("{last} has no cursor"))
            }
            None => Ok(Cursor::START),
        }
    }

    fn keep(&mut self, update: Value) {
        self.log
            .write_all(format!("{update}\n").as_bytes())
            .unwrap();
        self.updates.push(update);
    }

    /// Returns whether the turn's end was heard.
    fn is_over(&self) -> bool {
        let mut latest = self.updates.iter().rev();
        let of_turn = latest.find(|it| it["update"] != "session" && it["update"] != "missed");
        of_turn.is_some_and(is_result)
    }

    fn page(&self) -> Vec<Line> {
        page(&self.updates)
    }
}

/// A line of a page: its turn, run and number, and its text.
#[derive(Debug, PartialEq)]
struct Line {
    place: [u64; 3],
    text: String,
}

fn is_result(update: &Value) -> bool {
    update["event"]["type"] == "result"
}

/// Page that these updates lead to: deltas joined, and reset ones removed.
fn page(updates: &[Value]) -> Vec<Line> {
    let mut lines: Vec<Line> = Vec::new();
    for update in updates {
        let cursor = update["cursor"].as_str().unwrap_or_default();
        let numbers: Vec<u64> = cursor.split('.').flat_map(str::parse).collect();
        let [turn, run, number, offset, ..] = numbers[..] else {
            continue;
        };
        let place = [turn, run, number];
        let event = &update["event"];
        match update["update"].as_str().unwrap_or_default() {
            "asked" => lines.push(Line {
                place,
                text: update["message"].to_string(),
            }),
            "reset" => {
                lines.retain(|it| it.place <= place);
                let last = lines
                    .last_mut()
                    .filter(|it| it.place == place && offset > 0);
                if let Some(last) = last {
                    last.text
                        .truncate(usize::try_from(offset).unwrap_or(usize::MAX));
                }
            }
            "turn" if event["type"] == "tool_output_delta" => {}
            "turn" if event["type"] == "text_delta" => {
                let text = event["text"].as_str().unwrap_or_default();
                match lines.last_mut().filter(|it| it.place == place) {
                    Some(last) => last.text += text,
                    None => lines.push(Line {
                        place,
                        text: text.to_owned(),
                    }),
                }
            }
            "turn" => {
                let mut event = event.clone();
                // It counts the deltas as this listener received them.
                event.as_object_mut().map(|it| it.remove("seq"));
                lines.push(Line {
                    place,
                    text: event.to_string(),
                });
            }
            _ => {}
        }
    }
    lines
}
