//! The user's input, assembled: words, standard input and attached files.

use crate::error::{CliError, Result};
use crate::exit::Exit;
use crate::output::is_ready_within;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rondo_types::{Media, MediaKind, MediaSource, Message, Part, Role};
use rustix::event::PollFlags;
use rustix::fs::{FileType, fstat};
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, IsTerminal as _, Read};
use std::os::fd::AsFd;
use std::path::Path;
use std::time::Duration;

/// The bound on standard input, in bytes.
const STDIN_BYTES_MAX: usize = 4 << 20;
/// The bound on an attached text, in bytes.
const TEXT_BYTES_MAX: u64 = 1 << 20;
/// The bound on an attached image or document, in bytes.
const MEDIA_BYTES_MAX: u64 = 20 << 20;
/// Bytes that tell what a file holds.
const HEAD_BYTES: u64 = 16;
/// The bound on attached files.
const FILES_MAX: usize = 64;
/// How long standard input may be silent before a note says that it is waited for: a parent may keep
/// a pipe open that it never writes to, and the user should know what is waited for.
const SILENCE_MAX: Duration = Duration::from_secs(1);
/// That note.
const SILENT: &str = "reading standard input until it ends; `< /dev/null` if there is none";
/// Characters that may follow a file's name and belong to the sentence.
const PUNCTUATION: [char; 8] = [',', '.', ';', ':', '!', '?', ')', '\''];
/// The longest extension by which a word looks like the name of a file, in bytes.
const EXTENSION_BYTES_MAX: usize = 8;
/// Bytes read from standard input at once.
const READ_BYTES: usize = 16 << 10;

/// The first bytes of what can be attached besides text.
const SIGNATURES: [(&[u8], &str, MediaKind); 5] = [
    (b"\x89PNG\r\n\x1a\n", "image/png", MediaKind::Image),
    (b"\xff\xd8\xff", "image/jpeg", MediaKind::Image),
    (b"GIF87a", "image/gif", MediaKind::Image),
    (b"GIF89a", "image/gif", MediaKind::Image),
    (b"%PDF-", "application/pdf", MediaKind::File),
];

/// Reads the files that the words name and builds the message.
///
/// `-` alone is standard input; otherwise what is piped in follows as a `<stdin>` block. A word that
/// begins with `@` attaches the file it names, beneath `directory` if it is relative; `@server:uri` of one of the
/// `servers` stays, since it is read later. Standard
/// input is read to its end, however long that takes; if it is silent, `tell` is called once.
///
/// # Errors
/// When there is nothing to ask, or something named cannot be read. If no command was typed
/// (`implied`), an empty standard input is not a bad input: nothing was said at all.
pub(crate) fn read(
    words: &[String],
    directory: &Path,
    servers: &[String],
    implied: bool,
    tell: &dyn Fn(&str),
) -> Result<Message> {
    let text = words.join(" ");
    let only_stdin = is_only_stdin(&text);
    let stdin = io::stdin();
    if only_stdin {
        if text.is_empty() && stdin.is_terminal() {
            return Err(CliError::new(Exit::Usage, "no question given")
                .hint("write the question after `rondo ask`, or pipe it in"));
        }
        let piped = read_stdin(tell)?;
        if implied && piped.trim().is_empty() {
            let message = "no question given: standard input is empty";
            return Err(
                CliError::new(Exit::Usage, message).hint("`rondo --help` lists the commands")
            );
        }
        return finish(piped.trim_end(), Vec::new(), None);
    }
    let piped = match stdin.is_terminal() {
        true => None,
        false => Some(read_stdin(tell)?),
    };
    let found = attachments(&text, directory, servers, MissingFile::AMistake)?;
    finish(&found.text, found.files, piped.as_deref())
}

/// Returns whether [`read`] reads nothing that may keep it waiting: neither a file nor a pipe.
pub(crate) fn reads_at_once(words: &[String]) -> bool {
    let (text, stdin) = (words.join(" "), io::stdin());
    let has_no_files = !text.contains('@') && !is_only_stdin(&text);
    has_no_files && (stdin.is_terminal() || is_empty(&stdin))
}

