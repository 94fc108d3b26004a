//! The variables of the user that a command in the sandbox gets.
//!
//! Everything else stays outside: a variable may hold a key whatever its name is, and what a command reads can leave with the
//! model's next request.

use crate::toolchains;

/// Variables of the shell, of the terminal, and of compilers.
const NAMES: [&str; 75] = [
    "AR",
    "ARCH",
    "AS",
    "BROWSER",
    "BUILDKIT_PROGRESS",
    "CC",
    "CFLAGS",
    "CI",
    "CLICOLOR",
    "CLICOLOR_FORCE",
    "COLORTERM",
    "COLUMNS",
    "CPATH",
    "CPP",
    "CPPFLAGS",
    "CXX",
    "CXXFLAGS",
    "DEBUG",
    "DESTDIR",
    "DJANGO_SETTINGS_MODULE",
    "DYLD_LIBRARY_PATH",
    "EDITOR",
    "EMAIL",
    "FC",
    "FFLAGS",
    "FLASK_APP",
    "FORCE_COLOR",
    "GO111MODULE",
    "GOAMD64",
    "GOARCH",
    "GOARM",
    "GOARM64",
    "GOBIN",
    "GODEBUG",
    "GOENV",
    "GOEXPERIMENT",
    "GOFLAGS",
    "GOGC",
    "GOMAXPROCS",
    "GOMEMLIMIT",
    "GOOS",
    "GOPATH",
    "GOTOOLCHAIN",
    "GOWORK",
    "HOME",
    "HOSTNAME",
    "LANG",
    "LD",
    "LDFLAGS",
    "LDLIBS",
    "LIBRARY_PATH",
    "LINES",
    "LOGNAME",
    "LS_COLORS",
    "M2_HOME",
    "MAKEFLAGS",
    "MAKELEVEL",
    "NM",
    "NO_COLOR",
    "OLDPWD",
    "PATH",
    "PREFIX",
    "PWD",
    "RANLIB",
    "SHELL",
    "SHLVL",
    "SOURCE_DATE_EPOCH",
    "STRIP",
    "TERM",
    "TERM_PROGRAM",
    "TZ",
    "USER",
    "VERBOSE",
    "VISUAL",
    "XTERM_VERSION",
];
/// Beginnings of names: of a language, a build system or a package manager.
const PREFIXES: [&str; 68] = [
    "ANDROID_",
    "ASDF_",
    "BAZEL",
    "BUNDLE_",
    "BUN_",
    "CABAL_",
    "CARGO",
    "CCACHE_",
    "CGO_",
    "CMAKE_",
    "COMPOSER_",
    "CONDA_",
    "COREPACK_",
    "CTEST_",
    "DENO_",
    "DOTNET_",
    "FNM_",
    "GEM_",
    "GHC",
    "GIT_",
    "GOENV_",
    "GRADLE_",
    "HATCH_",
    "HOMEBREW_",
    "JAVA_",
    "JDK_",
    "JULIA",
    "LC_",
    "LD_LIBRARY_",
    "LUA",
    "MAMBA_",
    "MAVEN_",
    "MESON_",
    "MISE_",
    "MSBUILD",
    "MYPY",
    "NINJA_",
    "NIX_",
    "NODENV_",
    "NODE_",
    "NPM_CONFIG_",
    "NUGET_",
    "NVM_",
    "OCAML",
    "OPAM",
    "PERL",
    "PHP_",
    "PIP",
    "PKG_CONFIG",
    "PNPM_",
    "POETRY_",
    "PRE_COMMIT",
    "PYENV_",
    "PYTEST_",
    "PYTHON",
    "RBENV_",
    "RUBY",
    "RUFF_",
    "RUST",
    "SBT_",
    "SDKMAN_",
    "STACK_",
    "SWIFT_",
    "TOX_",
    "UV_",
    "VOLTA_",
    "XDG_",
    "YARN_",
];
/// Ends of names of variables that say where something is, which edition of a program runs, or what it writes to its log.
const SUFFIXES: [&str; 8] = [
    "_DIR",
    "_ENV",
    "_HOME",
    "_LOG",
    "_LOG_LEVEL",
    "_PATH",
    "_ROOT",
    "_VERSION",
];
/// Beginnings of names that are not passed although they begin or end as others do: those by which `git` gets the headers and
/// keys of its requests, and one of a directory that the sandbox hides.
const NEVER: [&str; 5] = [
    "GIT_CONFIG_COUNT",
    "GIT_CONFIG_KEY_",
    "GIT_CONFIG_PARAMETERS",
    "GIT_CONFIG_VALUE_",
    "XDG_RUNTIME_DIR",
];

/// Returns whether a command in the sandbox gets the variable `name` of the user, unless that looks like a secret.
///
/// These are variables of the shell and the terminal, of compilers, languages and package managers, and those whose names say
/// that they hold a place, an edition or a level of a log. The case of letters does not count.
#[must_use]
pub fn passes_variable(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    let begins = |beginnings: &[&str]| beginnings.iter().any(|it| name.starts_with(it));
    if begins(&NEVER) {
        return false;
    }
    NAMES.binary_search(&name.as_str()).is_ok()
        || begins(&PREFIXES)
        || SUFFIXES.iter().any(|it| name.ends_with(it))
        || toolchains::names_one(&name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_gets_what_shells_terminals_compilers_and_package_managers_go_by() {
        for name in [
            "PATH",
            "HOME",
            "LC_CTYPE",
            "TERM",
            "CFLAGS",
            "CARGO_TARGET_DIR",
            "RUSTFLAGS",
            "RUST_LOG",
            "NODE_ENV",
            "npm_config_registry",
            "PYTHONPATH",
            "VIRTUAL_ENV",
            "GIT_AUTHOR_NAME",
            "GIT_CONFIG_GLOBAL",
            "XDG_CONFIG_HOME",
            "JAVA_HOME",
            "GOFLAGS",
            "GOMODCACHE",
            "RAILS_ENV",
            "NUGET_PACKAGES",
            "LD_LIBRARY_PATH",
        ] {
            assert!(passes_variable(name), "{name}");
        }
    }

    #[test]
    fn a_variable_of_anything_else_stays_outside() {
        for name in [
            "DATABASE_URL",
            "COMPANY_INTERNAL",
            "AWS_PROFILE",
            "GOOGLE_CLOUD_PROJECT",
            "SSH_AUTH_SOCK",
            "DBUS_SESSION_BUS_ADDRESS",
            "GIT_CONFIG_COUNT",
            "GIT_CONFIG_VALUE_0",
            "DIRENV_DIFF",
            "HISTFILE",
            "KUBECONFIG",
            "DOCKER_HOST",
            "PS1",
            // The sandbox has directories of its own for temporary files.
            "TMPDIR",
            "XDG_RUNTIME_DIR",
            "",
        ] {
            assert!(!passes_variable(name), "{name}");
        }
    }

    #[test]
    fn names_are_in_order() {
        assert!(NAMES.is_sorted());
    }
}
