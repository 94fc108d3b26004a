-- Makes JSON Schemas of parameters that were given by their names.
local fail, object, ordered = ...

local raw_type, raw_pairs, raw_rawget, raw_tostring, format = type, pairs, rawget, tostring, string.format

local SIMPLE = { string = true, number = true, integer = true, boolean = true, array = true, object = true }

return function(parameters)
  if parameters == nil then
    return { type = "object", properties = object() }
  end
  if raw_type(parameters) ~= "table" then
    fail(format("`parameters` are a table, not a %s", raw_type(parameters)))
  end
  if raw_type(raw_rawget(parameters, "properties")) == "table" or raw_rawget(parameters, "type") == "object" then
    return parameters
  end
  local properties, required = object(), {}
  for name, kind in ordered(parameters) do
    local property = {}
    if raw_type(kind) == "string" then
      local word, is_optional = kind:match("^(%a+)(%??)$")
      if not SIMPLE[word] then
        fail(format("the parameter `%s` has no type `%s`: there are string, number, integer, boolean, array and object", name, kind))
      end
      property.type = word
      if is_optional == "" then
        required[#required + 1] = name
      end
    elseif raw_type(kind) == "table" then
      for key, value in raw_pairs(kind) do
        if key ~= "optional" then
          property[key] = value
        end
      end
      if not kind.optional then
        required[#required + 1] = name
      end
    else
      fail(format("the parameter `%s` is described by a type or by a table", raw_tostring(name)))
    end
    properties[name] = property
  end
  local schema = { type = "object", properties = properties }
  if #required > 0 then
    schema.required = required
  end
  return schema
end