fn is_only_stdin(text: &str) -> bool {
    text == "-" || text.is_empty()
}

/// Returns whether a stream is known to hold nothing. Of a pipe that is never known beforehand.
pub(crate) fn is_empty(stream: &impl AsFd) -> bool {
    let Ok(stat) = fstat(stream) else {
        return true;
    };
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => stat.st_size == 0,
        FileType::CharacterDevice => {
            rustix::fs::stat("/dev/null").is_ok_and(|null| null.st_rdev == stat.st_rdev)
        }
        _ => false,
    }
}

/// Builds the message of a text that was typed or pasted. As with [`read`], a word that begins with
/// `@` attaches the file it names. If there is no such file, the word stays as it is, since a pasted text may hold any;
/// `note` is called if it looks like the name of a file.
///
/// # Errors
/// When there is nothing to ask, or a file cannot be attached.
pub(crate) fn of_text(
    text: &str,
    directory: &Path,
    servers: &[String],
    note: &dyn Fn(&str),
) -> Result<Message> {
    let found = attachments(text, directory, servers, MissingFile::IsAWord)?;
    for name in &found.missing {
        note(&format!(
            "there is no file `{name}`, so `@{name}` was sent as text"
        ));
    }
    finish(&found.text, found.files, None)
}

/// A prompt without the files that it names.
struct Attachments {
    /// The text, which keeps the names of the files.
    text: String,
    files: Vec<Part>,
    /// Words that look like the name of a file that does not exist.
    missing: Vec<String>,
}

/// The meaning of a file name that does not exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MissingFile {
    AMistake,
    IsAWord,
}

fn finish(text: &str, files: Vec<Part>, piped: Option<&str>) -> Result<Message> {
    let mut whole = text.to_owned();
    if let Some(piped) = piped.filter(|piped| !piped.trim().is_empty()) {
        whole.push_str("\n\n<stdin>\n");
        whole.push_str(piped.trim_end_matches('\n'));
        whole.push_str("\n</stdin>");
    }
    if whole.trim().is_empty() {
        return Err(CliError::new(Exit::Input, "the prompt is empty"));
    }
    let mut parts = vec![Part::text(whole)];
    parts.extend(files);
    Ok(Message {
        role: Role::User,
        parts,
        origin: None,
        synthetic: false,
        paused: false,
        from_outside: false,
    })
}

/// Reads standard input to its end.
fn read_stdin(tell: &dyn Fn(&str)) -> Result<String> {
    let failed = |err: io::Error| {
        let context = "failed to read standard input";
        CliError::caused(Exit::Input, anyhow::Error::new(err).context(context))
    };
    let mut bytes = Vec::new();
    let mut stdin = io::stdin().lock();
    let mut piece = vec![0; READ_BYTES];
    let mut told = stdin.is_terminal();
    loop {
        if !told && !is_ready_within(&stdin, PollFlags::IN, SILENCE_MAX).map_err(failed)? {
            tell(SILENT);
            told = true;
        }
        let count = stdin.read(&mut piece).map_err(failed)?;
        let Some(read) = piece.get(..count).filter(|read| !read.is_empty()) else {
            break;
        };
        bytes.extend_from_slice(read);
        if bytes.len() > STDIN_BYTES_MAX {
            return Err(CliError::new(
                Exit::Input,
                format_args!("standard input is larger than {STDIN_BYTES_MAX} bytes"),
            )
            .hint("put it in a file and let the model read the parts it needs"));
        }
    }
    String::from_utf8(bytes)
        .map_err(|_| CliError::new(Exit::Input, "standard input is not UTF-8 text"))
}

