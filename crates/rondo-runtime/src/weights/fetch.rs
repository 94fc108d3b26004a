//! Downloads weights from the first source that has them.

use super::catalogue::{CatalogueModel, IndexParts};
use super::index;
use super::partial::PartialDownload;
use super::progress::Progress;
use super::wanted::{Store, WeightsSource};
use crate::error::SetupErrorKind;
use crate::error::{Result, SetupError};
use crate::notices::Notices;
use crate::settings::Settings;
use rondo_http::{DownloadError, Network, Proxies, Secret, Transport, download};
use rondo_types::units::size;
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use tokio::task::{spawn_blocking, yield_now};

/// The hub, if its own variable names no other.
const HUB: &str = "https://huggingface.co";
/// Names a URL or a directory in which a file of the catalog's name lies.
const MIRROR_VARIABLE: &str = "RONDO_MODEL_MIRROR";
/// Bytes copied at once.
const READ_BYTES: usize = 1 << 20;
/// How often a connection that breaks is made again, as long as each brought something.
const RESUMES_MAX: u32 = 20;

/// How weights are fetched.
#[derive(Debug, Clone)]
pub struct FetchOptions {
    /// Nothing is fetched.
    pub offline: bool,
    network: Network,
    hub: String,
    token: Option<Secret>,
    mirror: Option<String>,
    python: String,
}

impl FetchOptions {
    /// Collects what the environment and the configuration say.
    pub fn of(settings: &Settings) -> Self {
        let env = &settings.env;
        let hub = env.get("HF_ENDPOINT").unwrap_or(HUB);
        Self {
            offline: settings.values.offline == Some(true),
            network: Network {
                proxies: Proxies::from_lookup(|name| env.text(name)),
                ca_file: settings.values.ca_file.clone(),
                ..Network::default()
            },
            hub: hub.trim_end_matches('/').to_owned(),
            token: env.get("HF_TOKEN").map(Secret::new),
            mirror: env.text(MIRROR_VARIABLE),
            python: env
                .text("RONDO_PYTHON")
                .unwrap_or_else(|| "python3".to_owned()),
        }
    }
}

/// A place that may have the file.
enum Source {
    Directory(PathBuf),
    Url { url: String, token: Option<Secret> },
    Index(IndexParts),
}

impl Source {
    fn name(&self) -> String {
        match self {
            Self::Directory(path) => format!("`{}`", path.display()),
            Self::Url { url, .. } => {
                let rest = url.split_once("://").map_or(url.as_str(), |(_, rest)| rest);
                let host = rest.split('/').next().unwrap_or_default();
                format!("`{}`", host.rsplit('@').next().unwrap_or_default())
            }
            Self::Index(_) => "the package index of `pip`".to_owned(),
        }
    }
}

/// Facts about a file.
struct FileFacts {
    sources: Vec<Source>,
    bytes: Option<u64>,
    sha256: Option<String>,
}

/// Returns the path of the weights, after fetching them if they are not here.
///
/// # Errors
/// When no source has them, the disk is too small, or nothing may be fetched.
///
/// # Cancel safety
/// Dropping it stops the download; what came is kept, and the next attempt continues from there.
pub async fn fetch(
    wanted: &WeightsSource,
    store: &Store,
    options: &FetchOptions,
    notices: &dyn Notices,
) -> Result<PathBuf> {
    if let Some(path) = store.find(wanted) {
        return Ok(path);
    }
    let wares = match wanted {
        WeightsSource::File(path) => return Err(no_such_file(path)),
        WeightsSource::Known(model) => known(model, options),
        WeightsSource::Hub { repository, file } => of_hub(repository, file, options),
    };
    if options.offline {
        return Err(offline(wanted));
    }
    let mut problems = Vec::new();
    for source in &wares.sources {
        if let Some(problem) = problems.last() {
            notices.note(&format!("{problem}; trying {}", source.name()));
        }
        let job = Job {
            wanted,
            store,
            wares: &wares,
            options,
            notices,
        };
        match job.fetch_from(source).await {
            Ok(path) => return Ok(path),
            Err(err) => problems.push(format!("{}: {}", source.name(), err.line())),
        }
    }
    Err(nothing_has(wanted, &problems))
}

fn known(model: &CatalogueModel, options: &FetchOptions) -> FileFacts {
    let mut sources = Vec::new();
    if let Some(mirror) = &options.mirror {
        sources.push(match mirror.split_once("://") {
            Some(_) => Source::Url {
                url: format!("{}/{}", mirror.trim_end_matches('/'), model.file),
                token: None,
            },
            None => Source::Directory(PathBuf::from(mirror)),
        });
    }
    if let Some(repository) = &model.repository {
        sources.push(hub_file(options, repository, &model.revision, &model.file));
    }
    sources.extend(model.index.clone().map(Source::Index));
    FileFacts {
        sources,
        bytes: Some(model.bytes),
        sha256: Some(model.sha256.clone()),
    }
}

fn of_hub(repository: &str, file: &str, options: &FetchOptions) -> FileFacts {
    FileFacts {
        sources: vec![hub_file(options, repository, "main", file)],
        bytes: None,
        sha256: None,
    }
}

fn hub_file(options: &FetchOptions, repository: &str, revision: &str, file: &str) -> Source {
    Source::Url {
        url: format!("{}/{repository}/resolve/{revision}/{file}", options.hub),
        token: options.token.clone(),
    }
}

/// One attempt at one source.
struct Job<'a> {
    wanted: &'a WeightsSource,
    store: &'a Store,
    wares: &'a FileFacts,
    options: &'a FetchOptions,
    notices: &'a dyn Notices,
}

