//! Imports between the files of a crate: no file needs, over others, a file that needs it.
#![expect(
    clippy::indexing_slicing,
    reason = "positions come from the same text; a wrong one fails the test that uses it"
)]

use crate::rust_text;
use crate::tree;
use std::collections::{BTreeMap, BTreeSet};

/// The bound on files in cycles that cross folders. It may only fall; the aim is 0. Files and not cycles, because a large
/// cycle becomes several on its way to none.
const FILES_MAX: usize = 187;
/// The most re-exports on the way from an import to what it names.
const RE_EXPORTS_MAX: usize = 8;

/// A module's path below its crate: empty for the crate itself.
type Module = Vec<String>;

/// A file that is a module.
#[derive(Default)]
struct Source {
    path: String,
    /// The text without comments, strings, tests and imports.
    code: String,
    /// What it imports: the name here and the path.
    imports: Vec<(String, Module)>,
    /// Whether another module sees the import under this name.
    re_exports: BTreeSet<String>,
}

/// The modules of one crate.
struct Crate(BTreeMap<Module, Source>);

#[test]
fn imports_of_different_folders_have_no_cycles() {
    let mut crates: BTreeMap<String, Vec<(String, String)>> = BTreeMap::new();
    for path in tree::files_ending("rs") {
        if let Some((name, file)) = path.split_once("/src/")
            && name.starts_with("crates/")
            && !is_of_tests(file)
        {
            let file = (file.to_owned(), tree::read(&path));
            crates.entry(name.to_owned()).or_default().push(file);
        }
    }
    let (mut files, mut found) = (0, Vec::new());
    for (name, sources) in crates {
        for cycle in Crate::new(&sources).cycles() {
            let paths: BTreeSet<&str> = cycle
                .iter()
                .filter_map(|arrow| arrow.split(' ').next())
                .collect();
            files += paths.len();
            found.push(format!(
                "{name}: {} files\n    {}",
                paths.len(),
                cycle.join("\n    ")
            ));
        }
    }
    assert!(
        files <= FILES_MAX,
        "{files} files are in {} cycles of imports between folders, {FILES_MAX} may be; an item belongs elsewhere:\n  {}",
        found.len(),
        found.join("\n  ")
    );
}

#[test]
fn a_cycle_is_found_through_re_exports_and_modules() {
    let file = |path: &str, text: &str| (path.to_owned(), text.to_owned());
    let lib = file(
        "lib.rs",
        "mod a;\nmod b;\npub use a::A;\npub use b::{c::C, d};\n",
    );
    let leaf = file(
        "b/c.rs",
        "pub struct C;\n#[cfg(test)]\nmod tests { use crate::A; }",
    );
    let front = file("b/mod.rs", "mod c;\npub use c::C;\n");
    let user = file(
        "a.rs",
        "use crate::b::{\n    C as D,\n};\npub struct A(D);\n",
    );
    let files = vec![lib, front, leaf, user];
    assert_eq!(Crate::new(&files).cycles(), Vec::<Vec<String>>::new());

    for back in [
        "use crate::{A, Z};",
        "fn f(_: crate::A) {}",
        "use super::super::a as x; fn f(_: x::A) {}",
    ] {
        let mut files = files.clone();
        files[2].1.push_str(&format!("\n{back}\n"));
        let cycle = vec!["a.rs -> b/c.rs: C", "b/c.rs -> a.rs: A"];
        assert_eq!(Crate::new(&files).cycles(), [cycle], "{back}");
    }
}

#[test]
fn a_front_lies_in_one_folder_with_its_children() {
    let front = ("b.rs", "mod c;\nfn f() { c::g(); }\nfn h() {}");
    let child = ("b/c.rs", "fn g() { super::h(); }");
    let files = [front, child].map(|(path, text)| (path.to_owned(), text.to_owned()));
    assert_eq!(Crate::new(&files).cycles(), Vec::<Vec<String>>::new());
}