/// Takes the files out of a prompt. The text keeps their names, so that it still reads well.
fn attachments(
    text: &str,
    directory: &Path,
    servers: &[String],
    missing: MissingFile,
) -> Result<Attachments> {
    let mut found = Attachments {
        text: String::with_capacity(text.len()),
        files: Vec::new(),
        missing: Vec::new(),
    };
    let mut rest = text;
    while let Some(at) = rest.find('@') {
        let (before, from) = rest.split_at(at);
        let begins_word = before
            .chars()
            .next_back()
            .or_else(|| found.text.chars().next_back())
            .is_none_or(char::is_whitespace);
        found.text.push_str(before);
        let after = from.get(1..).unwrap_or("");
        if let Some(literal) = after.strip_prefix('@') {
            found.text.push('@');
            rest = literal;
            continue;
        }
        // `@server:uri` names a resource, which is read when the server is there.
        let is_resource = |name: &str| {
            let server = name.split_once(':').map(|(server, _)| server);
            server.is_some_and(|it| servers.iter().any(|known| known == it))
        };
        let named = named_file(after, directory);
        let named = named.filter(|it| begins_word && !is_resource(it.name));
        match named {
            Some(it) if it.exists || missing == MissingFile::AMistake => {
                if found.files.len() == FILES_MAX {
                    let message = format!("more than {FILES_MAX} files are attached");
                    return Err(CliError::new(Exit::Input, message));
                }
                found.files.push(attach(it.name, directory)?);
                found.text.push_str(it.name);
                rest = it.rest;
            }
            named => {
                let looks_like_file = named.filter(|it| it.is_quoted || has_form_of_file(it.name));
                found
                    .missing
                    .extend(looks_like_file.map(|it| it.name.to_owned()));
                found.text.push('@');
                rest = after;
            }
        }
    }
    found.text.push_str(rest);
    Ok(found)
}

/// A file that a text names.
struct NamedFile<'a> {
    name: &'a str,
    /// The text behind the name.
    rest: &'a str,
    exists: bool,
    is_quoted: bool,
}

/// Splits off the name of a file: up to the next space, or in double quotes. Punctuation at the end of a word belongs to
/// the sentence if there is no file of that name.
fn named_file<'a>(text: &'a str, directory: &Path) -> Option<NamedFile<'a>> {
    let named = |name: &'a str, rest, is_quoted| NamedFile {
        name,
        rest,
        exists: directory.join(name).is_file(),
        is_quoted,
    };
    if let Some(quoted) = text.strip_prefix('"') {
        let (name, rest) = quoted
            .split_once('"')
            .filter(|(name, _)| !name.is_empty())?;
        return Some(named(name, rest, true));
    }
    let end = text.find(char::is_whitespace).unwrap_or(text.len());
    let (word, rest) = text.split_at(end);
    let whole = named(word, rest, false);
    let name = word.trim_end_matches(PUNCTUATION);
    if whole.exists || name.is_empty() {
        return (!word.is_empty()).then_some(whole);
    }
    Some(named(
        name,
        text.get(name.len()..).unwrap_or_default(),
        false,
    ))
}

/// Returns whether a word has the form of a file's name rather than of a user's or a decorator's: it has a directory or an
/// extension.
fn has_form_of_file(word: &str) -> bool {
    let extension = Path::new(word).extension().and_then(OsStr::to_str);
    let has_extension = extension.is_some_and(|it| {
        it.len() <= EXTENSION_BYTES_MAX && it.chars().all(|c| c.is_ascii_alphanumeric())
    });
    (has_extension || word.contains('/')) && !word.contains(['(', ':'])
}

/// Reads a file as a part of a message: text in a block, images and documents as what they are.
///
/// # Errors
/// When it cannot be read, is too large, or is neither.
pub(crate) fn attach(name: &str, directory: &Path) -> Result<Part> {
    let failed = |err: io::Error| {
        let context = format!("failed to read `{name}`");
        CliError::caused(Exit::Input, anyhow::Error::new(err).context(context))
            .hint("`@` attaches a file; write `@@` for the sign itself")
    };
    let file = File::open(directory.join(name)).map_err(failed)?;
    let mut bytes = Vec::new();
    file.take(MEDIA_BYTES_MAX + 1)
        .read_to_end(&mut bytes)
        .map_err(failed)?;
    let size = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
    if let Some((mime, kind)) = recognise(&bytes) {
        check_size(name, size, MEDIA_BYTES_MAX)?;
        return Ok(Part::Media(Media {
            kind,
            mime: mime.to_owned(),
            name: Some(name.to_owned()),
            source: MediaSource::Base64(STANDARD.encode(&bytes)),
        }));
    }
    check_size(name, size, TEXT_BYTES_MAX)?;
    let text = String::from_utf8(bytes)
        .ok()
        .filter(|text| !text.contains('\0'))
        .ok_or_else(|| {
            let message = format!("`{name}` is neither text nor an image that can be attached");
            CliError::new(Exit::Input, message)
                .hint("PNG, JPEG, GIF, WebP and PDF files can be attached besides text")
        })?;
    let end = if text.ends_with('\n') { "" } else { "\n" };
    Ok(Part::text(format!(
        "\n\n<file path=\"{name}\">\n{text}{end}</file>"
    )))
}

