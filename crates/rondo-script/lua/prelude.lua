-- What scripts see of Rondo: the table `rondo`, and safe forms of what Lua has.
local core, options = ...

local raw_error, raw_pairs, raw_next, raw_type, raw_select = error, pairs, next, type, select
local raw_setmetatable, raw_getmetatable, raw_rawget, raw_tostring = setmetatable, getmetatable, rawget, tostring
local create, resume, yield = coroutine.create, coroutine.resume, coroutine.yield
local pack, unpack, sort, concat = table.pack, table.unpack, table.sort, table.concat
local mathtype, format = math.type, string.format
local where, pending, is_ending = core.where, core.pending, core.is_ending
local raw_pcall, raw_xpcall = pcall, xpcall

local common = core.common(where, options)
local fail, checked, known_options, words_of = common.fail, common.checked, common.known_options, common.words_of
local expect = common.expecting("takes")
local isyieldable = coroutine.isyieldable

-- Calls a function that waits, which cannot be done where Lua is called by C. One that is begun there would stay half done.
local function waiting(call)
  local called = checked(call)
  return function(...)
    if not isyieldable() then
      fail("nothing can wait here: in a comparison of `table.sort`, a replacement of `gsub`, `on_event`, or `__tostring`")
    end
    return called(...)
  end
end

-- The order of keys in which every run of a script walks through a table: numbers, texts, and others as they come.
local function before(one, other)
  local kind, other_kind = raw_type(one), raw_type(other)
  if kind ~= other_kind then
    return kind < other_kind
  end
  return one < other
end

