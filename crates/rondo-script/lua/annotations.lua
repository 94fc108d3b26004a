---@meta rondo
-- What scripts of `rondo run` see, for the Lua language server. `rondo run --new` writes this beside a script.

---@class rondo.Model
---@class rondo.Tool
---@field name string

---@class rondo.ModelOptions
---@field name? string `provider/model`, or a tier of the configuration
---@field base_url? string where it is asked
---@field temperature? number
---@field max_output_tokens? integer tokens of one reply
---@field effort? "minimal"|"low"|"medium"|"high" how much it reasons

---@class rondo.Limits Of each turn; what the settings say holds besides.
---@field steps? integer requests to the model
---@field tool_calls? integer
---@field tokens? integer
---@field cost? number dollars
---@field time? number seconds

---@class rondo.AgentOptions
---@field name? string what it is called in messages
---@field model? string|rondo.Model the settings' own where it is left out
---@field system? string the system prompt
---@field tools? (string|rondo.Tool|rondo.Server)[] names of Rondo's tools, the script's own, and servers
---@field limits? rondo.Limits
---@field profile? string a profile: its prompt, tools and limits
---@field allow? string[] calls that run without a question, such as `exec(git status *)`
---@field schema? table the JSON Schema of its answers; `conversation.data` has them
---@field on_event? fun(event: table) called with each event of its turns

---@class rondo.Message
---@field role "user"|"assistant"|"tool"
---@field content string
---@field tool_calls? { id: string, name: string, arguments: string }[]
---@field tool_call_id? string
---@field name? string

---@class rondo.Usage
---@field input integer
---@field output integer
---@field cache_read integer
---@field total integer

---@class rondo.Conversation
---@field agent rondo.Agent
---@field text string the latest answer
---@field data any the latest answer by its schema
---@field messages rondo.Message[]
---@field last rondo.Message
---@field usage rondo.Usage of the latest turn
---@field cost? number dollars of the latest turn, where the price is known
---@field stop_reason string why the latest turn ended: `complete`, `max_steps`, `deadline`, ...
---@field answered boolean whether the model wrote the answer
---@field degraded boolean whether the answer is less than it could be
---@field model string who answered
---@field steps integer
---@field tool_calls integer
---@field session string
---@operator bor(string): rondo.Conversation
---@operator bor(rondo.Agent): rondo.Conversation
local Conversation = {}

---@param text string
---@return rondo.Conversation
function Conversation:ask(text) end

---@class rondo.Agent
---@field name string
---@operator bor(string): rondo.Conversation
local Agent = {}

---@param text string
---@return rondo.Conversation
function Agent:ask(text) end

---@class rondo.ToolOptions
---@field name string
---@field description? string what the model reads of it
---@field parameters? table<string, string|table> `{ city = "string", days = "integer?" }`, or a JSON Schema
---@field run fun(arguments: table): string|table|nil
---@field read_only? boolean whether it changes nothing, so that it runs without a question
---@field timeout? number seconds

---@class rondo.ServerOptions
---@field name string
---@field command? string
---@field args? string[]
---@field env? table<string, string>
---@field env_vars? string[]
---@field cwd? string
---@field url? string
---@field headers? table<string, string>
---@field headers_env? table<string, string>
---@field bearer_token_env? string
---@field startup_timeout_s? number
---@field call_timeout_s? number
---@field call_timeout_max_s? number
---@field enabled_tools? string[]
---@field disabled_tools? string[]

---@class rondo.Server
---@field name string
local Server = {}

---@param tool string
---@param arguments? table
---@return any
function Server:call(tool, arguments) end

---@return { name: string, description: string, parameters: table }[]
function Server:tools() end

---@class rondo.ExecResult
---@field stdout string what it wrote, to standard error too
---@field stderr string always empty: both streams are one terminal
---@field exit_code? integer
---@field ok boolean whether that is 0
---@field signal? string
---@field timed_out boolean
---@field truncated boolean

rondo = {}

---@type string[] What the script was given; [0] is its name.
rondo.args = {}

---@param options string|rondo.ModelOptions
---@return rondo.Model
function rondo.model(options) end

---@param options? rondo.AgentOptions
---@return rondo.Agent
function rondo.agent(options) end

---@param options rondo.ToolOptions
---@return rondo.Tool
function rondo.tool(options) end

---@param options string|rondo.ServerOptions the name of a configured server, or one to start
---@return rondo.Server
function rondo.mcp(options) end

---Runs a command in bash; a list of words is quoted.
---@param command string|string[]
---@param options? { timeout?: number, cwd?: string, live?: boolean }
---@return rondo.ExecResult
function rondo.exec(command, options) end

---Asks the person at the terminal.
---@param question string
---@param options? { default?: string, choices?: string[] }
---@return string
function rondo.ask(question, options) end

---Runs functions at once; the results have their keys.
---@generic K
---@param branches table<K, fun(): any>
---@param options? { limit?: integer }
---@return table<K, any>
function rondo.parallel(branches, options) end

---@param seconds number
function rondo.sleep(seconds) end

---@param name string
---@return string?
function rondo.env(name) end

---Writes a line to standard error.
function rondo.log(...) end

rondo.files = {}
---@param path string
---@return string
function rondo.files.read(path) end
---@param path string
---@param text string
function rondo.files.write(path, text) end
---@param path string
---@param text string
function rondo.files.append(path, text) end
---@param path string
---@return boolean
function rondo.files.exists(path) end
---@param path string
---@return string[]
function rondo.files.list(path) end

rondo.json = {}
---@param text string
---@return any
function rondo.json.decode(text) end
---@param value any
---@param pretty? boolean
---@return string
function rondo.json.encode(value, pretty) end
---Marks a table as an array, for an empty one.
---@param t? table
---@return table
function rondo.json.array(t) end
---`null`, where a value is needed.
rondo.json.null = nil

rondo.http = {}
---Reads a page at a public address, as text.
---@param url string
---@return string
function rondo.http.get(url) end
