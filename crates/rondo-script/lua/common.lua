-- What `prelude.lua` and `init.lua` both stand on: how functions fail, read their arguments, and load texts.
local where, options = ...

local raw_error, raw_pairs, raw_type, raw_select, raw_tostring = error, pairs, type, select, tostring
local concat, sort, format, raw_load = table.concat, table.sort, string.format, load

local function fail(message)
  raw_error(where() .. message, 0)
end

-- Calls a function of Rust, which returns a value, or nothing and why.
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

-- `verb` says how what is described relates to its type: `takes` or `is`.
local function expecting(verb)
  return function(of, value, kind)
    if raw_type(value) ~= kind then
      fail(format("%s %s a %s, not a %s", of, verb, kind, raw_type(value)))
    end
    return value
  end
end

local function words_of(...)
  local words = {}
  for at = 1, raw_select("#", ...) do
    words[at] = raw_tostring((raw_select(at, ...)))
  end
  return concat(words, "\t")
end

-- Texts alone are loaded: bytecode can reach outside of what Lua guards.
local function load_text(chunk, name, _, environment)
  if raw_type(chunk) ~= "string" then
    fail("`load` takes a text")
  end
  if environment == nil then
    return raw_load(chunk, name or chunk, "t")
  end
  return raw_load(chunk, name or chunk, "t", environment)
end

return {
  fail = fail,
  checked = checked,
  known_options = known_options,
  expecting = expecting,
  words_of = words_of,
  load_text = load_text,
}
