//! What is in force: flags over environment over project over user over default.

use crate::cli::AskArgs;
use crate::config::Layer;
use crate::env::Env;
use crate::error::Result;
use crate::output::Output;
use crate::paths::{Paths, project_config, project_root};
use crate::profiles;
use crate::python::LivePython;
use crate::request_limits::RequestLimits;
use rondo_exec::Workdir;
use std::path::{Path, PathBuf};

/// What each layer sets, lowest first, and what follows from all of them together.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    /// The effective values.
    pub(crate) values: Layer,
    /// What each source sets in a profile, lowest first.
    pub(crate) sources: Vec<Source>,
    /// The environment.
    pub(crate) env: Env,
    /// Rondo's directories.
    pub(crate) paths: Paths,
    /// The working directory.
    pub(crate) directory: PathBuf,
    /// How many requests each provider takes at once, counted over the whole process.
    pub(crate) request_limits: RequestLimits,
    /// Where the user's shell is, if they work in one.
    pub(crate) workdir: Option<Workdir>,
    /// The live Python session, one for the whole process.
    pub(crate) python: LivePython,
}

/// One layer and its name.
#[derive(Debug, Clone)]
pub(crate) struct Source {
    /// As it is shown to people.
    pub(crate) name: String,
    /// What it sets.
    pub(crate) layer: Layer,
}

impl Settings {
    /// Reads every layer and puts them together.
    ///
    /// # Errors
    /// When a file or a variable does not say what it should, or there is no home directory.
    pub(crate) fn load(
        env: Env,
        directory: PathBuf,
        args: &AskArgs,
        output: &Output,
    ) -> Result<Self> {
        let paths = Paths::find(&env)?;
        let user_file = paths.user_config();
        let user = Layer::from_file(&user_file)?;
        let project = read_project(&directory, &user, output)?;
        let environment = Layer::from_env(&env)?;
        let mut sources = vec![Source::new(user_file.display().to_string(), user)];
        sources.extend(project);
        sources.push(Source::new("environment".to_owned(), environment));
        sources.push(Source::new("flags".to_owned(), Layer::from_flags(args)));
        for source in &sources {
            source.layer.check(&source.name)?;
        }
        let values = merge(&sources);
        Ok(Self {
            values,
            sources,
            env,
            paths,
            directory,
            request_limits: RequestLimits::default(),
            workdir: None,
            python: LivePython::default(),
        })
    }

    /// Returns the name of the profile in force.
    pub(crate) fn profile_name(&self) -> &str {
        self.values.profile.as_deref().unwrap_or(profiles::DEFAULT)
    }
}

impl Source {
    fn new(name: String, layer: Layer) -> Self {
        Self { name, layer }
    }
}

fn read_project(directory: &Path, user: &Layer, output: &Output) -> Result<Option<Source>> {
    let Some(file) = project_config(directory) else {
        return Ok(None);
    };
    let mut layer = Layer::from_file(&file)?;
    layer.trusted_folders = None;
    if !is_trusted(&file, user) {
        let removed = layer.remove_unsafe();
        if !removed.is_empty() {
            output.note(&format!(
                "`{}` is not trusted, so its {} is ignored; add its folder to `trusted_folders` in your own configuration to honour it",
                file.display(),
                names(&removed),
            ));
        }
    }
    Ok(Some(Source::new(file.display().to_string(), layer)))
}

/// Compares real paths, so that neither a link nor a relative spelling passes for a trusted folder.
fn is_trusted(file: &Path, user: &Layer) -> bool {
    let Some(root) = file.canonicalize().ok() else {
        return false;
    };
    let Some(root) = project_root(&root) else {
        return false;
    };
    let trusted = user.trusted_folders.iter().flatten();
    trusted
        .filter(|folder| folder.is_absolute())
        .filter_map(|folder| folder.canonicalize().ok())
        .any(|folder| root.starts_with(folder))
}

fn names(list: &[&str]) -> String {
    list.iter()
        .map(|name| format!("`{name}`"))
        .collect::<Vec<_>>()
        .join(", ")
}