fn is_of_tests(file: &str) -> bool {
    file.split('/')
        .any(|part| part == "tests" || part == "tests.rs")
}

impl Crate {
    fn new(files: &[(String, String)]) -> Self {
        Self(files.iter().map(|(path, text)| read(path, text)).collect())
    }

    /// Returns the arrows of each group of files that import each other and lie in several folders.
    fn cycles(&self) -> Vec<Vec<String>> {
        let arrows = self.arrows();
        let reached: BTreeMap<&Module, BTreeSet<&Module>> = self
            .0
            .keys()
            .map(|from| (from, reach(&arrows, from)))
            .collect();
        let mut groups: BTreeSet<BTreeSet<&Module>> = BTreeSet::new();
        for (from, all) in &reached {
            if all.contains(from) {
                groups.insert(
                    all.iter()
                        .filter(|to| reached[*to].contains(from))
                        .copied()
                        .collect(),
                );
            }
        }
        let folder = |module: &Module| {
            let has_children = self
                .0
                .keys()
                .any(|it| it.len() > module.len() && it.starts_with(module));
            let length = if has_children {
                module.len()
            } else {
                module.len().saturating_sub(1)
            };
            module[..length].to_vec()
        };
        groups.retain(|group| {
            group
                .iter()
                .map(|it| folder(it))
                .collect::<BTreeSet<_>>()
                .len()
                > 1
        });
        let lines = |group: BTreeSet<&Module>| {
            let inside = arrows
                .iter()
                .filter(|((from, to), _)| group.contains(from) && group.contains(to));
            inside
                .map(|((from, to), names)| {
                    let names: Vec<&str> = names.iter().map(String::as_str).collect();
                    format!(
                        "{} -> {}: {}",
                        self.0[from].path,
                        self.0[to].path,
                        names.join(", ")
                    )
                })
                .collect()
        };
        groups.into_iter().map(lines).collect()
    }

    /// Returns what each file takes from which.
    fn arrows(&self) -> BTreeMap<(Module, Module), BTreeSet<String>> {
        let mut found: BTreeMap<(Module, Module), BTreeSet<String>> = BTreeMap::new();
        for (module, source) in &self.0 {
            let imports = source
                .imports
                .iter()
                .filter(|(name, _)| !source.re_exports.contains(name));
            let paths = imports.map(|(_, path)| path.clone());
            for path in paths.chain(paths_in(&source.code)) {
                if let Some((to, name)) = self.resolve(module, &path, RE_EXPORTS_MAX)
                    && to != *module
                {
                    found.entry((module.clone(), to)).or_default().insert(name);
                }
            }
        }
        found
    }

    /// Returns the module that defines what the path names in `from`, and its name there.
    fn resolve(&self, from: &Module, path: &[String], depth: usize) -> Option<(Module, String)> {
        let (first, mut rest) = path.split_first()?;
        let mut at = match first.as_str() {
            "crate" => Vec::new(),
            "self" => from.clone(),
            "super" => from.split_last()?.1.to_vec(),
            _ => {
                rest = path;
                from.clone()
            }
        };
        while let Some((name, after)) = rest.split_first() {
            let child = [at.as_slice(), std::slice::from_ref(name)].concat();
            if name == "super" {
                at.pop()?;
            } else if self.0.contains_key(&child) {
                at = child;
            } else if let Some((_, target)) = self
                .0
                .get(&at)?
                .imports
                .iter()
                .find(|(as_name, _)| as_name == name)
            {
                let target = [target.as_slice(), after].concat();
                let is_inside = self.resolve(&at, &target, depth.checked_sub(1)?);
                return is_inside.filter(|_| depth > 0);
            } else {
                // A path that begins with a name of neither modules nor imports is another crate's or an item's.
                let is_item = first != name || ["crate", "self", "super"].contains(&first.as_str());
                return (is_item || at != *from).then(|| (at, name.clone()));
            }
            rest = after;
        }
        // A module itself: what is used of it is found where it is used.
        None
    }
}

