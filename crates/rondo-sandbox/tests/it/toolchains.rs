//! Programs of toolchains in a home directory find their files, and open nothing else.

use crate::place::{self, Place};
use rondo_sandbox::{Enforcement, SandboxMode};

/// Makes programs that print a file, without which they fail: `program NAME FILE`.
const PROGRAM: &str = r#"
    program() {
        mkdir -p "$(dirname "$1")" "$(dirname "$2")"; echo works > "$2"
        printf '#!/bin/sh\nexec cat "%s"\n' "$HOME/$2" > "$1"; chmod +x "$1"
    }
"#;

/// How a toolchain lies in a home directory.
#[derive(Clone, Copy)]
struct Layout {
    name: &'static str,
    set_up: &'static str,
    /// Below the home directory.
    search_path: &'static [&'static str],
    /// A variable, and what it names below the home directory.
    variable: Option<(&'static str, &'static str)>,
    command: &'static str,
}

const fn layout(
    name: &'static str,
    set_up: &'static str,
    search_path: &'static [&'static str],
    command: &'static str,
) -> Layout {
    Layout {
        name,
        set_up,
        search_path,
        variable: None,
        command,
    }
}

const fn with_variable(variable: (&'static str, &'static str), layout: Layout) -> Layout {
    Layout {
        variable: Some(variable),
        ..layout
    }
}

