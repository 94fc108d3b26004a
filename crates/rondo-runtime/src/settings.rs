//! The effective settings: flags override the environment, then the project's file, then the user's, then the
//! defaults.

use crate::env::Env;
use crate::error::{Result, SetupError};
use crate::known_files::KnownFiles;
use crate::mcp::{Looking, McpSetup};
use crate::notices::Notices;
use crate::paths::Paths;
use crate::policy;
use crate::review::Review;
use crate::sandboxed;
use crate::secrets;
use crate::table::Layer;
use crate::trust::{Project, read_project};
use crate::trust_question::TrustAnswers;
use rondo_policy::rules::Rules;
use rondo_types::Question;
use std::ops::{Deref, DerefMut};
use std::path::PathBuf;
use std::sync::Arc;

/// The profile when none is named.
pub const DEFAULT_PROFILE: &str = "default";
/// The layer of the command line.
const FLAGS: &str = "flags";

/// The effective settings, and the layers that they come from.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The effective values.
    pub values: Values,
    /// The layers, lowest first; shared by all copies.
    pub sources: Arc<[Source]>,
    /// The environment.
    pub env: Env,
    /// Rondo's directories.
    pub paths: Paths,
    /// The working directory.
    pub directory: PathBuf,
    /// The rules of calls.
    pub rules: Rules,
    /// The servers of the Model Context Protocol.
    pub mcp: McpSetup,
    /// Open questions about the directory; the parts in question are not used.
    pub folder_questions: Vec<Question>,
}

/// Effective values, which copies share until one of them is changed.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Values(Arc<Layer>);

impl From<Layer> for Values {
    fn from(values: Layer) -> Self {
        Self(values.into())
    }
}

impl Deref for Values {
    type Target = Layer;

    fn deref(&self) -> &Layer {
        &self.0
    }
}

impl DerefMut for Values {
    fn deref_mut(&mut self) -> &mut Layer {
        Arc::make_mut(&mut self.0)
    }
}

/// One layer and its name.
#[derive(Debug, Clone, PartialEq)]
pub struct Source {
    /// The name as it is displayed.
    pub name: String,
    /// The settings of the layer.
    pub layer: Layer,
    /// Set if it is trusted. The numbers of an untrusted layer apply only if they are lower than those of the
    /// layers below.
    pub is_trusted: bool,
    /// Set if it is the project's, not the user's.
    pub is_of_project: bool,
}

impl Settings {
    /// Reads and merges all layers.
    ///
    /// # Errors
    /// When a file or a variable is malformed, or there is no home directory.
    pub fn load(env: Env, directory: PathBuf, flags: Layer, notices: &dyn Notices) -> Result<Self> {
        Self::load_around(env, directory, flags, notices, &mut Err)
    }

    /// Like [`load`](Self::load), with questions about the folder answered from these answers, and without reading files that are
    /// known.
    ///
    /// # Errors
    /// As [`load`](Self::load).
    pub(crate) fn load_with(
        answers: &TrustAnswers,
        files: &KnownFiles,
        env: Env,
        directory: PathBuf,
        flags: Layer,
        notices: &dyn Notices,
    ) -> Result<Self> {
        Self::read((answers, files), (env, directory, flags), notices, &mut Err)
    }

    /// Like [`load`](Self::load), but `broken` gets the error of each malformed layer: if it returns `Ok`, the
    /// layer is skipped.
    ///
    /// # Errors
    /// Those that `broken` returns, and when there is no home directory.
    pub fn load_around(
        env: Env,
        directory: PathBuf,
        flags: Layer,
        notices: &dyn Notices,
        broken: &mut dyn FnMut(SetupError) -> Result<()>,
    ) -> Result<Self> {
        let (answers, files) = (TrustAnswers::default(), KnownFiles::default());
        let fresh = (&answers, &files);
        Self::read(fresh, (env, directory, flags), notices, broken)
    }

