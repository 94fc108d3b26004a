-- What `init.lua` sees of Rondo: functions that register, and safe forms of what Lua has.
local core, options = ...

local raw_error, raw_pairs, raw_type, raw_setmetatable, raw_rawget = error, pairs, type, setmetatable, rawget
local raw_tostring, raw_select, concat, sort, format = tostring, select, table.concat, table.sort, string.format
local where = core.where

local function fail(message)
  raw_error(where() .. message, 0)
end

local function checked(call)
  return function(...)
    local value, message = call(...)
    if message ~= nil then
      raw_error(message, 0)
    end
    return value
  end
end

local function known_options(of, given)
  if raw_type(given) ~= "table" then
    fail(format("%s takes a table, not a %s", of, raw_type(given)))
  end
  local known = options[of]
  for name in raw_pairs(given) do
    if not known[name] then
      local names = {}
      for it in raw_pairs(known) do
        names[#names + 1] = it
      end
      sort(names)
      fail(format("%s has no option `%s`; its options are: %s", of, raw_tostring(name), concat(names, ", ")))
    end
  end
  return given
end

local function expect(of, value, kind)
  if raw_type(value) ~= kind then
    fail(format("%s is a %s, not a %s", of, kind, raw_type(value)))
  end
  return value
end

rondo = {}

local on = checked(core.on)
function rondo.on(event, handler)
  return on(expect("the event of rondo.on", event, "string"), expect("the handler of rondo.on", handler, "function"))
end

local function in_order(t)
  local keys = {}
  for name in raw_pairs(t) do
    keys[#keys + 1] = name
  end
  sort(keys, function(one, other) return raw_tostring(one) < raw_tostring(other) end)
  local at = 0
  return function()
    at = at + 1
    if keys[at] ~= nil then
      return keys[at], t[keys[at]]
    end
  end
end
local schema_of = core.schema(fail, core.object, in_order)
local command, prompt, tool, key = checked(core.command), checked(core.prompt), checked(core.tool), checked(core.key)

function rondo.command(given)
  known_options("rondo.command", given)
  command(
    expect("`name` of rondo.command", given.name, "string"),
    given.description or "",
    expect("`run` of rondo.command", given.run, "function")
  )
end

function rondo.prompt(given)
  known_options("rondo.prompt", given)
  prompt(
    expect("`name` of rondo.prompt", given.name, "string"),
    given.description or "",
    expect("`text` of rondo.prompt", given.text, "string")
  )
end

function rondo.key(given)
  known_options("rondo.key", given)
  key(expect("`key` of rondo.key", given.key, "string"), expect("`command` of rondo.key", given.command, "string"))
end

function rondo.tool(given)
  known_options("rondo.tool", given)
  expect("`name` of rondo.tool", given.name, "string")
  expect("`run` of rondo.tool", given.run, "function")
  tool({
    name = given.name,
    description = given.description or "",
    parameters = schema_of(given.parameters),
    read_only = given.read_only or false,
    timeout = given.timeout,
  }, given.run)
end

local exec = checked(core.exec)
function rondo.exec(line, given)
  if raw_type(line) == "table" then
    local words = {}
    for at, word in ipairs(line) do
      words[at] = "'" .. raw_tostring(word):gsub("'", "'\\''") .. "'"
    end
    line = concat(words, " ")
  end
  return exec(expect("rondo.exec", line, "string"), known_options("rondo.exec", given or {}))
end

rondo.json = { decode = checked(core.json_decode), encode = checked(core.json_encode), array = core.array, null = core.null }
rondo.env = core.env

local function words_of(...)
  local words = {}
  for at = 1, raw_select("#", ...) do
    words[at] = raw_tostring((raw_select(at, ...)))
  end
  return concat(words, "\t")
end

rondo.log = function(...)
  core.note(words_of(...))
end
print = rondo.log

function setmetatable(t, metatable)
  if raw_type(metatable) == "table" and raw_rawget(metatable, "__gc") ~= nil then
    fail("`__gc` is not available: it would run where nothing can end it")
  end
  return raw_setmetatable(t, metatable)
end

os = { time = core.time, date = core.date, getenv = core.env }
io = nil

local raw_load = load
function load(chunk, name, _, environment)
  if raw_type(chunk) ~= "string" then
    fail("`load` takes a text")
  end
  if environment == nil then
    return raw_load(chunk, name or chunk, "t")
  end
  return raw_load(chunk, name or chunk, "t", environment)
end

dofile, loadfile, collectgarbage, string.dump, debug, require = nil, nil, nil, nil, nil, nil
