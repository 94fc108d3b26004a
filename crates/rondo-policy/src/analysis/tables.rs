//! The table of read-only programs, which run without approval, each with its read-only options.

use super::options::Options;

/// The options of `head` and `tail`.
const ENDS: Options = Options {
    flags: "qvz",
    values: "nc",
    long: &["quiet", "silent", "verbose"],
    long_values: &["lines", "bytes"],
    numbers: true,
    ..NOTHING
};

/// No options.
pub(super) const NOTHING: Options = Options {
    flags: "",
    values: "",
    separate: "",
    attached: "",
    long: &[],
    long_values: &[],
    numbers: false,
};

const SUMS: Options = Options {
    flags: "btz",
    long: &["binary", "tag", "text", "zero"],
    ..NOTHING
};

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Operands {
    /// Files and directories.
    Paths,
    /// Files. No directories: links in these could lead anywhere.
    Files,
    /// One file; a second one would be written to.
    OnePath,
    /// Text.
    Text,
    /// No operands.
    Nothing,
    /// A pattern unless one of these options gives it, then files and directories.
    PatternThenPaths(&'static [&'static str]),
}

/// A read-only program.
pub(super) struct Program {
    pub(super) name: &'static str,
    pub(super) options: Options,
    pub(super) operands: Operands,
}

