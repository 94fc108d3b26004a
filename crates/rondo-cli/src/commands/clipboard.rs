//! The clipboard of the user's desktop, by the programs that have it. If there is no desktop, none of them is run.

use crate::error::{CliError, Result};
use crate::exit::Exit;
use rondo_runtime::env::Env;
use std::io;
use std::process::Stdio;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{Child, Command};
use tokio::time::timeout;

/// How long a program may take.
const PROGRAM_TIMEOUT: Duration = Duration::from_secs(2);
/// The bound on an image, in bytes; as on one that is attached by its name.
const IMAGE_BYTES_MAX: u64 = 20 << 20;

/// A program, its arguments, and the variable that says that there is its desktop.
type Helper = (&'static str, &'static [&'static str], Option<&'static str>);

const COPYING: [Helper; 4] = [
    ("wl-copy", &[], Some("WAYLAND_DISPLAY")),
    ("xclip", &["-selection", "clipboard"], Some("DISPLAY")),
    ("xsel", &["--clipboard", "--input"], Some("DISPLAY")),
    ("pbcopy", &[], None),
];

const READING_IMAGES: [Helper; 3] = [
    (
        "wl-paste",
        &["--type", "image/png"],
        Some("WAYLAND_DISPLAY"),
    ),
    (
        "xclip",
        &["-selection", "clipboard", "-t", "image/png", "-o"],
        Some("DISPLAY"),
    ),
    ("pngpaste", &["-"], None),
];

/// Puts a text there. Returns whether a program took it.
pub(crate) async fn copy(env: &Env, text: &str) -> bool {
    for helper in here(&COPYING, env) {
        let Ok(child) = start(helper, Stdio::piped(), Stdio::null()) else {
            continue;
        };
        let taken = timeout(PROGRAM_TIMEOUT, give(child, text)).await;
        if let Ok(Ok(true)) = taken {
            return true;
        }
    }
    false
}

async fn give(mut child: Child, text: &str) -> io::Result<bool> {
    if let Some(mut input) = child.stdin.take() {
        input.write_all(text.as_bytes()).await?;
        input.shutdown().await?;
    }
    Ok(child.wait().await?.success())
}

/// Reads an image from there; none if there is none.
///
/// # Errors
/// When no program can look, or the image is too large.
pub(crate) async fn image(env: &Env) -> Result<Option<Vec<u8>>> {
    let mut has_looked = false;
    for helper in here(&READING_IMAGES, env) {
        let Ok(child) = start(helper, Stdio::null(), Stdio::piped()) else {
            continue;
        };
        has_looked = true;
        if let Ok(Ok(bytes)) = timeout(PROGRAM_TIMEOUT, read(child)).await
            && !bytes.is_empty()
        {
            return within_bound(bytes).map(Some);
        }
    }
    match has_looked {
        true => Ok(None),
        false => {
            let message = "found no program that reads images from the clipboard";
            Err(CliError::new(Exit::Input, message).hint(
                "install `wl-paste`, `xclip` or `pngpaste`, or paste the path of the image's file",
            ))
        }
    }
}

async fn read(mut child: Child) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if let Some(output) = child.stdout.take() {
        output
            .take(IMAGE_BYTES_MAX + 1)
            .read_to_end(&mut bytes)
            .await?;
    }
    Ok(bytes)
}

fn within_bound(bytes: Vec<u8>) -> Result<Vec<u8>> {
    let size = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
    match size <= IMAGE_BYTES_MAX {
        true => Ok(bytes),
        false => {
            let message = format!("the clipboard's image is larger than {IMAGE_BYTES_MAX} bytes");
            Err(CliError::new(Exit::Input, message))
        }
    }
}

fn here<'a>(helpers: &'a [Helper], env: &'a Env) -> impl Iterator<Item = &'a Helper> {
    helpers
        .iter()
        .filter(|it| it.2.is_none_or(|name| env.get(name).is_some()))
}

fn start(helper: &Helper, input: Stdio, output: Stdio) -> io::Result<Child> {
    Command::new(helper.0)
        .args(helper.1)
        .stdin(input)
        .stdout(output)
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
}
