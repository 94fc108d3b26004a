//! `rondo models`: lists, downloads and removes weights of models that run in this process.

use super::report::{current_dir, write_failed};
use crate::cli::{ModelsArgs, ModelsCommand};
use crate::error::{CliError, Result};
use crate::executor;
use crate::exit::Exit;
use crate::output::Output;
use rondo_runtime::Layer;
use rondo_runtime::env::Env;
use rondo_runtime::settings::Settings;
use rondo_runtime::weights::{
    CatalogueModel, FetchOptions, Store, WeightsSource, catalogue, fetch,
};
use rondo_types::units::size;
use std::fmt::Write as _;
use std::path::Path;

/// Prefix of a local model's name wherever any model may be named.
const PREFIX: &str = "local/";

/// Runs the command.
pub(super) fn run(args: &ModelsArgs, env: Env, output: &Output) -> Result<Exit> {
    let flags = Layer {
        offline: args.offline.then_some(true),
        ..Layer::default()
    };
    let settings = Settings::load(env, current_dir()?, flags, output)?;
    let store = Store::of(&settings);
    let text = match &args.command {
        ModelsCommand::List => list(&store)?,
        ModelsCommand::Pull { model } => {
            let path = pull(&wanted(model.as_deref())?, &store, &settings, output)?;
            format!("{}\n", path.display())
        }
        ModelsCommand::Rm { model } => remove(&wanted(Some(model))?, &store)?,
        ModelsCommand::Path { model } => {
            let wanted = wanted(model.as_deref())?;
            let path = store.find(&wanted).ok_or_else(|| not_here(&wanted))?;
            format!("{}\n", path.display())
        }
        ModelsCommand::Info { model } => info(&wanted(model.as_deref())?, &store)?,
    };
    output.words(&text).map_err(write_failed)?;
    Ok(Exit::Answer)
}

fn wanted(name: Option<&str>) -> Result<WeightsSource> {
    let Some(name) = name else {
        let first = catalogue()?.into_iter().next();
        return first
            .map(|model| WeightsSource::Known(Box::new(model)))
            .ok_or_else(|| CliError::new(Exit::Error, "the table of local models is empty"));
    };
    let name = name.strip_prefix(PREFIX).unwrap_or(name);
    WeightsSource::parse(name)?.ok_or_else(|| {
        CliError::new(Exit::Usage, format_args!("there is no local model `{name}`")).hint(
            "`rondo models list` lists the known models; name any other by its GGUF file, or as `hf:owner/repository/file`",
        )
    })
}

fn list(store: &Store) -> Result<String> {
    let models = catalogue()?;
    let width = models.iter().map(|model| model.name.len()).max();
    let width = width.unwrap_or_default() + PREFIX.len();
    let mut text = String::new();
    for model in &models {
        let name = format!("{PREFIX}{}", model.name);
        let here = match store.find(&WeightsSource::Known(Box::new(model.clone()))) {
            Some(_) => "here",
            None => "-",
        };
        let _ = writeln!(
            text,
            "{name:width$}  {:>8}  {:4}  {}",
            size(model.bytes),
            here,
            model.summary
        );
    }
    Ok(text)
}

fn pull(
    wanted: &WeightsSource,
    store: &Store,
    settings: &Settings,
    output: &Output,
) -> Result<std::path::PathBuf> {
    let runtime = executor::of_this_thread()?;
    let options = FetchOptions::of(settings);
    let fetched = runtime.block_on(fetch(wanted, store, &options, output));
    runtime.shutdown_background();
    Ok(fetched?)
}

fn remove(wanted: &WeightsSource, store: &Store) -> Result<String> {
    if matches!(wanted, WeightsSource::File(_)) {
        let message = "only weights that Rondo fetched are removed, not files of your own";
        return Err(CliError::new(Exit::Usage, message));
    }
    let path = store.place(wanted);
    let freed = path.metadata().map(|it| it.len());
    // The files of an interrupted download go too.
    for suffix in ["part", "pieces", "lock"] {
        let mut beside = path.clone().into_os_string();
        beside.push(format!(".{suffix}"));
        let _ = std::fs::remove_file(Path::new(&beside));
    }
    match (std::fs::remove_file(&path), freed) {
        (Ok(()), Ok(freed)) => Ok(format!("removed {}, {}\n", path.display(), size(freed))),
        _ => Err(not_here(wanted)),
    }
}

fn info(wanted: &WeightsSource, store: &Store) -> Result<String> {
    let mut text = format!("name      {PREFIX}{}\n", wanted.name());
    if let WeightsSource::Known(model) = wanted {
        known_info(&mut text, model);
    }
    match store.find(wanted) {
        Some(path) => {
            let _ = writeln!(text, "file      {}", path.display());
        }
        None => text.push_str("file      not downloaded\n"),
    }
    Ok(text)
}

fn known_info(text: &mut String, model: &CatalogueModel) {
    let _ = writeln!(text, "use       {}", model.summary);
    if let Some(repository) = &model.repository {
        let _ = writeln!(text, "from      {repository} at {}", model.revision);
    }
    if let Some(index) = &model.index {
        let _ = writeln!(text, "or from   {}, {} wheels", index.package, index.parts);
    }
    let _ = writeln!(
        text,
        "size      {} ({} bytes)",
        size(model.bytes),
        model.bytes
    );
    let _ = writeln!(text, "sha256    {}", model.sha256);
    let _ = writeln!(text, "licence   {}", model.licence);
    let _ = writeln!(text, "context   {} tokens", model.context_tokens);
    let _ = writeln!(text, "template  {}", model.template);
}

fn not_here(wanted: &WeightsSource) -> CliError {
    let name = wanted.name();
    CliError::new(
        Exit::Input,
        format_args!("the weights of `{PREFIX}{name}` are not downloaded"),
    )
    .hint(format!("fetch them with `rondo models pull {name}`"))
}
