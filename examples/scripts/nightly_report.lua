#!/usr/bin/env -S rondo run
-- A report for the morning, for cron:
--   0 6 * * *  cd /srv/app && rondo run --quiet --approval deny nightly_report.lua reports

local folder = rondo.args[1] or "."
local function output(command)
  local result = rondo.exec(command, { timeout = 60 })
  return "$ " .. command .. "\n" .. (result.ok and result.stdout or "(failed: " .. result.stdout .. ")")
end

local facts = rondo.parallel {
  disk = function() return output("df -h .") end,
  commits = function() return output("git log --since=yesterday --oneline 2>&1 | head -n 50") end,
  load = function() return output("uptime") end,
}

local lines = {}
for _, text in pairs(facts) do
  lines[#lines + 1] = text
end

local reporter = rondo.agent {
  name = "reporter",
  system = "You write the report of the night in five lines: what changed, and what needs a person.",
  limits = { time = 120, tokens = 20000 },
}
local report = table.concat(lines, "\n") | reporter
if report.stop_reason ~= "complete" then
  rondo.log("no report: " .. report.stop_reason)
  os.exit(1)
end
local name = folder .. "/report-" .. os.date("!%Y-%m-%d") .. ".md"
rondo.files.write(name, report.text .. "\n")
print(name)