/// The read-only programs. Those that need a check of their own, such as `find`, `sed` and `git`, are arms of
/// `programs::check`.
pub(super) const PROGRAMS: &[Program] = &[
    Program {
        name: "ls",
        options: Options {
            flags: "1aAbBcCdfFgGhHiklmnNopqQrRsStuUvxXZ",
            long: &[
                "all",
                "almost-all",
                "human-readable",
                "recursive",
                "reverse",
                "size",
                "inode",
                "directory",
                "classify",
                "color",
                "full-time",
                "group-directories-first",
                "numeric-uid-gid",
                "no-group",
                "si",
            ],
            long_values: &[
                "sort",
                "time",
                "format",
                "time-style",
                "ignore",
                "hide",
                "block-size",
            ],
            ..NOTHING
        },
        operands: Operands::Paths,
    },
    Program {
        name: "cat",
        options: Options {
            flags: "AbeEnstTuv",
            long: &[
                "number",
                "number-nonblank",
                "show-all",
                "show-ends",
                "show-tabs",
                "squeeze-blank",
            ],
            ..NOTHING
        },
        operands: Operands::Paths,
    },
    Program {
        name: "head",
        options: ENDS,
        operands: Operands::Paths,
    },
    Program {
        name: "tail",
        options: ENDS,
        operands: Operands::Paths,
    },
    Program {
        name: "wc",
        options: Options {
            flags: "clLmw",
            long: &["lines", "words", "bytes", "chars", "max-line-length"],
            ..NOTHING
        },
        operands: Operands::Paths,
    },
    Program {
        name: "sort",
        options: Options {
            flags: "bcCdfghiMmnrRsuVz",
            values: "kt",
            long: &[
                "numeric-sort",
                "human-numeric-sort",
                "version-sort",
                "general-numeric-sort",
                "reverse",
                "unique",
                "stable",
                "ignore-case",
                "check",
                "zero-terminated",
            ],
            long_values: &["key", "field-separator"],
            ..NOTHING
        },
        operands: Operands::Paths,
    },
    Program {
        name: "uniq",
        options: Options {
            flags: "cdDiuz",
            values: "fsw",
            long: &["count", "repeated", "unique", "ignore-case"],
            ..NOTHING
        },
        operands: Operands::OnePath,
    },
    Program {
        name: "cut",
        options: Options {
            flags: "nsz",
            values: "bcdf",
            long: &["complement", "only-delimited"],
            long_values: &[
                "delimiter",
                "fields",
                "bytes",
                "characters",
                "output-delimiter",
            ],
            ..NOTHING
        },
        operands: Operands::Paths,
    },
    Program {
        name: "tr",
        options: Options {
            flags: "cCdst",
            long: &["delete", "complement", "squeeze-repeats", "truncate-set1"],
            ..NOTHING
        },
        operands: Operands::Text,
    },
    Program {
        name: "stat",
        options: Options {
            flags: "Lft",
            values: "c",
            long: &["dereference", "file-system", "terse"],
            long_values: &["format", "printf"],
            ..NOTHING
        },
        operands: Operands::Paths,
    },
    Program {
        name: "du",
        options: Options {
            flags: "abchklmsSx0",
            values: "dB",
            long: &[
                "all",
                "apparent-size",
                "bytes",
                "human-readable",
                "summarize",
                "total",
                "si",
            ],
            long_values: &["max-depth", "exclude", "block-size", "threshold"],
            ..NOTHING
        },
        operands: Operands::Paths,
    },
    Program {
        name: "file",
        options: Options {
            flags: "bihkL",
            long: &["brief", "mime", "mime-type", "mime-encoding", "dereference"],
            ..NOTHING
        },
        operands: Operands::Paths,
    },
    Program {
        name: "pwd",
        options: Options {
            flags: "LP",
            ..NOTHING
        },
        operands: Operands::Text,
    },
    Program {
        name: "diff",
        options: Options {
            flags: "abBcdEiNpqstTuwyZ",
            values: "UCW",
            long: &[
                "brief",
                "color",
                "expand-tabs",
                "ignore-all-space",
                "ignore-blank-lines",
                "ignore-case",
                "ignore-space-change",
                "minimal",
                "report-identical-files",
                "side-by-side",
                "strip-trailing-cr",
                "suppress-common-lines",
                "text",
                "unified",
            ],
            numbers: true,
            ..NOTHING
        },
        operands: Operands::Files,
    },
    Program {
        name: "cmp",
        options: Options {
            flags: "bls",
            values: "n",
            ..NOTHING
        },
        operands: Operands::Files,
    },
    Program {
        name: "comm",
        options: Options {
            flags: "123z",
            ..NOTHING
        },
        operands: Operands::Files,
    },
    Program {
        name: "which",
        options: Options {
            flags: "a",
            ..NOTHING
        },
        operands: Operands::Text,
    },
    Program {
        name: "type",
        options: Options {
            flags: "aftpP",
            ..NOTHING
        },
        operands: Operands::Text,
    },
    Program {
        name: "df",
        options: Options {
            flags: "ahHiklPT",
            long: &[
                "all",
                "human-readable",
                "inodes",
                "local",
                "portability",
                "print-type",
                "si",
                "total",
            ],
            ..NOTHING
        },
        operands: Operands::Paths,
    },
    Program {
        name: "uname",
        options: Options {
            flags: "aimnoprsv",
            long: &["all"],
            ..NOTHING
        },
        operands: Operands::Nothing,
    },
    Program {
        name: "seq",
        options: Options {
            flags: "w",
            values: "fs",
            ..NOTHING
        },
        operands: Operands::Text,
    },
    Program {
        name: "sha1sum",
        options: SUMS,
        operands: Operands::Paths,
    },
    Program {
        name: "sha224sum",
        options: SUMS,
        operands: Operands::Paths,
    },
    Program {
        name: "sha256sum",
        options: SUMS,
        operands: Operands::Paths,
    },
    Program {
        name: "sha384sum",
        options: SUMS,
        operands: Operands::Paths,
    },
    Program {
        name: "sha512sum",
        options: SUMS,
        operands: Operands::Paths,
    },
    Program {
        name: "md5sum",
        options: SUMS,
        operands: Operands::Paths,
    },
    Program {
        name: "b2sum",
        options: SUMS,
        operands: Operands::Paths,
    },
    Program {
        name: "shasum",
        options: Options {
            flags: "bt",
            values: "a",
            ..NOTHING
        },
        operands: Operands::Paths,
    },
    Program {
        name: "cksum",
        options: NOTHING,
        operands: Operands::Paths,
    },
    Program {
        name: "basename",
        options: Options {
            flags: "az",
            values: "s",
            ..NOTHING
        },
        operands: Operands::Text,
    },
    Program {
        name: "dirname",
        options: Options {
            flags: "z",
            ..NOTHING
        },
        operands: Operands::Text,
    },
    Program {
        name: "realpath",
        options: Options {
            flags: "emqsz",
            ..NOTHING
        },
        operands: Operands::Paths,
    },
    Program {
        name: "readlink",
        options: Options {
            flags: "efmnqsvz",
            ..NOTHING
        },
        operands: Operands::Paths,
    },
    Program {
        name: "nl",
        options: Options {
            flags: "p",
            values: "bdfhilnsvw",
            ..NOTHING
        },
        operands: Operands::Paths,
    },
    Program {
        name: "tac",
        options: Options {
            flags: "br",
            values: "s",
            ..NOTHING
        },
        operands: Operands::Paths,
    },
    Program {
        name: "rev",
        options: NOTHING,
        operands: Operands::Paths,
    },
    Program {
        name: "fold",
        options: Options {
            flags: "bs",
            values: "w",
            ..NOTHING
        },
        operands: Operands::Paths,
    },
    Program {
        name: "paste",
        options: Options {
            flags: "sz",
            values: "d",
            ..NOTHING
        },
        operands: Operands::Paths,
    },
    Program {
        name: "od",
        options: Options {
            flags: "abcdfiloxvs",
            values: "AjNt",
            ..NOTHING
        },
        operands: Operands::Paths,
    },
    Program {
        name: "hexdump",
        options: Options {
            flags: "bcCdovx",
            values: "ns",
            ..NOTHING
        },
        operands: Operands::Paths,
    },
    Program {
        name: "tree",
        options: Options {
            flags: "adfpshDugFCni",
            separate: "LIP",
            long: &["noreport", "dirsfirst", "gitignore", "prune", "du", "si"],
            ..NOTHING
        },
        operands: Operands::Paths,
    },
    Program {
        name: "whoami",
        options: NOTHING,
        operands: Operands::Nothing,
    },
    Program {
        name: "groups",
        options: NOTHING,
        operands: Operands::Nothing,
    },
    Program {
        name: "nproc",
        options: NOTHING,
        operands: Operands::Nothing,
    },
    Program {
        name: "uptime",
        options: NOTHING,
        operands: Operands::Nothing,
    },
    Program {
        name: "tty",
        options: NOTHING,
        operands: Operands::Nothing,
    },
    Program {
        name: "hostname",
        options: NOTHING,
        operands: Operands::Nothing,
    },
    Program {
        name: "id",
        options: Options {
            flags: "gGnuz",
            ..NOTHING
        },
        operands: Operands::Text,
    },
    Program {
        name: "free",
        options: Options {
            flags: "bghkmt",
            ..NOTHING
        },
        operands: Operands::Nothing,
    },
    Program {
        name: "sleep",
        options: NOTHING,
        operands: Operands::Text,
    },
    Program {
        name: "false",
        options: NOTHING,
        operands: Operands::Text,
    },
    // Those that look for a pattern.
    Program {
        name: "grep",
        options: Options {
            flags: "EFGPivwxcnHhoqsrlLbaIzyTU",
            values: "emABC",
            long: &[
                "extended-regexp",
                "fixed-strings",
                "basic-regexp",
                "perl-regexp",
                "ignore-case",
                "no-ignore-case",
                "invert-match",
                "word-regexp",
                "line-regexp",
                "count",
                "line-number",
                "with-filename",
                "no-filename",
                "only-matching",
                "quiet",
                "silent",
                "no-messages",
                "recursive",
                "files-with-matches",
                "files-without-match",
                "byte-offset",
                "text",
                "null",
                "color",
                "colour",
            ],
            long_values: &[
                "regexp",
                "max-count",
                "after-context",
                "before-context",
                "context",
                "include",
                "exclude",
                "exclude-dir",
                "binary-files",
            ],
            numbers: true,
            ..NOTHING
        },
        operands: Operands::PatternThenPaths(&["e", "regexp"]),
    },
    Program {
        name: "rg",
        options: Options {
            flags: "FivwxcnHhNoqslSUPpaIu.0",
            values: "emABCgtTjdEMr",
            long: &[
                "files",
                "hidden",
                "no-ignore",
                "no-ignore-vcs",
                "ignore-case",
                "smart-case",
                "case-sensitive",
                "fixed-strings",
                "word-regexp",
                "line-regexp",
                "line-number",
                "no-line-number",
                "count",
                "count-matches",
                "files-with-matches",
                "files-without-match",
                "no-heading",
                "heading",
                "multiline",
                "only-matching",
                "invert-match",
                "vimgrep",
                "json",
                "stats",
                "trim",
                "no-messages",
                "type-list",
                "pcre2",
                "with-filename",
                "no-filename",
                "quiet",
                "text",
                "column",
                "no-config",
            ],
            long_values: &[
                "glob",
                "iglob",
                "type",
                "type-not",
                "max-count",
                "max-depth",
                "max-columns",
                "after-context",
                "before-context",
                "context",
                "regexp",
                "replace",
                "sort",
                "sortr",
                "color",
                "colors",
                "threads",
                "encoding",
            ],
            ..NOTHING
        },
        operands: Operands::PatternThenPaths(&["e", "regexp", "files", "type-list"]),
    },
];
