#!/usr/bin/env -S rondo run
-- reviewers.lua FILE: three reviewers read a file at once, and a judge keeps what holds.

local file = rondo.args[1] or error("usage: reviewers.lua FILE", 0)
local text = rondo.files.read(file)

local function reviewer(concern)
  local agent = rondo.agent {
    name = concern,
    system = "You review code for one thing only: " .. concern .. ". List what is wrong, with lines. If nothing is, say so.",
  }
  return function()
    return (text | agent).text
  end
end

local found = rondo.parallel {
  correctness = reviewer("correctness"),
  safety = reviewer("safety"),
  clarity = reviewer("clarity"),
}

local judge = rondo.agent {
  name = "judge",
  system = "You are given a file and what three reviewers found in it. Keep what is true and matters, worst first.",
}

local report = { "# " .. file, text }
for concern, review in pairs(found) do
  report[#report + 1] = "# " .. concern .. "\n" .. review
end
print(table.concat(report, "\n\n") | judge)
