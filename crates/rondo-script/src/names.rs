//! The names that scripts may use: functions, their options, and the fields of what they return. The functions check
//! what they are given by these lists, and so does the reader of scripts that are not run.

/// A function or a table with a fixed set of names.
pub(crate) struct Names {
    /// Owner of the names, as scripts write it.
    pub(crate) of: &'static str,
    pub(crate) names: &'static [&'static str],
}

/// The members of the table `rondo`.
pub(crate) const RONDO: &[&str] = &[
    "agent", "args", "ask", "env", "exec", "files", "http", "json", "log", "mcp", "model",
    "parallel", "sleep", "tool",
];

/// The options of a tool, of a script and of `init.lua`.
const TOOL_OPTIONS: &[&str] = &[
    "name",
    "description",
    "parameters",
    "run",
    "read_only",
    "timeout",
];

/// The members of the tables in it.
pub(crate) const MEMBERS: &[Names] = &[
    Names {
        of: "rondo.files",
        names: &["append", "exists", "list", "read", "write"],
    },
    Names {
        of: "rondo.json",
        names: &["array", "decode", "encode", "null"],
    },
    Names {
        of: "rondo.http",
        names: &["get"],
    },
];

/// The options of functions that take a table of them.
pub(crate) const OPTIONS: &[Names] = &[
    Names {
        of: "rondo.model",
        names: &[
            "name",
            "base_url",
            "temperature",
            "max_output_tokens",
            "effort",
        ],
    },
    Names {
        of: "rondo.agent",
        names: &[
            "name", "model", "system", "tools", "limits", "profile", "allow", "schema", "on_event",
        ],
    },
    Names {
        of: "limits",
        names: &["steps", "tool_calls", "tokens", "cost", "time"],
    },
    Names {
        of: "rondo.tool",
        names: TOOL_OPTIONS,
    },
    Names {
        of: "rondo.mcp",
        names: &[
            "name",
            "command",
            "args",
            "env",
            "env_vars",
            "cwd",
            "url",
            "headers",
            "headers_env",
            "bearer_token_env",
            "startup_timeout_s",
            "call_timeout_s",
            "call_timeout_max_s",
            "enabled_tools",
            "disabled_tools",
        ],
    },
    Names {
        of: "rondo.exec",
        names: &["timeout", "cwd", "live"],
    },
    Names {
        of: "rondo.ask",
        names: &["default", "choices"],
    },
    Names {
        of: "rondo.parallel",
        names: &["limit"],
    },
];

/// The options of the functions of `init.lua`.
pub(crate) const INIT_OPTIONS: &[Names] = &[
    Names {
        of: "rondo.command",
        names: &["name", "description", "run"],
    },
    Names {
        of: "rondo.prompt",
        names: &["name", "description", "text"],
    },
    Names {
        of: "rondo.key",
        names: &["key", "command"],
    },
    Names {
        of: "rondo.tool",
        names: TOOL_OPTIONS,
    },
    Names {
        of: "rondo.exec",
        names: &["timeout", "cwd"],
    },
];

/// The fields of a conversation.
pub(crate) const CONVERSATION: &[&str] = &[
    "agent",
    "answered",
    "ask",
    "cost",
    "data",
    "degraded",
    "last",
    "messages",
    "model",
    "session",
    "steps",
    "stop_reason",
    "text",
    "tool_calls",
    "usage",
];
/// The fields of an agent.
pub(crate) const AGENT: &[&str] = &["ask", "name"];

/// The functions that scripts have without a table.
pub(crate) const GLOBALS: &[&str] = &[
    "assert",
    "error",
    "getmetatable",
    "ipairs",
    "load",
    "next",
    "pairs",
    "pcall",
    "print",
    "rawequal",
    "rawget",
    "rawlen",
    "rawset",
    "require",
    "select",
    "setmetatable",
    "tonumber",
    "tostring",
    "type",
    "warn",
    "xpcall",
];

/// Names of Lua's libraries that scripts have.
pub(crate) const LIBRARIES: &[Names] = &[
    Names {
        of: "coroutine",
        names: &[
            "close",
            "create",
            "isyieldable",
            "resume",
            "running",
            "status",
            "wrap",
            "yield",
        ],
    },
    Names {
        of: "io",
        names: &["lines", "read", "stderr", "stdin", "stdout", "write"],
    },
    Names {
        of: "math",
        names: &[
            "abs",
            "acos",
            "asin",
            "atan",
            "ceil",
            "cos",
            "deg",
            "exp",
            "floor",
            "fmod",
            "huge",
            "log",
            "max",
            "maxinteger",
            "min",
            "mininteger",
            "modf",
            "pi",
            "rad",
            "random",
            "randomseed",
            "sin",
            "sqrt",
            "tan",
            "tointeger",
            "type",
            "ult",
        ],
    },
    Names {
        of: "os",
        names: &["clock", "date", "difftime", "exit", "getenv", "time"],
    },
    Names {
        of: "string",
        names: &[
            "byte", "char", "find", "format", "gmatch", "gsub", "len", "lower", "match", "pack",
            "packsize", "rep", "reverse", "sub", "unpack", "upper",
        ],
    },
    Names {
        of: "table",
        names: &[
            "concat", "insert", "move", "pack", "remove", "sort", "unpack",
        ],
    },
    Names {
        of: "utf8",
        names: &["char", "charpattern", "codepoint", "codes", "len", "offset"],
    },
];
