-- What `init.lua` sees of Rondo: functions that register, and safe forms of what Lua has.
local core, options = ...

local raw_pairs, raw_type, raw_setmetatable, raw_rawget = pairs, type, setmetatable, rawget
local raw_tostring, concat, sort, format = tostring, table.concat, table.sort, string.format
local where = core.where

local common = core.common(where, options)
local fail, checked, words_of = common.fail, common.checked, common.words_of
local expect = common.expecting("is")

local function known_options(of, given)
  if raw_type(given) ~= "table" then
    fail(format("%s takes a table, not a %s", of, raw_type(given)))
  end
  return common.known_options(of, given)
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

local sleep = checked(core.sleep)
function rondo.sleep(seconds)
  return sleep(expect("rondo.sleep", seconds, "number"))
end

rondo.files = {}
for _, name in ipairs({ "read", "exists", "list" }) do
  local call = checked(core["files_" .. name])
  rondo.files[name] = function(path)
    return call(expect("rondo.files." .. name, path, "string"))
  end
end
for _, name in ipairs({ "write", "append" }) do
  local call = checked(core["files_" .. name])
  rondo.files[name] = function(path, text)
    local of = "rondo.files." .. name
    return call(expect(of, path, "string"), expect("the text of " .. of, text, "string"))
  end
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

load = common.load_text

dofile, loadfile, collectgarbage, string.dump, debug, require = nil, nil, nil, nil, nil, nil