impl Job<'_> {
    async fn fetch_from(&self, source: &Source) -> Result<PathBuf> {
        let target = self.store.place(self.wanted);
        let opening = spawn_blocking(move || PartialDownload::open(&target));
        let mut partial = opening.await.map_err(joined)??;
        // Another process may have been faster.
        if let Some(path) = self.store.find(self.wanted) {
            return Ok(path);
        }
        if let Some(bytes) = self.wares.bytes {
            partial.check_space(bytes)?;
        }
        let label = self.wanted.name();
        let mut progress =
            Progress::start(self.notices, &label, partial.length(), self.wares.bytes);
        match source {
            Source::Directory(directory) => {
                self.copy(directory, &mut partial, &mut progress).await?;
            }
            Source::Url { url, token } => {
                let network = self.options.network.clone();
                let transport = Transport::new(network).map_err(network_failed)?;
                let from = (url.as_str(), token.as_ref());
                self.download(&transport, from, &mut partial, &mut progress)
                    .await?;
            }
            Source::Index(parts) => {
                let python = &self.options.python;
                index::append(&mut partial, parts, python, &mut progress).await?;
            }
        }
        progress.say("checking");
        let sha256 = self.wares.sha256.clone();
        // The disk takes seconds for a gigabyte.
        let finishing = spawn_blocking(move || partial.finish(sha256.as_deref()));
        finishing.await.map_err(joined)?
    }

    /// A file that has another size is another file, so it is not even begun.
    async fn copy(
        &self,
        from: &Path,
        partial: &mut PartialDownload,
        progress: &mut Progress<'_>,
    ) -> Result<()> {
        let WeightsSource::Known(model) = self.wanted else {
            return Ok(());
        };
        let path = from.join(&model.file);
        let read = |err| {
            let context = format!("failed to read `{}`", path.display());
            SetupError::because(SetupErrorKind::Other, context, err)
        };
        let mut file = File::open(&path).map_err(read)?;
        partial.truncate(0)?;
        let mut buffer = vec![0; READ_BYTES];
        loop {
            let count = file.read(&mut buffer).map_err(read)?;
            let Some(bytes) = buffer.get(..count).filter(|bytes| !bytes.is_empty()) else {
                return Ok(());
            };
            partial.append(bytes)?;
            progress.show(partial.length());
            // Other tasks of the thread have their turn.
            yield_now().await;
        }
    }

    async fn download(
        &self,
        transport: &Transport,
        (url, token): (&str, Option<&Secret>),
        partial: &mut PartialDownload,
        progress: &mut Progress<'_>,
    ) -> Result<()> {
        let mut resumes = 0;
        loop {
            let before = partial.length();
            if self.wares.bytes.is_some_and(|bytes| before >= bytes) {
                return Ok(());
            }
            let failure = match stream(transport, url, token, partial, progress).await? {
                Ok(()) => return Ok(()),
                Err(failure) => failure,
            };
            resumes += 1;
            if partial.length() <= before || resumes > RESUMES_MAX {
                return Err(network_failed(failure));
            }
        }
    }
}

/// The inner error is the network's, after which the download can continue.
async fn stream(
    transport: &Transport,
    url: &str,
    token: Option<&Secret>,
    partial: &mut PartialDownload,
    progress: &mut Progress<'_>,
) -> Result<Result<(), DownloadError>> {
    let mut coming = match download(transport, url, token, partial.length()).await {
        Ok(coming) => coming,
        Err(err) => return Ok(Err(err)),
    };
    partial.truncate(coming.offset)?;
    loop {
        match coming.next().await {
            Ok(Some(piece)) => partial.append(&piece)?,
            Ok(None) => return Ok(Ok(())),
            Err(err) => return Ok(Err(err)),
        }
        progress.show(partial.length());
    }
}

fn joined(err: tokio::task::JoinError) -> SetupError {
    SetupError::new(SetupErrorKind::Other, err)
}

fn network_failed(err: impl std::error::Error + Send + Sync + 'static) -> SetupError {
    SetupError::caused(SetupErrorKind::Other, err)
}

fn no_such_file(path: &Path) -> SetupError {
    SetupError::new(
        SetupErrorKind::Input,
        format_args!("there is no file `{}`", path.display()),
    )
}

fn offline(wanted: &WeightsSource) -> SetupError {
    let name = wanted.name();
    SetupError::new(
        SetupErrorKind::Config,
        format_args!(
            "the weights of `local/{name}` are not downloaded, and downloads are disabled"
        ),
    )
    .hint(format!(
        "run `rondo models pull {name}` once without `--offline`, or set `RONDO_MODEL_PATH`"
    ))
}

fn nothing_has(wanted: &WeightsSource, problems: &[String]) -> SetupError {
    let bytes = match wanted {
        WeightsSource::Known(model) => format!(" ({})", size(model.bytes)),
        WeightsSource::File(_) | WeightsSource::Hub { .. } => String::new(),
    };
    SetupError::new(
        SetupErrorKind::Other,
        format_args!(
            "failed to fetch the weights of `local/{}`{bytes}: {}",
            wanted.name(),
            problems.join("; ")
        ),
    )
    .hint(
        "try again (the partial download is kept); or set `RONDO_MODEL_MIRROR` to a URL or directory that has \
         the file, or `RONDO_MODEL_PATH` to a GGUF file; or set a provider's key, such as \
         `OPENAI_API_KEY`",
    )
}