/// Returns whether a file holds an image that can be attached.
pub(crate) fn is_image(path: &Path) -> bool {
    // Opening a pipe would wait for its writer.
    if !path.is_file() {
        return false;
    }
    let mut head = Vec::new();
    let read = File::open(path).and_then(|file| file.take(HEAD_BYTES).read_to_end(&mut head));
    read.is_ok() && matches!(recognise(&head), Some((_, MediaKind::Image)))
}

fn check_size(name: &str, size: u64, bytes_max: u64) -> Result<()> {
    if size <= bytes_max {
        return Ok(());
    }
    Err(CliError::new(
        Exit::Input,
        format_args!("`{name}` is larger than {bytes_max} bytes"),
    )
    .hint("name the file without `@`, and the model reads the parts it needs"))
}

fn recognise(bytes: &[u8]) -> Option<(&'static str, MediaKind)> {
    if bytes.starts_with(b"RIFF") && bytes.get(8..12) == Some(b"WEBP") {
        return Some(("image/webp", MediaKind::Image));
    }
    SIGNATURES
        .iter()
        .find(|(signature, _, _)| bytes.starts_with(signature))
        .map(|(_, mime, kind)| (*mime, *kind))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;
    use std::fs;

    fn folder() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("a.txt"), "alpha\n").unwrap();
        fs::write(folder.path().join("b c.txt"), "beta").unwrap();
        fs::write(folder.path().join("dot.png"), b"\x89PNG\r\n\x1a\nrest").unwrap();
        fs::write(folder.path().join("bad.bin"), b"\xff\x00\xfe").unwrap();
        folder
    }

    #[test]
    fn files_are_attached_and_signs_that_are_no_files_stay() {
        let folder = folder();
        let text = "sum @a.txt and @\"b c.txt\" for me@example.org, @@home @ now";
        let found = attachments(text, folder.path(), &[], MissingFile::AMistake).unwrap();
        assert_eq!(
            found.text,
            "sum a.txt and b c.txt for me@example.org, @home @ now"
        );
        assert_eq!(
            found.files,
            [
                Part::text("\n\n<file path=\"a.txt\">\nalpha\n</file>"),
                Part::text("\n\n<file path=\"b c.txt\">\nbeta\n</file>"),
            ]
        );
    }

    #[test]
    fn what_is_typed_may_hold_signs_that_name_no_file() {
        let folder = folder();
        let notes = RefCell::new(Vec::new());
        let note = |text: &str| notes.borrow_mut().push(text.to_owned());
        let text = "@property, @app.route(\"/\") and @a.txt";
        let message = of_text(text, folder.path(), &[], &note).unwrap();
        let text = message.text();
        assert!(
            text.starts_with("@property, @app.route(\"/\") and a.txt"),
            "{text}"
        );
        assert!(text.contains("alpha"), "{text}");
        assert!(notes.borrow().is_empty(), "{notes:?}");
    }

    #[test]
    fn a_typed_name_of_a_missing_file_is_noted() {
        let folder = folder();
        for (text, name) in [
            ("look at @nosuch.txt", "nosuch.txt"),
            ("look at @nosuch.txt, please", "nosuch.txt"),
            ("look at @src/nosuch", "src/nosuch"),
            ("look at @\"no such\"", "no such"),
        ] {
            let notes = RefCell::new(Vec::new());
            let note = |text: &str| notes.borrow_mut().push(text.to_owned());
            let message = of_text(text, folder.path(), &[], &note).unwrap();
            assert_eq!(message.text(), text);
            assert_eq!(
                notes.into_inner(),
                [format!(
                    "there is no file `{name}`, so `@{name}` was sent as text"
                )]
            );
        }
    }

    #[test]
    fn punctuation_behind_a_file_name_belongs_to_the_sentence() {
        let folder = folder();
        let text = "see @a.txt, or (@a.txt) and @a.txt.";
        let found = attachments(text, folder.path(), &[], MissingFile::IsAWord).unwrap();
        assert_eq!(found.text, "see a.txt, or (@a.txt) and a.txt.");
        assert_eq!(found.files.len(), 2);
    }

    #[test]
    fn an_image_is_recognised_by_its_bytes() {
        let found = attachments("@dot.png", folder().path(), &[], MissingFile::AMistake).unwrap();
        let [Part::Media(media)] = found.files.as_slice() else {
            panic!("one image")
        };
        assert_eq!(
            (media.mime.as_str(), media.kind),
            ("image/png", MediaKind::Image)
        );
        assert_eq!(media.source, MediaSource::Base64("iVBORw0KGgpyZXN0".into()));
    }

    #[test]
    fn a_file_that_is_missing_or_unreadable_is_an_input_error() {
        let folder = folder();
        for (text, said) in [
            ("@nope.txt", "failed to read `nope.txt`"),
            ("@.", "failed to read `.`"),
            ("@bad.bin", "neither text nor an image"),
        ] {
            let error = attachments(text, folder.path(), &[], MissingFile::AMistake)
                .err()
                .unwrap();
            assert_eq!(error.exit, Exit::Input);
            assert!(error.line().contains(said), "{}", error.line());
        }
    }

    #[test]
    fn a_text_may_be_exactly_as_large_as_its_bound() {
        let folder = folder();
        for (size, fits) in [
            (TEXT_BYTES_MAX - 1, true),
            (TEXT_BYTES_MAX, true),
            (TEXT_BYTES_MAX + 1, false),
        ] {
            let text = "x".repeat(usize::try_from(size).unwrap());
            fs::write(folder.path().join("big.txt"), text).unwrap();
            assert_eq!(
                attachments("@big.txt", folder.path(), &[], MissingFile::AMistake).is_ok(),
                fits,
                "{size}"
            );
        }
    }

    #[test]
    fn a_pipe_that_stays_silent_is_not_readable() {
        let (reader, mut writer) = io::pipe().unwrap();
        assert!(!is_ready_within(&reader, PollFlags::IN, Duration::from_millis(1)).unwrap());
        io::Write::write_all(&mut writer, b"x").unwrap();
        assert!(is_ready_within(&reader, PollFlags::IN, SILENCE_MAX).unwrap());
    }

    #[test]
    fn the_end_of_a_pipe_counts_as_readable() {
        let (reader, writer) = io::pipe().unwrap();
        drop(writer);
        assert!(is_ready_within(&reader, PollFlags::IN, SILENCE_MAX).unwrap());
    }

    #[test]
    fn only_a_device_or_a_file_is_known_to_hold_nothing() {
        assert!(is_empty(&File::open("/dev/null").unwrap()));
        let mut file = tempfile::tempfile().unwrap();
        assert!(is_empty(&file));
        io::Write::write_all(&mut file, b"x").unwrap();
        assert!(!is_empty(&file));
        let (reader, writer) = io::pipe().unwrap();
        drop(writer);
        assert!(!is_empty(&reader));
    }

    #[test]
    fn a_file_that_is_named_and_standard_input_alone_may_keep_it_waiting() {
        for words in [&["why", "@fifo"][..], &["-"], &[""], &[]] {
            let words: Vec<String> = words.iter().map(|it| (*it).to_owned()).collect();
            assert!(!reads_at_once(&words), "{words:?}");
        }
    }

    #[test]
    fn what_is_piped_in_follows_as_a_block() {
        let message = finish("explain", Vec::new(), Some("line\n")).unwrap();
        assert_eq!(message.text(), "explain\n\n<stdin>\nline\n</stdin>");
        let message = finish("explain", Vec::new(), Some(" \n")).unwrap();
        assert_eq!(message.text(), "explain");
        let error = finish(" ", Vec::new(), None).unwrap_err();
        assert_eq!(error.exit, Exit::Input);
    }
}