local function ordered(t)
  local keys, rest = {}, {}
  for key in raw_next, t do
    local kind = raw_type(key)
    if kind == "number" or kind == "string" then
      keys[#keys + 1] = key
    else
      rest[#rest + 1] = key
    end
  end
  sort(keys, before)
  for _, key in ipairs(rest) do
    keys[#keys + 1] = key
  end
  local at = 0
  return function()
    while true do
      at = at + 1
      local key = keys[at]
      if key == nil then
        return nil
      end
      local value = raw_rawget(t, key)
      if value ~= nil then
        return key, value
      end
    end
  end, t, nil
end

function pairs(t)
  local metatable = raw_getmetatable(t)
  local own = raw_type(metatable) == "table" and metatable.__pairs
  if own then
    return own(t)
  end
  if raw_type(t) ~= "table" then
    fail(format("bad argument #1 to `pairs` (table expected, got %s)", raw_type(t)))
  end
  return ordered(t)
end

function setmetatable(t, metatable)
  if raw_type(metatable) == "table" and raw_rawget(metatable, "__gc") ~= nil then
    fail("`__gc` is not available in scripts: it would run where nothing can end it")
  end
  return raw_setmetatable(t, metatable)
end

-- What ends the script is not caught.
local function passed(is_fine, ...)
  if not is_fine and is_ending() then
    raw_error("the script has ended", 0)
  end
  return is_fine, ...
end

function pcall(...)
  return passed(raw_pcall(...))
end

function xpcall(...)
  return passed(raw_xpcall(...))
end

-- What waits in a coroutine waits in all that are around it.
local function outward(co, first, ...)
  local got = pack(first, ...)
  while got[1] and got.n == 2 and got[2] == pending do
    yield(pending)
    got = pack(resume(co))
  end
  return passed(unpack(got, 1, got.n))
end

function coroutine.resume(co, ...)
  return outward(co, resume(co, ...))
end

function coroutine.wrap(f)
  local co = create(f)
  return function(...)
    local got = pack(outward(co, resume(co, ...)))
    if not got[1] then
      raw_error(got[2], 0)
    end
    return unpack(got, 2, got.n)
  end
end

rondo = {}

-- Models ------------------------------------------------------------------------------------------------------

local Model = { __name = "model" }
Model.__index = function(_, key)
  fail(format("a model has no field `%s`", raw_tostring(key)))
end
Model.__tostring = function(self)
  return "model " .. (raw_rawget(self, "name") or "of the settings")
end

function rondo.model(given)
  if raw_type(given) == "string" then
    given = { name = given }
  end
  known_options("rondo.model", expect("rondo.model", given, "table"))
  local model = {}
  for key, value in raw_pairs(given) do
    model[key] = value
  end
  return raw_setmetatable(model, Model)
end

local function model_of(value)
  if value == nil then
    return nil
  end
  if raw_type(value) == "string" then
    return { name = value }
  end
  if raw_getmetatable(value) ~= Model then
    fail("`model` is the name of a model, or what `rondo.model` returns")
  end
  local plain = {}
  for key, it in raw_pairs(value) do
    plain[key] = it
  end
  return plain
end

-- Tools -------------------------------------------------------------------------------------------------------

local Tool = { __name = "tool" }
Tool.__index = function(_, key)
  fail(format("a tool has no field `%s`", raw_tostring(key)))
end
Tool.__tostring = function(self)
  return "tool " .. self.name
end

local schema_of = core.schema(fail, core.object, ordered)

local new_tool = checked(core.tool)

function rondo.tool(given)
  known_options("rondo.tool", expect("rondo.tool", given, "table"))
  expect("`name` of rondo.tool", given.name, "string")
  expect("`run` of rondo.tool", given.run, "function")
  local handle = new_tool({
    name = given.name,
    description = given.description or "",
    parameters = schema_of(given.parameters),
    read_only = given.read_only or false,
    timeout = given.timeout,
  }, given.run)
  return raw_setmetatable({ name = given.name, handle = handle }, Tool)
end

local Server = { __name = "server" }
local server_call, server_tools = waiting(core.server_call), waiting(core.server_tools)
local ServerMethods = {
  call = function(self, name, arguments)
    expect("server:call", name, "string")
    return server_call(self.handle, name, arguments or core.object())
  end,
  tools = function(self)
    return server_tools(self.handle)
  end,
}
Server.__index = function(_, key)
  return ServerMethods[key] or fail(format("a server has no field `%s`; it has: call, name, tools", raw_tostring(key)))
end
Server.__tostring = function(self)
  return "server " .. self.name
end

local start_server = checked(core.mcp)

function rondo.mcp(given)
  if raw_type(given) == "string" then
    given = { name = given }
  end
  known_options("rondo.mcp", expect("rondo.mcp", given, "table"))
  expect("`name` of rondo.mcp", given.name, "string")
  local written
  for key, value in raw_pairs(given) do
    if key ~= "name" then
      written = written or {}
      written[key] = value
    end
  end
  return raw_setmetatable({ name = given.name, handle = start_server(given.name, written) }, Server)
end

-- Agents and conversations ------------------------------------------------------------------------------------

local Agent, Conversation = { __name = "agent" }, { __name = "conversation" }
local new_agent, begin, ask, take_over = checked(core.agent), checked(core.begin), waiting(core.ask), checked(core.take_over)

local AgentMethods, ConversationMethods = {}, {}
local FIELDS = options.conversation

local function is(value, metatable)
  return raw_getmetatable(value) == metatable
end

local function text_of(value)
  if raw_type(value) == "string" then
    return value
  end
  if raw_type(value) == "number" then
    return raw_tostring(value)
  end
  if is(value, Conversation) then
    return value.text
  end
  fail(format("a text or a conversation can be sent to an agent, not a %s", raw_type(value)))
end

local function said(self, text)
  local answer = ask(self.handle, self.agent.handle, text)
  for key, value in raw_next, answer do
    if key ~= "new_messages" and key ~= "calls" then
      self.state[key] = value
    end
  end
  for _, message in ipairs(answer.new_messages) do
    self.messages[#self.messages + 1] = message
  end
  return self
end

local function conversation_of(agent, handle, messages)
  return raw_setmetatable({ agent = agent, handle = handle, state = {}, messages = messages }, Conversation)
end

local function open(agent, text)
  return said(conversation_of(agent, begin(agent.handle), {}), text)
end

local HANDOVER = "You take over this conversation from here. Go on with it."

local function pipe(left, right)
  if is(right, Agent) then
    if not is(left, Conversation) then
      return open(right, text_of(left))
    end
    local messages = {}
    for _, message in ipairs(left.messages) do
      messages[#messages + 1] = message
    end
    local handle = take_over(right.handle, left.handle)
    return said(conversation_of(right, handle, messages), HANDOVER)
  end
  if is(left, Conversation) then
    return said(left, text_of(right))
  end
  if is(left, Agent) then
    fail("an agent stands at the right of `|`: `\"text\" | agent`")
  end
  fail("`|` sends a text or a conversation to an agent, or a text to a conversation")
end

function AgentMethods.ask(self, text)
  return open(self, text_of(text))
end

function ConversationMethods.ask(self, text)
  return said(self, text_of(text))
end

Agent.__index = function(_, key)
  return AgentMethods[key] or fail(format("an agent has no field `%s`; it has: ask, name", raw_tostring(key)))
end
Agent.__bor = pipe
Agent.__tostring = function(self)
  return "agent " .. self.name
end

Conversation.__index = function(self, key)
  local method = ConversationMethods[key]
  if method then
    return method
  end
  if key == "last" then
    return self.messages[#self.messages]
  end
  if not FIELDS[key] then
    local names = {}
    for it in raw_pairs(FIELDS) do
      names[#names + 1] = it
    end
    sort(names)
    fail(format("a conversation has no field `%s`; it has: %s", raw_tostring(key), concat(names, ", ")))
  end
  return raw_rawget(self, "state")[key]
end
Conversation.__bor = pipe
Conversation.__tostring = function(self)
  return raw_rawget(self, "state").text or ""
end
Conversation.__concat = function(left, right)
  return raw_tostring(left) .. raw_tostring(right)
end
Conversation.__len = function(self)
  return #self.messages
end

local function tools_of(given)
  if given == nil then
    return nil
  end
  expect("`tools`", given, "table")
  local tools = {}
  for at, tool in ipairs(given) do
    if raw_type(tool) == "string" then
      tools[at] = tool
    elseif is(tool, Tool) or is(tool, Server) then
      tools[at] = tool.handle
    else
      fail("`tools` has names of Rondo's tools, and what `rondo.tool` and `rondo.mcp` return")
    end
  end
  return tools
end

function rondo.agent(given)
  if given == nil then
    given = {}
  end
  known_options("rondo.agent", expect("rondo.agent", given, "table"))
  if given.limits ~= nil then
    known_options("limits", expect("`limits`", given.limits, "table"))
  end
  local name = given.name or "agent"
  local handle = new_agent({
    name = name,
    system = given.system,
    profile = given.profile,
    limits = given.limits,
    allow = given.allow,
    schema = given.schema,
  }, model_of(given.model), tools_of(given.tools), given.on_event)
  return raw_setmetatable({ name = name, handle = handle }, Agent)
end

-- What scripts do themselves ----------------------------------------------------------------------------------

local exec = waiting(core.exec)

function rondo.exec(command, given)
  if raw_type(command) == "table" then
    local words = {}
    for at, word in ipairs(command) do
      words[at] = "'" .. raw_tostring(word):gsub("'", "'\\''") .. "'"
    end
    command = concat(words, " ")
  end
  expect("rondo.exec", command, "string")
  return exec(command, known_options("rondo.exec", given or {}))
end

local question = waiting(core.question)

function rondo.ask(text, given)
  expect("rondo.ask", text, "string")
  return question(text, known_options("rondo.ask", given or {}))
end

local parallel = core.parallel

function rondo.parallel(branches, given)
  expect("rondo.parallel", branches, "table")
  if not isyieldable() then
    fail("nothing can wait here")
  end
  local keys, functions, failed = {}, {}, nil
  for key, branch in ordered(branches) do
    keys[#keys + 1] = key
    expect("each branch of rondo.parallel", branch, "function")
    functions[#functions + 1] = function()
      local is_fine, value = pcall(branch)
      if not is_fine then
        failed = failed or { value }
        raw_error(value, 0)
      end
      return value
    end
  end
  local results, message = parallel(functions, known_options("rondo.parallel", given or {}))
  if message ~= nil then
    -- What a branch raised may be more than a text.
    raw_error(failed and failed[1] or message, 0)
  end
  local named = {}
  for at, key in ipairs(keys) do
    named[key] = results[at]
  end
  return named
end

rondo.files = {}
for _, name in ipairs({ "read", "write", "append", "exists", "list" }) do
  local call = waiting(core["files_" .. name])
  rondo.files[name] = function(path, ...)
    expect("rondo.files." .. name, path, "string")
    return call(path, ...)
  end
end

rondo.json = { decode = checked(core.json_decode), encode = checked(core.json_encode), array = core.array, null = core.null }

local fetch = waiting(core.fetch)
rondo.http = {
  get = function(url)
    return fetch(expect("rondo.http.get", url, "string"))
  end,
}

local sleep = waiting(core.sleep)
function rondo.sleep(seconds)
  return sleep(expect("rondo.sleep", seconds, "number"))
end

rondo.args = core.args
rondo.env = checked(core.env)
rondo.log = function(...)
  core.stderr(words_of(...) .. "\n")
end

-- What Lua has ------------------------------------------------------------------------------------------------

function print(...)
  core.stdout(words_of(...) .. "\n")
end

arg = core.args

local read_stdin, now = waiting(core.stdin), waiting(core.now)
local date, time_of, exit = checked(core.date), checked(core.time_of), checked(core.exit)

io = {
  write = function(...)
    for at = 1, raw_select("#", ...) do
      core.stdout(raw_tostring((raw_select(at, ...))))
    end
    return io
  end,
  read = function(what)
    return read_stdin(what or "l")
  end,
  lines = function()
    return function()
      return read_stdin("l")
    end
  end,
  stderr = {
    write = function(self, ...)
      for at = 1, raw_select("#", ...) do
        core.stderr(raw_tostring((raw_select(at, ...))))
      end
      return self
    end,
  },
}
io.stdout = { write = function(self, ...) io.write(...) return self end }
io.stdin = { read = function(_, what) return io.read(what) end, lines = function() return io.lines() end }

os = {
  time = function(t)
    if t == nil then
      return now() // 1000
    end
    return time_of(t)
  end,
  clock = function()
    return (now() - core.began) / 1000
  end,
  date = function(how, time)
    return date(how or "%c", time or now() // 1000)
  end,
  difftime = function(one, other)
    return one - other
  end,
  getenv = rondo.env,
  exit = function(code)
    if code == nil then
      code = true
    end
    exit(code)
  end,
}

math.random = function(low, high)
  if low == nil then
    return core.random()
  end
  if high == nil then
    low, high = 1, low
  end
  if mathtype(low) ~= "integer" or mathtype(high) ~= "integer" or low > high then
    fail("bad argument to `math.random` (the interval is empty, or no integers)")
  end
  return core.random_between(low, high)
end
math.randomseed = function() end

local raw_load = load
load = common.load_text

local modules = {}
local module_text = waiting(core.module)
function require(name)
  expect("require", name, "string")
  local known = modules[name]
  if known ~= nil then
    return known
  end
  local text, file = module_text(name), name:gsub("%.", "/") .. ".lua"
  local chunk, message = raw_load(text, "@" .. file, "t")
  if not chunk then
    raw_error(message, 0)
  end
  local value = chunk(name)
  if value == nil then
    value = true
  end
  modules[name] = value
  return value
end

dofile, loadfile, collectgarbage, string.dump, debug = nil, nil, nil, nil, nil