/// Returns the modules that a module needs, over others too.
fn reach<'a>(
    arrows: &'a BTreeMap<(Module, Module), BTreeSet<String>>,
    from: &Module,
) -> BTreeSet<&'a Module> {
    let mut found = BTreeSet::new();
    let mut open = vec![from];
    while let Some(module) = open.pop() {
        for (_, to) in arrows.keys().filter(|(needs, _)| needs == module) {
            if found.insert(to) {
                open.push(to);
            }
        }
    }
    found
}

fn read(path: &str, text: &str) -> (Module, Source) {
    let stem = path.trim_end_matches(".rs");
    let mut module: Module = stem.split('/').map(str::to_owned).collect();
    module.pop_if(|last| last == "mod" || last == "lib" || last == "main");
    let code = rust_text::code_only(text);
    let mut code = rust_text::without_tests(&code, &code);
    let (mut imports, mut re_exports) = (Vec::new(), BTreeSet::new());
    // `use<'a>` captures lifetimes.
    let is_import = |code: &str, at: &usize| code[at + 3..].starts_with(char::is_whitespace);
    while let Some(at) = rust_text::find_words(&code, "use")
        .into_iter()
        .find(|at| is_import(&code, at))
    {
        let end = code[at..]
            .find(';')
            .map_or(code.len(), |length| at + length);
        let names = leaves(&code[at + 3..end]);
        let line = code[..at].rsplit('\n').next().unwrap_or_default();
        if line.contains("pub") {
            re_exports.extend(names.iter().map(|(name, _)| name.clone()));
        }
        imports.extend(names);
        code.replace_range(at..end, "");
    }
    (
        module,
        Source {
            path: path.to_owned(),
            code,
            imports,
            re_exports,
        },
    )
}

/// Returns the names and paths of an import's tree.
fn leaves(tree: &str) -> Vec<(String, Module)> {
    let tree = tree.trim();
    if let Some((prefix, inner)) = tree.split_once('{') {
        let inner = inner.trim_end().trim_end_matches('}');
        let prefix: Module = segments(prefix);
        let mut found = Vec::new();
        for part in parts(inner) {
            for (name, path) in leaves(part) {
                let path = if path == ["self"] {
                    prefix.clone()
                } else {
                    [prefix.clone(), path].concat()
                };
                let name = if name == "self" {
                    path.last().cloned().unwrap_or_default()
                } else {
                    name
                };
                found.push((name, path));
            }
        }
        return found;
    }
    let (path, name) = tree
        .split_once(" as ")
        .map_or((tree, None), |(path, name)| (path, Some(name)));
    let path = segments(path);
    let name = name
        .map(|name| name.trim().to_owned())
        .or_else(|| path.last().cloned());
    Vec::from_iter(name.map(|name| (name, path)))
}

fn segments(path: &str) -> Module {
    path.split("::")
        .map(str::trim)
        .filter(|part| !part.is_empty())
        .map(str::to_owned)
        .collect()
}

/// Splits at the commas outside of braces.
fn parts(text: &str) -> Vec<&str> {
    let (mut depth, mut from, mut found) = (0_u32, 0, Vec::new());
    for (at, letter) in text.char_indices() {
        match letter {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                found.push(&text[from..at]);
                from = at + 1;
            }
            _ => {}
        }
    }
    found.push(&text[from..]);
    found.retain(|part| !part.trim().is_empty());
    found
}

/// Returns the paths of two names and more that stand in code.
fn paths_in(code: &str) -> Vec<Module> {
    let is_part = |letter: char| letter.is_alphanumeric() || letter == '_' || letter == ':';
    code.split(|letter: char| !is_part(letter))
        .filter(|word| word.contains("::"))
        .map(segments)
        .filter(|path| path.len() > 1)
        .collect()
}