    fn read(
        (answers, files): (&TrustAnswers, &KnownFiles),
        (env, directory, flags): (Env, PathBuf, Layer),
        notices: &dyn Notices,
        broken: &mut dyn FnMut(SetupError) -> Result<()>,
    ) -> Result<Self> {
        let paths = Paths::find(&env)?;
        let user_file = paths.user_config();
        let user = sound(Layer::read(&user_file, files), broken)?;
        // What must be reviewed may be another's work, even where it only restricts.
        // Once for all that is read below.
        let real = directory.canonicalize().ok();
        let real = real.as_deref();
        let is_reviewed = Review::of_directory(&paths, &directory, real).is_done(answers)?;
        let project = match is_reviewed {
            true => {
                let project = read_project(&directory, &user, &paths, files, (answers, notices));
                sound(project, broken)?
            }
            false => None,
        };
        let rules = policy::load(
            (&directory, real),
            is_reviewed,
            &user,
            &paths,
            &env,
            (files, notices),
        );
        let rules = sound(rules, broken)?;
        let environment = sound(Layer::from_env(&env), broken)?;
        let mut sources = vec![Source::new(user_file.display().to_string(), user.clone())];
        sources.extend(project.map(Source::of_project));
        sources.push(Source::new("environment".to_owned(), environment));
        sources.push(Source::new(FLAGS.to_owned(), flags));
        for source in &mut sources {
            if let Err(error) = source.layer.check(&source.name) {
                broken(error)?;
                source.layer = Layer::default();
            }
        }
        let mut values = merge(&sources);
        let flags = sources.last().map(|it| &it.layer);
        let flags = flags.unwrap_or(&user);
        if let Some(layer) = sandboxed::layer(&directory, (&user, flags), &values, &env) {
            sources.insert(1, Source::new(sandboxed::SOURCE.to_owned(), layer));
            values = merge(&sources);
        }
        let mcp = sound(
            McpSetup::load(&Looking {
                directory: &directory,
                real,
                is_reviewed,
                sources: &sources,
                user: &user,
                env: &env,
                paths: &paths,
                answers,
                files,
            }),
            broken,
        )?;
        let mut settings = Self {
            values: values.into(),
            sources: sources.into(),
            env,
            paths,
            directory,
            rules,
            mcp,
            folder_questions: Vec::new(),
        };
        settings.folder_questions = answers.unanswered();
        if !settings.folder_questions.is_empty() {
            let secrets = secrets::of_env(&settings);
            for question in &mut settings.folder_questions {
                question.prompt = secrets.text(std::mem::take(&mut question.prompt));
            }
        }
        Ok(settings)
    }

    /// Returns the source of a setting's effective value; `None` if no layer sets it.
    pub fn source_of(&self, name: &str) -> Option<&str> {
        let (mut values, mut found) = (Layer::default(), None);
        for source in self.sources.iter() {
            let mut layer = source.layer.clone();
            if !source.is_trusted {
                layer.keep_lower(&values);
            }
            if layer.get(name).is_some() {
                found = Some(source.name.as_str());
            }
            layer.over(&mut values);
        }
        found
    }

    /// Returns whether the command line names the model.
    pub fn names_model(&self) -> bool {
        self.flags().is_some_and(|flags| flags.model.is_some())
    }

    /// Returns whether the command line names the address.
    pub fn names_address(&self) -> bool {
        self.flags().is_some_and(|flags| flags.base_url.is_some())
    }

    /// Returns whether the user's own file sets the effective value of a setting.
    pub(crate) fn is_user_setting(&self, name: &str) -> bool {
        let user_file = self.paths.user_config().display().to_string();
        self.source_of(name) == Some(user_file.as_str())
    }

    pub(crate) fn flags(&self) -> Option<&Layer> {
        let flags = self.sources.iter().find(|source| source.name == FLAGS);
        flags.map(|source| &source.layer)
    }

    /// Returns the name of the effective profile.
    pub fn profile_name(&self) -> &str {
        self.values.profile.as_deref().unwrap_or(DEFAULT_PROFILE)
    }
}

impl Source {
    fn new(name: String, layer: Layer) -> Self {
        Self {
            name,
            layer,
            is_trusted: true,
            is_of_project: false,
        }
    }

    fn of_project(project: Project) -> Self {
        let (file, layer, is_trusted) = match project {
            Project::Trusted(file, layer) => (file, layer, true),
            Project::Untrusted(file, layer) => (file, layer, false),
        };
        Self {
            is_trusted,
            is_of_project: true,
            ..Self::new(file.display().to_string(), layer)
        }
    }
}

fn sound<T: Default>(
    layer: Result<T>,
    broken: &mut dyn FnMut(SetupError) -> Result<()>,
) -> Result<T> {
    layer.or_else(|error| broken(error).map(|()| T::default()))
}