fn merge(sources: &[Source]) -> Layer {
    let mut values = Layer::default();
    for Source { layer, .. } in sources {
        macro_rules! override_with {
            ($($field:ident),*) => {$(
                if layer.$field.is_some() {
                    values.$field.clone_from(&layer.$field);
                }
            )*};
        }
        override_with!(
            model,
            fallbacks,
            profile,
            base_url,
            max_steps,
            max_tool_calls,
            max_tokens_total,
            max_budget_usd,
            deadline,
            allowed_tools,
            yolo,
            offline,
            add_dirs,
            system_prompt,
            append_system_prompt,
            temperature,
            max_output_tokens,
            effort,
            output_format,
            durability,
            ephemeral,
            strict_complete,
            quiet,
            color,
            edit_keys,
            ca_file
        );
        if let Some(names) = &layer.disallowed_tools {
            let all = values.disallowed_tools.get_or_insert_default();
            all.extend(names.iter().cloned());
        }
        for (name, own) in layer.providers.clone() {
            let below = values.providers.remove(&name).unwrap_or_default();
            values.providers.insert(name, own.or(below));
        }
        for (name, own) in layer.models.clone() {
            let below = values.models.remove(&name).unwrap_or_default();
            values.models.insert(name, own.or(below));
        }
    }
    values
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::TurnArgs;
    use std::fs;

    struct Scene {
        home: tempfile::TempDir,
        project: tempfile::TempDir,
    }

    impl Scene {
        fn new(user: &str, project: &str) -> Self {
            let scene = Self {
                home: tempfile::tempdir().unwrap(),
                project: tempfile::tempdir().unwrap(),
            };
            fs::write(scene.home.path().join("config.toml"), user).unwrap();
            fs::create_dir(scene.project.path().join(".rondo")).unwrap();
            fs::write(scene.project.path().join(".rondo/config.toml"), project).unwrap();
            scene
        }

        fn load(&self, env: &[(&str, &str)], args: &AskArgs) -> Settings {
            let home = self.home.path().to_str().unwrap();
            let mut variables = env.to_vec();
            variables.push(("RONDO_HOME", home));
            let directory = self.project.path().to_owned();
            Settings::load(Env::of(&variables), directory, args, &Output::silent()).unwrap()
        }
    }

    #[test]
    fn a_later_layer_changes_only_the_fields_it_has() {
        let table = |text: &str| toml::from_str::<Layer>(text).unwrap();
        let user = table(
            "[providers.own]\nbase_url = 'http://127.0.0.1:1/v1'\ndialect = 'openai-chat'\n[models.'own/m']\ncontext_tokens = 10\ninput_usd = 1.0",
        );
        let project =
            table("[providers.own]\nkeyless = true\n[models.'own/m']\ncontext_tokens = 20");
        let sources = [
            Source::new("user".into(), user),
            Source::new("project".into(), project),
        ];
        let values = merge(&sources);
        let provider = &values.providers["own"];
        assert_eq!(provider.keyless, Some(true));
        assert_eq!(provider.base_url.as_deref(), Some("http://127.0.0.1:1/v1"));
        let model = &values.models["own/m"];
        assert_eq!(
            (model.context_tokens, model.input_usd),
            (Some(20), Some(1.0))
        );
    }

    #[test]
    fn flags_win_over_environment_over_project_over_user() {
        let scene = Scene::new("model = 'user/m'\neffort = 'low'", "model = 'project/m'");
        let flags = AskArgs {
            turn: TurnArgs {
                model: Some("flag/m".into()),
                ..TurnArgs::default()
            },
            ..AskArgs::default()
        };
        let model =
            |env: &[(&str, &str)], args: &AskArgs| scene.load(env, args).values.model.unwrap();
        let env = [("RONDO_MODEL", "env/m")];
        assert_eq!(model(&env, &flags), "flag/m");
        assert_eq!(model(&env, &AskArgs::default()), "env/m");
        assert_eq!(model(&[], &AskArgs::default()), "project/m");
        let settings = scene.load(&[], &AskArgs::default());
        assert_eq!(settings.values.effort, Some(rondo_types::Effort::Low));
    }

    #[test]
    fn a_project_opens_no_permission_unless_its_folder_is_trusted() {
        let scene = Scene::new("", "yolo = true\nbase_url = 'http://evil'");
        let values = scene.load(&[], &AskArgs::default()).values;
        assert_eq!((values.yolo, values.base_url), (None, None));
        let trusted = format!("trusted_folders = [{:?}]", scene.project.path());
        fs::write(scene.home.path().join("config.toml"), trusted).unwrap();
        assert_eq!(scene.load(&[], &AskArgs::default()).values.yolo, Some(true));
    }

    #[test]
    fn every_layer_adds_to_what_is_forbidden() {
        let scene = Scene::new("disallowed_tools = ['a']", "disallowed_tools = ['b']");
        let values = scene
            .load(&[("RONDO_DISALLOWED_TOOLS", "c")], &AskArgs::default())
            .values;
        assert_eq!(values.disallowed_tools.unwrap(), ["a", "b", "c"]);
    }
}