const LAYOUTS: [Layout; 37] = [
    layout(
        "conda",
        "program work/conda/bin/python3 work/conda/lib/python3.12/os.py; mkdir work/conda/conda-meta work/conda/envs",
        &["work/conda/bin"],
        "python3",
    ),
    layout(
        "conda by its directory of links",
        "program conda/bin/python conda/lib/python3.12/os.py; mkdir conda/conda-meta conda/condabin
         printf '#!%s/conda/bin/python\\n' $HOME > conda/condabin/conda; chmod +x conda/condabin/conda",
        &["conda/condabin"],
        "test -x ~/conda/bin/python && ~/conda/bin/python",
    ),
    layout("micromamba", "program micromamba/envs/a/bin/python3 micromamba/envs/a/lib/os.py", &[], "~/micromamba/envs/a/bin/python3"),
    layout(
        "pyenv in another place",
        "program tools/pyenv/versions/3.12/bin/python3 tools/pyenv/versions/3.12/lib/os.py
         mkdir tools/pyenv/shims tools/pyenv/libexec; ln -s ../versions/3.12/bin/python3 tools/pyenv/libexec/pyenv
         printf '#!/bin/sh\\nexec ~/tools/pyenv/libexec/pyenv\\n' > tools/pyenv/shims/python3; chmod +x tools/pyenv/shims/python3",
        &["tools/pyenv/shims"],
        "python3",
    ),
    layout(
        "rbenv",
        "program .rbenv/libexec/rbenv .rbenv/versions/3.3/lib/ruby; mkdir .rbenv/shims
         printf '#!/bin/sh\\nexec ~/.rbenv/libexec/rbenv\\n' > .rbenv/shims/ruby; chmod +x .rbenv/shims/ruby",
        &[".rbenv/shims"],
        "ruby",
    ),
    layout(
        "fnm",
        "program .local/share/fnm/node-versions/v20/installation/lib/node_modules/npm/bin/npm-cli.js f/a
         mv f .local/share/fnm/f; sed -i s,/f/a,/.local/share/fnm/f/a, .local/share/fnm/node-versions/v20/installation/lib/node_modules/npm/bin/npm-cli.js
         mkdir -p .local/share/fnm/node-versions/v20/installation/bin .local/state/fnm_multishells
         ln -s ../lib/node_modules/npm/bin/npm-cli.js .local/share/fnm/node-versions/v20/installation/bin/npm
         ln -s ../../share/fnm/node-versions/v20/installation .local/state/fnm_multishells/1_1",
        &[".local/state/fnm_multishells/1_1/bin"],
        "npm && test -e ~/.local/state/fnm_multishells/1_1/lib/node_modules",
    ),
    with_variable(
        ("NVM_DIR", "tools/nvm"),
        layout(
            "nvm",
            "program tools/nvm/versions/node/v20/lib/node_modules/npm/bin/npm-cli.js tools/nvm/alias/default
             mkdir tools/nvm/versions/node/v20/bin; ln -s ../lib/node_modules/npm/bin/npm-cli.js tools/nvm/versions/node/v20/bin/npm",
            &["tools/nvm/versions/node/v20/bin"],
            "npm",
        ),
    ),
    layout("volta", "program .volta/bin/node .volta/tools/image/node/20/lib", &[".volta/bin"], "node"),
    layout(
        "bun",
        "program .bun/install/global/node_modules/x/x.js .bun/install/global/node_modules/y/y.js
         mkdir .bun/bin; ln -s ../install/global/node_modules/x/x.js .bun/bin/x",
        &[".bun/bin"],
        "x",
    ),
    layout("deno", "program .deno/bin/deno .cache/deno/dep", &[".deno/bin"], "deno"),
    layout(
        "sdkman",
        "program .sdkman/candidates/java/21/bin/java .sdkman/candidates/java/21/conf/a
         ln -s 21 .sdkman/candidates/java/current",
        &[".sdkman/candidates/java/current/bin"],
        "java",
    ),
    layout(
        "a JDK in another place, by a link",
        "program apps/jdk/bin/java apps/jdk/conf/a; touch apps/jdk/release; mkdir bin; ln -s ../apps/jdk/bin/java bin/java",
        &["bin"],
        "java",
    ),
    layout(
        "ghcup",
        "program .ghcup/ghc/9.4/bin/ghc .ghcup/ghc/9.4/lib/a; mkdir .ghcup/bin; ln -s ../ghc/9.4/bin/ghc .ghcup/bin/ghc-9.4
         ln -s ghc-9.4 .ghcup/bin/ghc",
        &[".ghcup/bin"],
        "ghc",
    ),
    with_variable(
        ("DOTNET_ROOT", "apps/dotnet"),
        layout("dotnet", "program apps/dotnet/dotnet apps/dotnet/shared/a", &["apps/dotnet"], "dotnet"),
    ),
    layout(
        "dotnet beside its keys",
        "program .dotnet/dotnet .dotnet/shared/a; mkdir -p .dotnet/corefx; touch .dotnet/corefx/a",
        &[".dotnet"],
        "~/.dotnet/dotnet && ! cat ~/.dotnet/corefx/a",
    ),
    layout("tools of dotnet", "program .dotnet/tools/x .dotnet/tools/.store/x", &[".dotnet/tools"], "x"),
    layout(
        "Homebrew",
        "program homebrew/Cellar/x/1/bin/x homebrew/Cellar/y/2/lib/y; mkdir homebrew/bin; ln -s ../Cellar/x/1/bin/x homebrew/bin/x",
        &["homebrew/bin"],
        "x",
    ),
    layout(
        "nix",
        "program store/profile/bin/x store/profile/lib/a; ln -s store/profile .nix-profile",
        &[".nix-profile/bin"],
        "x",
    ),
    layout("mise", "program .local/share/mise/shims/node .local/share/mise/installs/node/20/lib", &[".local/share/mise/shims"], "node"),
    layout("asdf", "program tools/asdf/shims/node tools/asdf/installs/nodejs/20/lib", &["tools/asdf/shims"], "node"),
    layout(
        "poetry",
        "program python/bin/python3 python/lib/os.py; mkdir -p .local/share/pypoetry/venv/bin .local/bin
         ln -s ~/python/bin/python3 .local/share/pypoetry/venv/bin/python
         printf '#!%s/.local/share/pypoetry/venv/bin/python\\n' $HOME > .local/share/pypoetry/venv/bin/poetry
         chmod +x .local/share/pypoetry/venv/bin/poetry; ln -s ~/.local/share/pypoetry/venv/bin/poetry .local/bin/poetry",
        &[".local/bin"],
        "~/.local/share/pypoetry/venv/bin/python",
    ),
    layout(
        "pipx",
        "program .local/share/uv/python/3.12/bin/python3 .local/share/uv/python/3.12/lib/os.py
         mkdir -p .local/share/pipx/venvs/black/bin .local/bin
         ln -s ~/.local/share/uv/python/3.12/bin/python3 .local/share/pipx/venvs/black/bin/black
         ln -s ~/.local/share/pipx/venvs/black/bin/black .local/bin/black",
        &[".local/bin"],
        "black",
    ),
    layout(
        "a virtual environment",
        "program python/bin/python3 python/lib/os.py; mkdir -p envs/a/bin; ln -s ~/python/bin/python3 envs/a/bin/python
         printf 'home = %s\\n' ~/python/bin > envs/a/pyvenv.cfg",
        &["envs/a/bin"],
        "python && test -e ~/envs/a/pyvenv.cfg",
    ),
    with_variable(
        ("PRE_COMMIT_HOME", "pc"),
        layout("pre-commit", "program pc/repo1/env/bin/x pc/repo1/env/lib", &[], "~/pc/repo1/env/bin/x"),
    ),
    layout(
        "uv",
        "program .local/share/uv/tools/x/bin/x .cache/uv/a; mkdir .local/share/uv/credentials; touch .local/share/uv/credentials/a",
        &[],
        "~/.local/share/uv/tools/x/bin/x && ! cat ~/.local/share/uv/credentials/a",
    ),
    layout("pnpm", "program .local/share/pnpm/x .local/share/pnpm/store/v3/a", &[".local/share/pnpm"], "x"),
    layout("go", "program apps/go/bin/go apps/go/src/a; mkdir -p apps/go/pkg/tool", &["apps/go/bin"], "go"),
    with_variable(
        ("GOPATH", "gopath"),
        layout("modules of go", "program gopath/bin/x gopath/pkg/mod/a; mkdir gopath/src", &["gopath/bin"], "x"),
    ),
    layout("gem", "program .local/share/gem/ruby/3.3.0/bin/x .local/share/gem/ruby/3.3.0/gems/x", &[".local/share/gem/ruby/3.3.0/bin"], "x"),
    layout("composer", "program .config/composer/vendor/x/x .config/composer/vendor/x/lib; mkdir .config/composer/vendor/bin
         ln -s ../x/x .config/composer/vendor/bin/x", &[".config/composer/vendor/bin"], "x"),
    layout(
        "juliaup",
        "program .julia/juliaup/julia-1.10/bin/julia .julia/juliaup/julia-1.10/share/a; mkdir -p .juliaup/bin
         ln -s ~/.julia/juliaup/julia-1.10/bin/julia .juliaup/bin/julia",
        &[".juliaup/bin"],
        "julia",
    ),
    layout("opam", "program .opam/default/bin/ocaml .opam/default/lib/a", &[".opam/default/bin"], "ocaml"),
    with_variable(
        ("R_LIBS_USER", "lib-of-r"),
        layout("R", "program lib-of-r/x/exec lib-of-r/x/a", &[], "~/lib-of-r/x/exec"),
    ),
    with_variable(
        ("CARGO_HOME", "cargo"),
        layout("cargo", "program cargo/bin/x cargo/registry/a; touch cargo/credentials.toml", &["cargo/bin"], "x && ! cat ~/cargo/credentials.toml"),
    ),
    layout("a program beside its library", "program zig/zig zig/lib/a; mkdir bin; ln -s ../zig/zig bin/zig", &["bin"], "zig"),
    layout("a script of dotfiles", "program dotfiles/x .local/lib/a; mkdir bin; ln -s ../dotfiles/x bin/x", &["bin"], "x"),
    layout("a directory of programs", "program .local/bin/x .local/lib/a", &[".local/bin"], "x"),
];

/// Returns a place whose home has that toolchain, and a secret and notes beside it.
fn place_with(layout: &Layout, enforcement: Enforcement) -> Place {
    let set_up = format!(
        "{PROGRAM}\nmkdir .ssh notes; echo hidden > .ssh/id; echo hidden > notes/a\n{}",
        layout.set_up
    );
    let mut place = Place::new(SandboxMode::ReadOnly).with_home(&set_up);
    place.enforcement = enforcement;
    let home = place.home.clone().unwrap();
    let system = std::env::split_paths("/usr/bin:/bin").collect::<Vec<_>>();
    let own = layout.search_path.iter().map(|it| home.join(it));
    let search_path = std::env::join_paths(own.chain(system)).unwrap();
    place.variables = vec![("PATH", search_path)];
    let variable = layout
        .variable
        .map(|(name, path)| (name, home.join(path).into()));
    place.variables.extend(variable);
    place
}

fn works_in_each_layout(enforcement: Enforcement) {
    if !place::is_enforced(enforcement) {
        return;
    }
    let broken = LAYOUTS.iter().filter_map(|layout| {
        let place = place_with(layout, enforcement);
        let output = place.run(layout.command);
        place.fails("cat ~/.ssh/id");
        place.fails("cat ~/notes/a");
        let works = output.status.success() && output.stdout == b"works\n";
        (!works).then(|| format!("{}: {output:?}", layout.name))
    });
    assert_eq!(broken.collect::<Vec<_>>(), Vec::<String>::new());
}

#[test]
fn programs_of_toolchains_find_what_they_need() {
    works_in_each_layout(Enforcement::Full);
}

#[test]
fn programs_of_toolchains_find_what_they_need_without_namespaces() {
    works_in_each_layout(Enforcement::Partial);
}

#[test]
fn links_in_the_search_path_open_no_secret_and_nothing_by_way_of_the_workspace() {
    if !place::is_enforced(Enforcement::Full) {
        return;
    }
    let hidden = layout(
        "links",
        "program private/bin/x private/lib/a; mkdir -p bin $WORKSPACE/bin .cargo/bin .config/git
         touch .cargo/credentials.toml .ssh/id; chmod +x .ssh/id
         ln -s ../.ssh/id bin/id; ln -s ../notes/a bin/a; ln -s ../.ssh bin/ssh; ln -s .. bin/up
         ln -s ../../home/private/bin/x $WORKSPACE/bin/x; ln -s $WORKSPACE/bin/x bin/over
         printf '#!%s/.ssh/id\\n' $HOME > bin/script; chmod +x bin/script",
        &[
            "",
            "bin",
            "../workspace/bin",
            "bin/up",
            "notes/..",
            ".cargo/bin",
        ],
        "",
    );
    let place = place_with(&hidden, Enforcement::Full);
    place.works("test -e ~/bin/script");
    for script in [
        "cat ~/.ssh/id",
        "cat ~/notes/a",
        "cat ~/private/lib/a",
        "cat ~/private/bin/x",
        "cat ~/.cargo/credentials.toml",
    ] {
        place.fails(script);
    }
}