fn merge(sources: &[Source]) -> Layer {
    let mut values = Layer::default();
    for source in sources {
        let mut layer = source.layer.clone();
        if !source.is_trusted {
            layer.keep_lower(&values);
        }
        layer.over(&mut values);
    }
    values
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::notices::NoNotices;
    use std::fs;

    struct Folders {
        home: tempfile::TempDir,
        project: tempfile::TempDir,
    }

    impl Folders {
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

        /// Replaces the user's file by one that trusts the project.
        fn trust(&self, user: &str) {
            let trusted = format!("trusted_folders = [{:?}]\n{user}", self.project.path());
            fs::write(self.home.path().join("config.toml"), trusted).unwrap();
        }

        fn load(&self, env: &[(&str, &str)], flags: Layer) -> Settings {
            let home = self.home.path().to_str().unwrap();
            let mut variables = env.to_vec();
            variables.push(("RONDO_HOME", home));
            let directory = self.project.path().to_owned();
            Settings::load(Env::of(&variables), directory, flags, &NoNotices).unwrap()
        }
    }

    #[test]
    fn no_project_says_who_may_reach_the_gateway() {
        let folders = Folders::new(
            "",
            "[hub.users.eve]\nrole = 'owner'\nids = ['telegram:1']\n",
        );
        let own = "[hub.channels.telegram]\ntoken_env = 'T'\n";
        folders.trust(own);
        let settings = folders.load(&[], Layer::default());
        let keys: Vec<_> = settings.values.hub.keys().cloned().collect();
        assert_eq!(keys, ["channels"]);
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
        let scene = Folders::new("", "model = 'project/m'");
        scene.trust("model = 'user/m'\neffort = 'low'");
        let flags = Layer {
            model: Some("flag/m".into()),
            ..Layer::default()
        };
        let model = |env: &[(&str, &str)], flags: Layer| {
            scene.load(env, flags).values.model.clone().unwrap()
        };
        let env = [("RONDO_MODEL", "env/m")];
        assert_eq!(model(&env, flags), "flag/m");
        assert_eq!(model(&env, Layer::default()), "env/m");
        assert_eq!(model(&[], Layer::default()), "project/m");
        let settings = scene.load(&[], Layer::default());
        assert_eq!(settings.values.effort, Some(rondo_types::Effort::Low));
    }

    #[test]
    fn a_project_opens_no_permission_unless_its_folder_is_trusted() {
        let scene = Folders::new("", "yolo = true\nbase_url = 'http://evil'");
        let values = scene.load(&[], Layer::default()).values;
        assert_eq!((values.yolo, &values.base_url), (None, &None));
        scene.trust("");
        assert_eq!(scene.load(&[], Layer::default()).values.yolo, Some(true));
    }

    #[test]
    fn a_project_without_trust_lowers_limits_and_raises_none() {
        let limits = |user: &str, project: &str, profile: &str| {
            let settings = Folders::new(user, project).load(&[], Layer::default());
            let resolved = crate::profiles::resolve(&settings, profile).unwrap();
            let of_profile = resolved.profile.limits;
            (
                settings.values.max_steps,
                of_profile.max_steps,
                of_profile.max_tokens_total,
            )
        };
        let high = "max_steps = 100\nmax_tokens_total = 9000000";
        assert_eq!(
            limits("max_steps = 5", high, "default"),
            (Some(5), 5, Some(2_000_000))
        );
        assert_eq!(limits("", high, "shell").1, 10);
        let low = "max_steps = 3\nmax_tokens_total = 9";
        assert_eq!(
            limits("max_steps = 5", low, "default"),
            (Some(3), 3, Some(9))
        );
    }

    #[test]
    fn only_the_user_says_how_much_memory_a_command_may_use() {
        let scene = Folders::new("command_memory_mib = 512", "command_memory_mib = 999999");
        let memory = |env: &[(&str, &str)]| {
            let settings = scene.load(env, Layer::default());
            settings.values.command_memory_mib
        };
        assert_eq!(memory(&[]), Some(512));
        scene.trust("");
        assert_eq!(memory(&[]), None);
        scene.trust("command_memory_mib = 4096");
        assert_eq!(memory(&[]), Some(4096));
        assert_eq!(memory(&[("RONDO_COMMAND_MEMORY_MIB", "8192")]), Some(8192));
    }

    #[test]
    fn a_link_to_the_configuration_of_a_trusted_folder_lends_no_trust() {
        let scene = Folders::new("", "yolo = true");
        let clone = tempfile::tempdir_in(scene.project.path().parent().unwrap()).unwrap();
        let own = scene.project.path().join(".rondo");
        std::os::unix::fs::symlink(own, clone.path().join(".rondo")).unwrap();
        scene.trust("");
        let home = scene.home.path().to_str().unwrap();
        let settings = Settings::load(
            Env::of(&[("RONDO_HOME", home)]),
            clone.path().to_owned(),
            Layer::default(),
            &NoNotices,
        );
        assert_eq!(settings.unwrap().values.yolo, None);
    }

    #[test]
    fn every_layer_adds_to_what_is_forbidden() {
        let scene = Folders::new("disallowed_tools = ['a']", "disallowed_tools = ['b']");
        let values = scene
            .load(&[("RONDO_DISALLOWED_TOOLS", "c")], Layer::default())
            .values;
        assert_eq!(values.disallowed_tools.clone().unwrap(), ["a", "b", "c"]);
    }
}
