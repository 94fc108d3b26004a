#!/usr/bin/env -S rondo run
-- Reads a log from standard input and says what needs a person, worst first.

local triage = rondo.agent {
  name = "triage",
  model = rondo.env("TRIAGE_MODEL"),
  system = "You are shown a part of a log. Report each problem that needs a person, and nothing that does not.",
  schema = {
    type = "object",
    properties = {
      problems = {
        type = "array",
        items = {
          type = "object",
          properties = {
            severity = { type = "integer", minimum = 1, maximum = 5 },
            what = { type = "string" },
          },
          required = { "severity", "what" },
        },
      },
    },
    required = { "problems" },
  },
}

-- Parts of 200 lines, looked at side by side.
local parts, part = {}, {}
for line in io.lines() do
  part[#part + 1] = line
  if #part == 200 then
    parts[#parts + 1], part = table.concat(part, "\n"), {}
  end
end
if #part > 0 then
  parts[#parts + 1] = table.concat(part, "\n")
end

local branches = {}
for at, text in ipairs(parts) do
  branches[at] = function()
    return (text | triage).data.problems
  end
end

local all = {}
for _, problems in ipairs(rondo.parallel(branches, { limit = 4 })) do
  for _, problem in ipairs(problems) do
    all[#all + 1] = problem
  end
end
table.sort(all, function(one, other)
  return one.severity > other.severity
end)
for _, problem in ipairs(all) do
  print(math.tointeger(problem.severity), problem.what)
end
os.exit(#all == 0)
